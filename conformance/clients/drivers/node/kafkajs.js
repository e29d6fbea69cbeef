'use strict'
// The driver of KafkaJS. Protocol: ../../PROTOCOL.md.

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const wire = require('./wire')

const compression = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }
const logCreator = () => ({ label, log }) => console.error(label, JSON.stringify(log)) // the default writes some levels to stdout
const kafka = new Kafka({
  clientId: 'matrix',
  brokers: [wire.bootstrap],
  logLevel: logLevel.WARN,
  logCreator,
  // 5 tries with up to 30 s between them: so that a restarted broker is found at once, and the client gives up as late as by default.
  retry: { maxRetryTime: 500, retries: 20 },
})
const producers = new Map()
const transactional = new Map()
const hanging = new Map()
let topic, group, member, consumer

// useCodecs adds the packages that KafkaJS' documentation names, and one for zstd.
async function useCodecs() {
  const LZ4 = require('kafkajs-lz4')
  const zstd = require('@bokuweb/zstd-wasm')
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
  CompressionCodecs[CompressionTypes.LZ4] = new (LZ4.default || LZ4)().codec
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => Buffer.from(zstd.compress(encoder.buffer, 3)),
    decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
  })
}

async function withAdmin(use) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

async function producer(idempotent) {
  if (!producers.has(idempotent)) {
    const made = kafka.producer(idempotent ? { idempotent, maxInFlightRequests: 1 } : {}) // KafkaJS' documentation asks for one request at a time
    await made.connect()
    producers.set(idempotent, made)
  }
  return producers.get(idempotent)
}

// listen writes the events of a rebalance. KafkaJS tells of one when it is about to join again, and of the assignment when it has joined.
function listen() {
  const { REBALANCING, GROUP_JOIN, CRASH } = consumer.events
  consumer.on(REBALANCING, () => member.revoked(member.owned))
  consumer.on(GROUP_JOIN, ({ payload }) => {
    member.revoked(member.owned, true) // still there: the broker knew the member no longer, which KafkaJS does not tell
    member.now(payload.memberAssignment[topic] || [])
  })
  consumer.on(CRASH, ({ payload: { error, restart } }) => {
    member.revoked(member.owned, true)
    if (restart) wire.errorEvent(error)
    else wire.closedEvent(error)
  })
}

// unread are the positions of partitions of which nothing was read: those that KafkaJS begins at.
async function unread(partitions) {
  if (partitions.length === 0) return []
  return withAdmin(async admin => {
    const committed = (await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions
    const ends = await admin.fetchTopicOffsets(topic)
    const at = (all, p) => all.find(({ partition }) => partition === p)
    return partitions.map(p => [p, Number(at(committed, p).offset) >= 0 ? Number(at(committed, p).offset) : Number(at(ends, p).low)])
  })
}

useCodecs().then(() => wire.serve({
  info: () => ({
    client: 'KafkaJS',
    version,
    language: 'JavaScript',
    codecs: Object.keys(compression),
    features: ['admin', 'idempotent', 'roundrobin', 'commit', 'headers', 'transactions'],
  }),

  create: ({ topic, partitions }) => withAdmin(async admin => {
    await admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: 1 }], waitForLeaders: true })
  }),

  async produce(command) {
    const sent = wire.records(command)
    const answers = await (await producer(command.idempotent)).send({
      topic: command.topic,
      acks: -1,
      compression: compression[command.codec],
      messages: sent.map(({ partition, key, value, headers }) => ({ partition, key, value, headers })),
    })
    return { acked: wire.acknowledged(sent, answers.map(a => [a.partition, Number(a.baseOffset)])) }
  },

  async txn(command) {
    const id = command.transactional_id
    if (!transactional.has(id)) {
      const made = kafka.producer({ transactionalId: id, idempotent: true, maxInFlightRequests: 1, ...(command.timeout && { transactionTimeout: command.timeout }) })
      await made.connect()
      transactional.set(id, made)
    }
    const txn = hanging.get(id) ?? await transactional.get(id).transaction()
    hanging.delete(id)
    const messages = wire.records(command).map(({ partition, key, value, headers }) => ({ partition, key, value, headers }))
    if (messages.length > 0) await txn.send({ topic: command.topic, acks: -1, messages })
    if (command.group) {
      const partitions = Object.entries(command.offsets).map(([partition, offset]) => ({ partition: Number(partition), offset: String(offset) }))
      await txn.sendOffsets({ consumerGroupId: command.group, topics: [{ topic: command.topic, partitions }] })
    }
    if (command.end === 'commit') await txn.commit()
    else if (command.end === 'abort') await txn.abort()
    else hanging.set(id, txn)
  },

  async join(command) {
    if (command.assignor !== 'roundrobin') throw new Error(`KafkaJS has no assignor ${command.assignor}`)
    if (command.instance) throw new Error('KafkaJS has no static members')
    topic = command.topic
    group = command.group
    member = new wire.Member()
    consumer = kafka.consumer({
      groupId: group,
      readUncommitted: command.isolation !== 'read_committed',
      // The protocol's: a member that is gone is noticed within the test's patience.
      sessionTimeout: 10000,
      rebalanceTimeout: 10000,
      heartbeatInterval: 500,
      maxWaitTimeInMs: 500, // 5 s, for which it notices nothing else
    })
    listen()
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => member.record(partition, Number(message.offset), message.key, message.value, message.headers.h),
    })
  },

  async commit() {
    const { owned, positions } = member
    const at = [...positions].filter(([p]) => owned.includes(p)).concat(await unread(owned.filter(p => !positions.has(p))))
    await consumer.commitOffsets(at.map(([partition, offset]) => ({ topic, partition, offset: String(offset) })))
    return { committed: Object.fromEntries(at) }
  },

  async leave() {
    await consumer.stop() // leaves the group once what it has fetched is handled
    member.revoked(member.owned)
    await consumer.disconnect()
  },
}))
