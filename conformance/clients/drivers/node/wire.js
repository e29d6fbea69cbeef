'use strict'
// The driver protocol (../../PROTOCOL.md) for the clients in JavaScript: lines in, lines out, the records of the workload, what a member owns.

const fs = require('node:fs')
const readline = require('node:readline')

const bootstrap = process.env.BOOTSTRAP

// send writes one line, at once: process.stdout would keep it while the client is busy.
function send(line) {
  const bytes = Buffer.from(JSON.stringify(line) + '\n')
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(1, bytes, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error // a pipe that is full for the moment
    }
  }
}

const oneLine = error => `${error.name}: ${error.message}`.replace(/\s+/g, ' ')
const errorEvent = error => send({ event: 'error', error: oneLine(error) })
const closedEvent = error => send({ event: 'closed', error: oneLine(error) })

// records are those that a produce command asks for: number, partition, and what is in them.
function records({ from, count, partitions }) {
  return Array.from({ length: count }, (_, n) => {
    const i = from + n
    return { i, partition: i % partitions, key: `key-${i}`, value: `value-${i}-${'x'.repeat(200)}`, headers: { h: String(i) } }
  })
}

// acknowledged gives each record its offset from those that the client tells: the first of each partition, for what was sent in one batch.
function acknowledged(sent, firstOffsets) {
  const next = new Map(firstOffsets)
  return sent.map(({ i, partition }) => {
    const offset = next.get(partition)
    next.set(partition, offset + 1)
    return [i, partition, offset]
  })
}

// Member is what the consumer of this process owns, and the events about it.
class Member {
  constructor() {
    this.owned = []
    this.positions = new Map() // behind the last record that was written
  }

  // now makes these the member's partitions, and says what changed.
  now(partitions) {
    this.revoked(this.owned.filter(p => !partitions.includes(p)))
    const added = partitions.filter(p => !this.owned.includes(p))
    if (added.length === 0) return
    added.forEach(p => this.positions.delete(p))
    this.owned = [...partitions].sort((a, b) => a - b)
    send({ event: 'assigned', partitions: added, owned: this.owned })
  }

  revoked(partitions, lost) {
    if (partitions.length === 0) return
    this.owned = this.owned.filter(p => !partitions.includes(p))
    send({ event: 'revoked', partitions, owned: this.owned, lost })
  }

  record(partition, offset, key, value, header) {
    send({ event: 'record', partition, offset, key: String(key), value: String(value), header: String(header) })
    this.positions.set(partition, offset + 1)
  }
}

// serve runs the commands in order: driver has a function for each.
async function serve(driver) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line)
    if (command.do === 'quit') {
      send({ re: command.id })
      break
    }
    try {
      send({ re: command.id, ...(await driver[command.do](command)) })
    } catch (error) { // whatever the client says is the answer
      send({ re: command.id, error: oneLine(error) })
    }
  }
  process.exit(0) // without the clients' own waiting for what nobody waits for
}

module.exports = { bootstrap, send, oneLine, errorEvent, closedEvent, records, acknowledged, Member, serve }
