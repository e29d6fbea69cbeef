import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The workload of TestJava: for each codec, a topic is created, filled by the default (idempotent, acks=all) producer, read back by a consumer
 * with assigned partitions, asked about through the Admin client, and deleted. What was consumed goes to OUT-DIR/CODEC.tsv (partition, tab,
 * value) for the test to compare; everything else is checked here. Any failure is an uncaught exception.
 *
 * Arguments: BOOTSTRAP LINES-FILE OUT-DIR PARTITIONS CODEC...
 */
public final class Workload {
    private final String bootstrap;
    private final List<String> lines;
    private final int partitions;

    private Workload(String bootstrap, List<String> lines, int partitions) {
        this.bootstrap = bootstrap;
        this.lines = lines;
        this.partitions = partitions;
    }

    public static void main(String[] args) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(args[1]));
        Workload w = new Workload(args[0], lines, Integer.parseInt(args[3]));
        try (Admin admin = Admin.create(w.properties())) {
            w.describeCluster(admin);
            for (int i = 4; i < args.length; i++) {
                w.run(admin, args[i], Path.of(args[2], args[i] + ".tsv"));
            }
        }
    }

    private void run(Admin admin, String codec, Path out) throws Exception {
        String topic = "java-" + codec;
        long start = System.currentTimeMillis();
        create(admin, topic);
        produce(topic, codec);
        consume(topic, out);
        offsets(admin, topic, start);
        delete(admin, topic);
        System.out.printf("codec=%s produced=%d ms=%d%n", codec, lines.size(), System.currentTimeMillis() - start);
    }

    private void describeCluster(Admin admin) throws Exception {
        var cluster = admin.describeCluster();
        check(cluster.nodes().get().size() == 1, "one node: " + cluster.nodes().get());
        int id = cluster.controller().get().id();
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(id));
        Config config = admin.describeConfigs(List.of(broker)).all().get().get(broker);
        check(config.get("num.partitions") != null, "a broker config num.partitions");
        System.out.printf("clusterId=%s brokerConfigs=%d%n", cluster.clusterId().get(), config.entries().size());
    }

    private void create(Admin admin, String topic) throws Exception {
        NewTopic wanted = new NewTopic(topic, partitions, (short) 1).configs(Map.of("retention.ms", "86400000"));
        var created = admin.createTopics(List.of(wanted));
        created.all().get();
        check(created.numPartitions(topic).get() == partitions, "partitions of the created topic");
        expect(TopicExistsException.class, admin.createTopics(List.of(wanted)).all());

        TopicDescription d = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        check(d.partitions().size() == partitions && d.partitions().get(0).leader() != null, "description " + d);
        check(d.topicId().equals(created.topicId(topic).get()), "topic id of create and of describe");
        check(admin.describeTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(d.topicId()))).allTopicIds().get()
            .get(d.topicId()).name().equals(topic), "describe by topic id");

        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        check(config.get("retention.ms").value().equals("86400000"), "retention.ms " + config.get("retention.ms"));
        check(config.get("cleanup.policy").isDefault(), "cleanup.policy is a default");
    }

    private void produce(String topic, String codec) throws Exception {
        Properties p = properties();
        p.put("compression.type", codec);
        p.put("linger.ms", "5");
        List<Future<RecordMetadata>> acknowledgements = new ArrayList<>(lines.size());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            check(producer.partitionsFor(topic).size() == partitions, "partitionsFor");
            for (int i = 0; i < lines.size(); i++) {
                ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, i % partitions, key(i), lines.get(i).getBytes(StandardCharsets.UTF_8));
                r.headers().add("n", Integer.toString(i).getBytes(StandardCharsets.UTF_8));
                acknowledgements.add(producer.send(r));
            }
            producer.flush();
            double rate = producer.metrics().values().stream().filter(m -> m.metricName().name().equals("compression-rate-avg") && m.metricName().group().equals("producer-metrics"))
                .mapToDouble(m -> (Double) m.metricValue()).findFirst().orElse(1);
            check(codec.equals("none") == (rate > 0.95), "compression rate " + rate + " with codec " + codec);
        }
        for (int i = 0; i < acknowledgements.size(); i++) {
            RecordMetadata m = acknowledgements.get(i).get();
            check(m.partition() == i % partitions && m.offset() == i / partitions, "record " + i + " acknowledged as " + m);
        }
    }

    private void consume(String topic, Path out) throws Exception {
        List<TopicPartition> assigned = new ArrayList<>();
        for (int i = 0; i < partitions; i++) {
            assigned.add(new TopicPartition(topic, i));
        }
        Properties p = properties();
        p.put("isolation.level", "read_committed");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
             BufferedWriter w = Files.newBufferedWriter(out)) {
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long end = consumer.endOffsets(assigned).values().stream().mapToLong(Long::longValue).sum();
            check(end == lines.size(), "end offsets add up to " + end);
            long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            for (int seen = 0; seen < end; ) {
                check(System.nanoTime() < deadline, "only " + seen + " records of " + end + " within a minute");
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
                    int n = (int) r.offset() * partitions + r.partition();
                    String header = new String(r.headers().lastHeader("n").value(), StandardCharsets.UTF_8);
                    check(header.equals(Integer.toString(n)) && java.util.Arrays.equals(r.key(), key(n)), "key and header of " + r);
                    w.write(r.partition() + "\t" + new String(r.value(), StandardCharsets.UTF_8) + "\n");
                    seen++;
                }
            }
            check(consumer.poll(Duration.ofMillis(100)).isEmpty(), "nothing comes after the end");
            seekByTime(consumer, assigned.get(0));
        }
    }

    /** A timestamp finds the first record that is not older. */
    private void seekByTime(KafkaConsumer<byte[], byte[]> consumer, TopicPartition tp) {
        consumer.seek(tp, lines.size() / partitions / 2);
        ConsumerRecord<byte[], byte[]> r = null;
        for (int i = 0; i < 30 && r == null; i++) {
            r = consumer.poll(Duration.ofSeconds(1)).records(tp).stream().findFirst().orElse(null);
        }
        check(r != null && r.offset() == lines.size() / partitions / 2, "a seek to the middle gives " + r);
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(tp, r.timestamp())).get(tp);
        check(found.offset() <= r.offset() && found.timestamp() == r.timestamp(), "offsetsForTimes gives " + found + " for " + r);
    }

    private void offsets(Admin admin, String topic, long start) throws Exception {
        TopicPartition tp = new TopicPartition(topic, 0);
        long count = (lines.size() + partitions - 1) / partitions;
        Map<OffsetSpec, Long> want = new HashMap<>();
        want.put(OffsetSpec.earliest(), 0L);
        want.put(OffsetSpec.latest(), count);
        want.put(OffsetSpec.forTimestamp(start), 0L);
        want.put(OffsetSpec.forTimestamp(System.currentTimeMillis() + 3_600_000), -1L);
        for (Map.Entry<OffsetSpec, Long> e : want.entrySet()) {
            ListOffsetsResultInfo got = admin.listOffsets(Map.of(tp, e.getKey())).partitionResult(tp).get();
            check(got.offset() == e.getValue(), e.getKey() + " gives " + got + ", want " + e.getValue());
        }
        ListOffsetsResultInfo newest = admin.listOffsets(Map.of(tp, OffsetSpec.maxTimestamp())).partitionResult(tp).get();
        check(newest.offset() >= 0 && newest.offset() < count && newest.timestamp() >= start, "max timestamp gives " + newest);
    }

    private void delete(Admin admin, String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (admin.listTopics().names().get().contains(topic)) {
            check(System.nanoTime() < deadline, topic + " is still listed after it was deleted");
        }
        expect(UnknownTopicOrPartitionException.class, admin.describeTopics(List.of(topic)).allTopicNames());
        expect(UnknownTopicOrPartitionException.class, admin.deleteTopics(List.of(topic)).all());
    }

    private static byte[] key(int n) {
        return n % 10 == 0 ? null : ("key-" + n).getBytes(StandardCharsets.UTF_8);
    }

    private Properties properties() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        return p;
    }

    private static void expect(Class<? extends Throwable> want, Future<?> answer) throws InterruptedException {
        try {
            answer.get();
        } catch (ExecutionException e) {
            check(want.isInstance(e.getCause()), "want " + want.getSimpleName() + ", got " + e.getCause());
            return;
        }
        check(false, "want " + want.getSimpleName() + ", got success");
    }

    private static void check(boolean ok, String what) {
        if (!ok) {
            throw new IllegalStateException("not so: " + what);
        }
    }
}
