"""The driver of aiokafka. Protocol: ../../PROTOCOL.md."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

import wire


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.assigned([p.partition for p in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.revoked([p.partition for p in revoked])


class Driver:
    def __init__(self):
        self.producers, self.transactional, self.hanging = {}, {}, set()
        self.polling = None

    async def info(self, _):
        return {
            "client": "aiokafka",
            "version": aiokafka.__version__,
            "language": "Python",
            "codecs": wire.CODECS,
            "features": ["admin", "idempotent", "range", "commit", "headers", "static", "transactions"],
        }

    async def create(self, command):
        admin = AIOKafkaAdminClient(bootstrap_servers=wire.BOOTSTRAP)
        await admin.start()
        try:
            response = await admin.create_topics([NewTopic(command["topic"], command["partitions"], 1)])
        finally:
            await admin.close()
        for name, code, *message in response.topic_errors:  # this client does not raise them
            if code != 0:
                raise RuntimeError(f"{name}: error {code} {message}")

    async def produce(self, command):
        key = command["codec"], command["idempotent"]
        if key not in self.producers:
            codec = None if key[0] == "none" else key[0]
            producer = AIOKafkaProducer(bootstrap_servers=wire.BOOTSTRAP, acks="all", compression_type=codec, enable_idempotence=key[1])
            await producer.start()
            self.producers[key] = producer
        producer, futures = self.producers[key], []
        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            futures.append(await producer.send(command["topic"], v, k, i % command["partitions"], headers=headers))
        acks = await asyncio.gather(*futures)
        return {"acked": [[command["from"] + n, ack.partition, ack.offset] for n, ack in enumerate(acks)]}

    async def txn(self, command):
        id = command["transactional_id"]
        if id not in self.transactional:
            timeout = {"transaction_timeout_ms": command["timeout"]} if "timeout" in command else {}
            producer = AIOKafkaProducer(bootstrap_servers=wire.BOOTSTRAP, transactional_id=id, **timeout)
            await producer.start()
            self.transactional[id] = producer
        producer, futures = self.transactional[id], []
        if id not in self.hanging:
            await producer.begin_transaction()
        self.hanging.discard(id)
        for i in range(command["from"], command["from"] + command["count"]):
            k, v, headers = wire.record(i)
            futures.append(await producer.send(command["topic"], v, k, i % command["partitions"], headers=headers))
        await asyncio.gather(*futures)
        if command.get("group"):
            offsets = {TopicPartition(command["topic"], int(p)): offset for p, offset in command["offsets"].items()}
            await producer.send_offsets_to_transaction(offsets, command["group"])
        if command["end"] == "commit":
            await producer.commit_transaction()
        elif command["end"] == "abort":
            await producer.abort_transaction()
        else:
            self.hanging.add(id)

    async def join(self, command):
        if command["assignor"] != "range":
            raise ValueError("aiokafka has no cooperative assignor")
        self.topic, self.member = command["topic"], wire.Member()
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=wire.BOOTSTRAP,
            group_id=command["group"],
            group_instance_id=command["instance"] or None,
            partition_assignment_strategy=[RangePartitionAssignor],
            isolation_level=command.get("isolation") or "read_uncommitted",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # The protocol's: a member that is gone is noticed within the test's patience.
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            max_poll_interval_ms=10_000,
            rebalance_timeout_ms=10_000,
        )
        self.consumer.subscribe([self.topic], listener=Listener(self.member))
        await self.consumer.start()
        self.polling = asyncio.create_task(self.poll())

    async def poll(self):
        try:
            while True:
                for at, records in (await self.consumer.getmany(timeout_ms=100)).items():
                    for r in records:
                        self.member.record(at.partition, r.offset, r.key, r.value, r.headers)
        except Exception as error:
            wire.send({"event": "closed", "error": wire.one_line(error)})

    async def commit(self, _):
        at = {p: await self.consumer.position(TopicPartition(self.topic, p)) for p in sorted(self.member.owned)}
        await self.consumer.commit({TopicPartition(self.topic, p): offset for p, offset in at.items()})
        return {"committed": {str(p): offset for p, offset in at.items()}}

    async def leave(self, _):
        self.polling.cancel()
        await asyncio.gather(self.polling, return_exceptions=True)
        self.member.revoke_all()  # stop() does not call the listener
        await self.consumer.stop()


async def main():
    loop, commands, driver = asyncio.get_running_loop(), asyncio.Queue(), Driver()
    wire.read_commands(lambda command: loop.call_soon_threadsafe(commands.put_nowait, command))
    while True:
        command = await commands.get()
        if command is None or command["do"] == "quit":
            wire.quit_after(command)
        try:
            reply = await getattr(driver, command["do"])(command) or {}
        except Exception as error:  # whatever the client says is the answer
            reply = {"error": wire.one_line(error)}
        wire.send({"re": command["id"]} | reply)


asyncio.run(main())
