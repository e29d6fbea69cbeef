'use strict'
// The workload of TestKafkaJS: a topic is created, filled by the producer with one codec, asked about through the admin client, and read back.
//
// KafkaJS has no consumer without a consumer group. Reading is done by the layer beneath its Consumer: the Cluster and Broker of
// KafkaJS' own sources, whose fetch() sends the request, decodes the batches and decompresses them with the same codecs. The Consumer
// itself needs groups and is no part of this workload.
//
// Arguments: BOOTSTRAP TOPIC CODEC LINES-FILE OUT-FILE PARTITIONS [idempotent]

const fs = require('node:fs')
const assert = require('node:assert/strict')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const createDefaultSocketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')
const LoggerConsole = require('kafkajs/src/loggers/console')

const [bootstrap, topic, codec, linesFile, outFile, partitionsText, mode] = process.argv.slice(2)
const partitions = Number(partitionsText)
const lines = fs.readFileSync(linesFile, 'utf8').split('\n').slice(0, -1)
const compression = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }[codec]

async function codecs() {
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

async function create(admin) {
  const configEntries = [{ name: 'retention.ms', value: '86400000' }]
  const wanted = { topics: [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }], waitForLeaders: true }
  assert.equal(await admin.createTopics(wanted), true)
  assert.equal(await admin.createTopics(wanted), false) // it exists
  const cluster = await admin.describeCluster()
  assert.equal(cluster.brokers.length, 1)
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] })
  assert.equal(metadata.topics[0].partitions.length, partitions)
  assert.ok((await admin.listTopics()).includes(topic))
  const configs = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
  const retention = configs.resources[0].configEntries.find(e => e.configName === 'retention.ms')
  assert.equal(retention.configValue, '86400000')
}

async function produce(kafka) {
  const idempotent = mode === 'idempotent'
  const producer = kafka.producer(idempotent ? { idempotent: true, maxInFlightRequests: 1 } : {})
  await producer.connect()
  for (let i = 0; i < lines.length; i += 3000) {
    const messages = lines.slice(i, i + 3000).map((value, j) => ({ key: `key-${i + j}`, value, partition: (i + j) % partitions, headers: { n: String(i + j) } }))
    const answers = await producer.send({ topic, compression, acks: -1, messages })
    assert.ok(answers.every(a => a.errorCode === 0), JSON.stringify(answers))
  }
  await producer.disconnect()
}

async function offsets(admin) {
  const all = await admin.fetchTopicOffsets(topic)
  assert.equal(all.reduce((n, p) => n + Number(p.high), 0), lines.length)
  assert.ok(all.every(p => p.low === '0'))
  const byTime = await admin.fetchTopicOffsetsByTimestamp(topic, 1)
  assert.ok(byTime.every(p => p.offset === '0'), JSON.stringify(byTime))
}

async function fetchAll(out) {
  const logger = createLogger({ level: logLevel.ERROR, logCreator: LoggerConsole })
  const cluster = new Cluster({ brokers: [bootstrap], clientId: 'conformance', logger, socketFactory: createDefaultSocketFactory(),
    connectionTimeout: 5000, requestTimeout: 30000, enforceRequestTimeout: true, retry: { retries: 3 }, metadataMaxAge: 300000, offsets: new Map(),
    isolationLevel: 0, allowAutoTopicCreation: false })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const next = new Array(partitions).fill(0)
  const deadline = Date.now() + 60000
  for (let seen = 0; seen < lines.length; ) {
    assert.ok(Date.now() < deadline, `only ${seen} of ${lines.length} records within a minute`)
    const leader = cluster.findLeaderForPartitions(topic, [...next.keys()])
    assert.equal(Object.keys(leader).length, 1)
    const broker = await cluster.findBroker({ nodeId: Object.keys(leader)[0] })
    const request = next.map((fetchOffset, partition) => ({ partition, fetchOffset: String(fetchOffset), maxBytes: 1 << 20 }))
    const response = await broker.fetch({ isolationLevel: 0, maxWaitTime: 500, topics: [{ topic, partitions: request }] })
    for (const p of response.responses.flatMap(r => r.partitions)) {
      assert.equal(p.errorCode, 0)
      // A batch that holds the wanted offset comes whole, so what lies before it is passed over, as KafkaJS' Consumer does.
      for (const m of p.messages.filter(m => Number(m.offset) >= next[p.partition])) {
        assert.equal(Number(m.offset), next[p.partition])
        const n = Number(m.offset) * partitions + p.partition
        assert.equal(String(m.key), `key-${n}`)
        assert.equal(String(m.headers.n), String(n))
        out.push(`${p.partition}\t${m.value}\n`)
        next[p.partition]++
        seen++
      }
    }
  }
  await cluster.disconnect()
}

// remove deletes another topic: the test asks afterwards how the batches of this one are compressed.
async function remove(admin, kafka) {
  const scratch = topic + '-scratch'
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: scratch, messages: [{ value: 'makes the topic' }] })
  await producer.disconnect()
  await admin.deleteTopics({ topics: [scratch] })
}

async function main() {
  await codecs()
  const kafka = new Kafka({ clientId: 'conformance', brokers: [bootstrap], logLevel: logLevel.ERROR, retry: { retries: 3 } })
  const admin = kafka.admin()
  await admin.connect()
  await create(admin)
  await produce(kafka)
  await offsets(admin)
  const out = []
  await fetchAll(out)
  fs.writeFileSync(outFile, out.join(''))
  await remove(admin, kafka)
  await admin.disconnect()
  console.log(`codec=${codec} ${mode || 'plain'} produced=${lines.length} fetched=${out.length}`)
}

// createTopics of a topic that exists is logged as an error by KafkaJS, which is what the workload asks for.
main().catch(e => { console.error(e); process.exit(1) })
