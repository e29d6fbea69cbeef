import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** The driver of Apache Kafka's own client, with the classic group protocol. Protocol: ../../PROTOCOL.md. */
public final class Driver {
    private static final PrintStream OUT = System.out;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, KafkaProducer<String, String>> transactional = new HashMap<>();
    private final Set<String> hanging = new HashSet<>();
    private KafkaConsumer<String, String> consumer;
    private String topic;
    private final TreeSet<Integer> owned = new TreeSet<>();

    public static void main(String[] args) throws InterruptedException {
        System.setOut(System.err); // log4j's default: it complains on stdout, which is the protocol's
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines().forEach(commands::add);
            commands.add("{\"do\":\"quit\"}");
        });
        reader.setDaemon(true);
        reader.start();
        new Driver().serve(commands);
    }

    /** Commands and, between them, polls, in one thread: the consumer allows no other. */
    private void serve(BlockingQueue<String> commands) throws InterruptedException {
        while (true) {
            if (consumer != null && commands.isEmpty()) {
                poll();
                continue;
            }
            ObjectNode reply = JSON.createObjectNode();
            try {
                JsonNode command = JSON.readTree(commands.take());
                reply.set("re", command.get("id"));
                run(command, reply);
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) { // whatever the client says is the answer
                reply.put("error", oneLine(e));
            }
            send(reply);
        }
    }

    private void run(JsonNode command, ObjectNode reply) throws Exception {
        switch (command.get("do").asText()) {
            case "info" -> info(reply);
            case "create" -> create(command);
            case "produce" -> produce(command, reply);
            case "txn" -> txn(command);
            case "join" -> join(command);
            case "commit" -> commit(reply);
            case "leave" -> leave();
            case "quit" -> {
                if (reply.hasNonNull("re")) {
                    send(reply);
                }
                Runtime.getRuntime().halt(0); // without the clients' own waiting for what nobody waits for
            }
            default -> throw new IllegalArgumentException("no such command: " + command);
        }
    }

    private static void info(ObjectNode reply) {
        reply.put("client", "Java kafka-clients").put("version", AppInfoParser.getVersion()).put("language", "Java");
        reply.set("codecs", JSON.valueToTree(List.of("none", "gzip", "snappy", "lz4", "zstd")));
        reply.set("features", JSON.valueToTree(List.of("admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions")));
    }

    private static Map<String, Object> common() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", System.getenv("BOOTSTRAP"));
        settings.put("reconnect.backoff.max.ms", 500); // 1 s: the protocol's, so that a restarted broker is found at once
        return settings;
    }

    private void create(JsonNode command) throws Exception {
        try (Admin admin = Admin.create(common())) {
            NewTopic wanted = new NewTopic(command.get("topic").asText(), command.get("partitions").asInt(), (short) 1);
            admin.createTopics(List.of(wanted)).all().get();
        } catch (ExecutionException e) {
            throw (Exception) e.getCause();
        }
    }

    private void produce(JsonNode command, ObjectNode reply) throws Exception {
        String codec = command.get("codec").asText();
        boolean idempotent = command.get("idempotent").asBoolean();
        KafkaProducer<String, String> producer = producers.computeIfAbsent(codec + idempotent, k -> {
            Map<String, Object> settings = common();
            settings.put("acks", "all");
            settings.put("compression.type", codec);
            settings.put("enable.idempotence", idempotent);
            return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        });
        int from = command.get("from").asInt();
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (int i = from; i < from + command.get("count").asInt(); i++) {
            int partition = i % command.get("partitions").asInt();
            ProducerRecord<String, String> record =
                new ProducerRecord<>(command.get("topic").asText(), partition, "key-" + i, "value-" + i + "-" + "x".repeat(200));
            record.headers().add("h", Integer.toString(i).getBytes(StandardCharsets.UTF_8));
            futures.add(producer.send(record));
        }
        producer.flush();
        List<long[]> acked = new ArrayList<>();
        try {
            for (Future<RecordMetadata> future : futures) {
                RecordMetadata m = future.get();
                acked.add(new long[] {from + acked.size(), m.partition(), m.offset()});
            }
        } catch (ExecutionException e) {
            throw (Exception) e.getCause();
        }
        reply.set("acked", JSON.valueToTree(acked));
    }

    /** One transaction, or more of one that hangs. */
    private void txn(JsonNode command) throws Exception {
        String id = command.get("transactional_id").asText();
        KafkaProducer<String, String> producer = transactional.get(id);
        if (producer == null) {
            Map<String, Object> settings = common();
            settings.put("transactional.id", id);
            if (command.has("timeout")) {
                settings.put("transaction.timeout.ms", command.get("timeout").asInt());
            }
            producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            transactional.put(id, producer);
            producer.initTransactions();
        }
        if (!hanging.remove(id)) {
            producer.beginTransaction();
        }
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        int from = command.get("from").asInt();
        for (int i = from; i < from + command.get("count").asInt(); i++) {
            ProducerRecord<String, String> record = new ProducerRecord<>(
                command.get("topic").asText(), i % command.get("partitions").asInt(), "key-" + i, "value-" + i + "-" + "x".repeat(200));
            record.headers().add("h", Integer.toString(i).getBytes(StandardCharsets.UTF_8));
            futures.add(producer.send(record));
        }
        producer.flush();
        try {
            for (Future<RecordMetadata> future : futures) {
                future.get();
            }
        } catch (ExecutionException e) {
            throw (Exception) e.getCause();
        }
        if (!command.path("group").asText("").isEmpty()) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            command.get("offsets").fields().forEachRemaining(o -> offsets.put(
                new TopicPartition(command.get("topic").asText(), Integer.parseInt(o.getKey())), new OffsetAndMetadata(o.getValue().asLong())));
            producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(command.get("group").asText()));
        }
        switch (command.get("end").asText()) {
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> hanging.add(id);
        }
    }

    private void join(JsonNode command) {
        Map<String, Object> settings = common();
        settings.put("group.id", command.get("group").asText());
        settings.put("partition.assignment.strategy", ASSIGNORS.get(command.get("assignor").asText()));
        settings.put("isolation.level", command.path("isolation").asText("read_uncommitted"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        // The protocol's: a member that is gone is noticed within the test's patience.
        settings.put("session.timeout.ms", 10_000);
        settings.put("heartbeat.interval.ms", 500);
        settings.put("max.poll.interval.ms", 10_000);
        if (!command.path("instance").asText("").isEmpty()) {
            settings.put("group.instance.id", command.get("instance").asText());
        }
        topic = command.get("topic").asText();
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic), new Listener());
    }

    private void poll() {
        try {
            for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) {
                ObjectNode event = JSON.createObjectNode().put("event", "record").put("partition", r.partition()).put("offset", r.offset());
                event.put("key", r.key()).put("value", r.value());
                event.put("header", new String(r.headers().lastHeader("h").value(), StandardCharsets.UTF_8));
                send(event);
            }
        } catch (RuntimeException e) {
            consumer = null;
            send(JSON.createObjectNode().put("event", "closed").put("error", oneLine(e)));
        }
    }

    private void commit(ObjectNode reply) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        TreeMap<Integer, Long> committed = new TreeMap<>();
        for (int p : owned) {
            TopicPartition at = new TopicPartition(topic, p);
            committed.put(p, consumer.position(at));
            offsets.put(at, new OffsetAndMetadata(committed.get(p)));
        }
        consumer.commitSync(offsets);
        reply.set("committed", JSON.valueToTree(committed));
    }

    private void leave() {
        try {
            consumer.close(); // calls the listener
        } finally {
            consumer = null;
        }
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            List<Integer> numbers = numbers(partitions);
            owned.addAll(numbers);
            changed(JSON.createObjectNode().put("event", "assigned"), numbers);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            List<Integer> numbers = numbers(partitions);
            owned.removeAll(numbers);
            changed(JSON.createObjectNode().put("event", "revoked"), numbers);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            List<Integer> numbers = numbers(partitions);
            owned.removeAll(numbers);
            changed(JSON.createObjectNode().put("event", "revoked").put("lost", true), numbers);
        }

        private void changed(ObjectNode event, List<Integer> partitions) {
            event.set("partitions", JSON.valueToTree(partitions));
            event.set("owned", JSON.valueToTree(owned));
            send(event);
        }

        private static List<Integer> numbers(Collection<TopicPartition> partitions) {
            return partitions.stream().map(TopicPartition::partition).sorted().toList();
        }
    }

    /** Writes one line, at once. */
    private static synchronized void send(ObjectNode line) {
        OUT.println(line);
        OUT.flush();
    }

    private static String oneLine(Throwable e) {
        return e.toString().replaceAll("\\s+", " ");
    }
}
