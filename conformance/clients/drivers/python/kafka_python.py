"""The driver of kafka-python. Protocol: ../../PROTOCOL.md."""

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

import wire

COMMON = {
    "bootstrap_servers": wire.BOOTSTRAP,
    "reconnect_backoff_max_ms": 500,  # 30 s: so that a restarted broker is found at once
}
ASSIGNORS = {"range": RangePartitionAssignor, "cooperative": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.assigned([p.partition for p in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.revoked([p.partition for p in revoked])

    def on_partitions_lost(self, lost):
        self.member.revoked([p.partition for p in lost], lost=True)


class Driver:
    joined = False

    def __init__(self):
        self.producers, self.transactional, self.hanging = {}, {}, set()

    def info(self, _):
        return {
            "client": "kafka-python",
            "version": kafka.__version__,
            "language": "Python",
            "codecs": wire.CODECS,
            "features": ["admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions"],
        }

    def create(self, command):
        admin = KafkaAdminClient(**COMMON)
        try:
            admin.create_topics({command["topic"]: {"num_partitions": command["partitions"], "replication_factor": 1}})
        finally:
            admin.close()

    def produce(self, command):
        key = command["codec"], command["idempotent"]
        if key not in self.producers:
            codec = None if key[0] == "none" else key[0]
            self.producers[key] = KafkaProducer(acks="all", compression_type=codec, enable_idempotence=key[1], **COMMON)
        producer, futures = self.producers[key], []
        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            futures.append((i, producer.send(command["topic"], v, k, headers, i % command["partitions"])))
        producer.flush()
        acks = [(i, future.get(timeout=60)) for i, future in futures]
        return {"acked": [[i, ack.partition, ack.offset] for i, ack in acks]}

    def txn(self, command):
        id = command["transactional_id"]
        if id not in self.transactional:
            timeout = {"transaction_timeout_ms": command["timeout"]} if "timeout" in command else {}
            producer = KafkaProducer(transactional_id=id, **timeout, **COMMON)
            producer.init_transactions()
            self.transactional[id] = producer
        producer, futures = self.transactional[id], []
        if id not in self.hanging:
            producer.begin_transaction()
        self.hanging.discard(id)
        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            futures.append(producer.send(command["topic"], v, k, headers, i % command["partitions"]))
        producer.flush()
        for future in futures:
            future.get(timeout=60)
        if command.get("group"):
            offsets = {TopicPartition(command["topic"], int(p)): OffsetAndMetadata(offset, "", -1) for p, offset in command["offsets"].items()}
            producer.send_offsets_to_transaction(offsets, command["group"])
        if command["end"] == "commit":
            producer.commit_transaction()
        elif command["end"] == "abort":
            producer.abort_transaction()
        else:
            self.hanging.add(id)

    def join(self, command):
        self.topic, self.member = command["topic"], wire.Member()
        self.consumer = KafkaConsumer(
            group_id=command["group"],
            group_instance_id=command["instance"] or None,
            partition_assignment_strategy=[ASSIGNORS[command["assignor"]]],
            isolation_level=command.get("isolation") or "read_uncommitted",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # The protocol's: a member that is gone is noticed within the test's patience.
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            max_poll_interval_ms=10_000,
            **COMMON,
        )
        self.consumer.subscribe([self.topic], listener=Listener(self.member))
        # The topic is looked up before the first poll. Else a member that is made the leader at once shares out no partitions, as it knows none
        # yet, joins again when it does, and with a poll() shorter than that forgets that it is joining: 3.0.12 then sends no heartbeat any more.
        self.consumer.partitions_for_topic(self.topic)
        self.joined = True

    def poll(self):
        for at, records in self.consumer.poll(timeout_ms=100).items():
            for r in records:
                self.member.record(at.partition, r.offset, r.key, r.value, r.headers)

    def commit(self, _):
        at = {p: self.consumer.position(TopicPartition(self.topic, p)) for p in sorted(self.member.owned)}
        self.consumer.commit({TopicPartition(self.topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in at.items()})
        return {"committed": {str(p): offset for p, offset in at.items()}}

    def leave(self, _):
        self.joined = False
        self.consumer.close()
        self.member.revoke_all()


wire.serve(Driver())
