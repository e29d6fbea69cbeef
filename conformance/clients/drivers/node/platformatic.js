'use strict'
// The driver of @platformatic/kafka. Protocol: ../../PROTOCOL.md. It needs a newer Node.js than distributions have: that of package.json.

const { once } = require('node:events')
const path = require('node:path')
const { Admin, Consumer, Producer, stringSerializers, stringDeserializers } = require('@platformatic/kafka')
const { version } = require(path.join(require.resolve('@platformatic/kafka'), '..', '..', 'package.json')) // which it does not export
const wire = require('./wire')

const common = {
  clientId: 'matrix',
  bootstrapBrokers: [wire.bootstrap],
  // 3 tries with 1 s between them: so that a restarted broker is found at once, and the client gives up as late as by default.
  retries: 10,
  retryDelay: 300,
}
const producers = new Map()
const transactional = new Map()
const hanging = new Map()
let topic, member, consumer, stream, cooperative

async function create({ topic, partitions }) {
  const admin = new Admin(common)
  try {
    await admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  } finally {
    await admin.close()
  }
}

async function produce(command) {
  if (!producers.has(command.idempotent)) producers.set(command.idempotent, new Producer({ ...common, serializers: stringSerializers, idempotent: command.idempotent }))
  const sent = wire.records(command)
  const { offsets } = await producers.get(command.idempotent).send({
    acks: -1,
    compression: command.codec,
    messages: sent.map(({ partition, key, value, headers }) => ({ topic: command.topic, partition, key, value, headers })),
  })
  return { acked: wire.acknowledged(sent, offsets.map(({ partition, offset }) => [partition, Number(offset)])) }
}

async function txn(command) {
  const id = command.transactional_id
  if (!transactional.has(id)) {
    // It asks for id 0 and epoch 0 unless told otherwise, with which it is no new instance; the timeout is that of its requests too.
    const first = { producerId: -1n, producerEpoch: -1, ...(command.timeout && { timeout: command.timeout }) }
    transactional.set(id, new Producer({ ...common, ...first, serializers: stringSerializers, idempotent: true, transactionalId: id }))
  }
  const transaction = hanging.get(id) ?? await transactional.get(id).beginTransaction()
  hanging.delete(id)
  const messages = wire.records(command).map(({ partition, key, value, headers }) => ({ topic: command.topic, partition, key, value, headers }))
  if (messages.length > 0) await transaction.send({ acks: -1, messages })
  if (command.group) {
    const consumer = new Consumer({ ...common, groupId: command.group })
    const coordinatorId = await consumer.findGroupCoordinator()
    await transaction.addConsumer(consumer)
    for (const [partition, offset] of Object.entries(command.offsets)) { // it takes the messages that were read, whose offsets are one less
      const from = { groupId: command.group, generationId: -1, memberId: '', coordinatorId }
      await transaction.addOffset({ topic: command.topic, partition: Number(partition), offset: BigInt(offset) - 1n, metadata: { consumer: from } })
    }
    await consumer.close()
  }
  if (command.end === 'commit') await transaction.commit()
  else if (command.end === 'abort') await transaction.abort()
  else hanging.set(id, transaction)
}

const assigned = () => consumer.assignments?.find(a => a.topic === topic)?.partitions ?? []

// listen writes the events of a rebalance. The client tells of one when it is about to join again, and of the assignment when it has joined.
function listen() {
  consumer.on('consumer:group:rebalance', () => {
    if (cooperative) return member.now(assigned()) // what a round took is gone from its assignments
    stream?.pause() // an eager member reads nothing meanwhile, which the client leaves to the application
    member.revoked(member.owned)
  })
  consumer.on('consumer:group:join', () => {
    if (!cooperative) member.revoked(member.owned, true) // still there: the broker knew the member no longer, which the client does not tell
    member.now(assigned())
    stream?.resume()
  })
  consumer.on('error', wire.errorEvent)
}

async function join(command) {
  cooperative = command.assignor === 'cooperative'
  if (!cooperative && command.assignor !== 'roundrobin') throw new Error(`@platformatic/kafka has no assignor ${command.assignor}`)
  topic = command.topic
  member = new wire.Member()
  consumer = new Consumer({
    ...common,
    groupId: command.group,
    deserializers: stringDeserializers,
    protocols: [cooperative ? { name: 'cooperative-sticky', version: 3 } : { name: 'roundrobin', version: 1 }],
    isolationLevel: command.isolation === 'read_committed' ? 1 : 0,
    autocommit: false,
    // The protocol's: a member that is gone is noticed within the test's patience.
    sessionTimeout: 10000,
    rebalanceTimeout: 10000,
    heartbeatInterval: 500,
    maxWaitTime: 500, // 5 s, for which a read goes on after a rebalance
    ...(command.instance && { groupInstanceId: command.instance }),
  })
  listen()
  stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
  stream.on('data', deliver)
  stream.on('error', wire.closedEvent)
}

// deliver passes over what an application of this client has to pass over: a read that was under way during a rebalance is delivered although
// its partition is somebody else's by then, and a member that keeps a partition begins again at its commit there.
function deliver({ partition, offset, key, value, headers }) {
  if (!member.owned.includes(partition) || offset < (member.positions.get(partition) ?? 0)) return
  member.record(partition, Number(offset), key, value, headers.get('h'))
}

// position is the offset to commit. Where nothing was read since the assignment, it is where the client begins, which it calls committed.
async function position(partition) {
  const start = () => stream.offsetsCommitted.get(`${topic}:${partition}`)
  if (!member.positions.has(partition) && start() === undefined) await once(stream, 'offsets') // it is about to ask the broker
  return BigInt(member.positions.get(partition) ?? start())
}

async function commit() {
  const offsets = []
  for (const partition of member.owned) offsets.push({ topic, partition, offset: await position(partition), leaderEpoch: -1 })
  if (offsets.length > 0) await consumer.commit({ offsets })
  return { committed: Object.fromEntries(offsets.map(({ partition, offset }) => [partition, Number(offset)])) }
}

async function leave() {
  await stream.close()
  member.revoked(member.owned)
  await consumer.close()
}

wire.serve({
  info: () => ({
    client: '@platformatic/kafka',
    version,
    language: 'JavaScript',
    codecs: ['none', 'gzip', 'snappy', 'lz4', 'zstd'],
    features: ['admin', 'idempotent', 'roundrobin', 'cooperative', 'commit', 'headers', 'static', 'transactions'],
  }),
  create,
  produce,
  txn,
  join,
  commit,
  leave,
})
