"""The driver of confluent-kafka (librdkafka). Protocol: ../../PROTOCOL.md."""

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import wire

COMMON = {
    "bootstrap.servers": wire.BOOTSTRAP,
    "reconnect.backoff.max.ms": 500,  # 10 s: so that a restarted broker is found at once
}


class Driver:
    joined = False

    def __init__(self):
        self.producers, self.transactional, self.hanging = {}, {}, set()

    def info(self, _):
        return {
            "client": "confluent-kafka-python",
            "version": f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})",
            "language": "Python",
            "codecs": wire.CODECS,
            "features": ["admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions"],
        }

    def create(self, command):
        admin = AdminClient(COMMON)
        for future in admin.create_topics([NewTopic(command["topic"], command["partitions"], 1)]).values():
            future.result(timeout=30)

    def produce(self, command):
        key = command["codec"], command["idempotent"]
        if key not in self.producers:
            self.producers[key] = Producer(COMMON | {"acks": "all", "compression.type": key[0], "enable.idempotence": key[1]})
        producer, acked, errors = self.producers[key], [], []

        def delivered(i, error, message):
            if error is not None:
                errors.append(error)
            else:
                acked.append([i, message.partition(), message.offset()])

        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            callback = lambda error, message, i=i: delivered(i, error, message)
            producer.produce(command["topic"], v, k, i % command["partitions"], callback, headers=headers)
        producer.flush()
        if errors:
            raise KafkaException(errors[0])
        return {"acked": sorted(acked)}

    def txn(self, command):
        id, errors = command["transactional_id"], []
        if id not in self.transactional:
            timeout = {"transaction.timeout.ms": command["timeout"], "message.timeout.ms": command["timeout"]} if "timeout" in command else {}
            producer = Producer(COMMON | {"transactional.id": id} | timeout)
            producer.init_transactions(30)
            self.transactional[id] = producer
        producer = self.transactional[id]
        if id not in self.hanging:
            producer.begin_transaction()
        self.hanging.discard(id)
        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            producer.produce(command["topic"], v, k, i % command["partitions"], lambda error, _: error and errors.append(error), headers=headers)
        producer.flush()
        if errors:
            raise KafkaException(errors[0])
        if command.get("group"):
            offsets = [TopicPartition(command["topic"], int(p), offset) for p, offset in command["offsets"].items()]
            group = Consumer(COMMON | {"group.id": command["group"]})
            producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 30)
            group.close()
        if command["end"] == "commit":
            producer.commit_transaction(30)
        elif command["end"] == "abort":
            producer.abort_transaction(30)
        else:
            self.hanging.add(id)

    def join(self, command):
        settings = COMMON | {
            "group.id": command["group"],
            "partition.assignment.strategy": {"range": "range", "cooperative": "cooperative-sticky"}[command["assignor"]],
            "isolation.level": command.get("isolation") or "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # The protocol's: a member that is gone is noticed within the test's patience.
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 500,
            "max.poll.interval.ms": 10_000,
            "error_cb": lambda error: wire.error_event(KafkaException(error)),
        }
        if command["instance"]:
            settings["group.instance.id"] = command["instance"]
        self.topic, self.member, self.positions = command["topic"], wire.Member(), {}
        self.consumer = Consumer(settings)
        self.consumer.subscribe([self.topic], on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost)
        self.joined = True

    def on_assign(self, _, partitions):
        for p in partitions:
            self.positions.pop(p.partition, None)
        self.member.assigned([p.partition for p in partitions])

    def on_revoke(self, _, partitions):
        self.member.revoked([p.partition for p in partitions])

    def on_lost(self, _, partitions):
        self.member.revoked([p.partition for p in partitions], lost=True)

    def poll(self):
        message = self.consumer.poll(0.1)
        if message is None:
            return
        if message.error() is not None:
            wire.error_event(KafkaException(message.error()))
            return
        self.positions[message.partition()] = message.offset() + 1
        self.member.record(message.partition(), message.offset(), message.key(), message.value(), message.headers() or [])

    def position(self, partition):
        """The offset to commit. The client's own position() is unknown until a record was read: it starts at the committed offset, or the first one."""
        if partition in self.positions:
            return self.positions[partition]
        at = TopicPartition(self.topic, partition)
        committed = self.consumer.committed([at], timeout=30)[0].offset
        return committed if committed != OFFSET_INVALID else self.consumer.get_watermark_offsets(at, timeout=30)[0]

    def commit(self, _):
        offsets = [TopicPartition(self.topic, p, self.position(p)) for p in sorted(self.member.owned)]
        if not offsets:
            return {"committed": {}}
        for done in self.consumer.commit(offsets=offsets, asynchronous=False):
            if done.error is not None:
                raise KafkaException(done.error)
        return {"committed": {str(p.partition): p.offset for p in offsets}}

    def leave(self, _):
        self.joined = False
        self.consumer.close()
        self.member.revoke_all()


wire.serve(Driver())
