import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.util.TopicAdmin;

/**
 * What programs do that keep their state in a topic.
 *
 * First, Connect's check of the topics' cleanup.policy. Then a topic as Debezium makes one for the history of a schema. Then, for each line of the
 * input, what a schema registry does: it writes schemas, and tombstones of those that are deleted, to a topic of one partition that is compacted, then a
 * record of the key NOOP, and a reader from the beginning, which is done when it has read that record, holds all of them.
 *
 * Arguments: BOOTSTRAP. Writes "round: READ of WRITTEN" for each line, and ends with an error where something is wrong.
 */
public final class Internal {
    private static final TopicPartition SCHEMAS = new TopicPartition("_schemas", 0);

    private Internal() {
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("reconnect.backoff.max.ms", "200");
        p.put("acks", "all");
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        policies(p);
        history(p);
        try (Admin admin = Admin.create(p)) {
            admin.createTopics(List.of(new NewTopic(SCHEMAS.topic(), 1, (short) 1).configs(Map.of("cleanup.policy", "compact", "delete.retention.ms", "0")))).all().get();
        }
        rounds(p);
    }

    /** Connect wants a topic that is there already to be compacted, and only that. */
    private static void policies(Properties p) throws Exception {
        Map<String, Object> config = new HashMap<>();
        p.forEach((key, value) -> config.put(key.toString(), value));
        try (TopicAdmin admin = new TopicAdmin(config); Admin plain = Admin.create(p)) {
            for (String policy : new String[] {"compact", "delete", "compact,delete"}) {
                String topic = policy.replace(',', '-');
                plain.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()).configs(Map.of("cleanup.policy", policy)))).all().get();
                String refused = "";
                try {
                    if (!admin.verifyTopicCleanupPolicyOnlyCompact(topic, "offset.storage.topic", "of a test")) {
                        throw new IllegalStateException("the policy of " + topic + " is not told");
                    }
                } catch (ConfigException e) {
                    refused = e.getMessage();
                }
                boolean wanted = policy.equals("compact");
                if (wanted != refused.isEmpty() || !wanted && !refused.contains("required to have 'cleanup.policy=compact'")) {
                    throw new IllegalStateException(topic + ": " + refused);
                }
            }
        }
    }

    /** Debezium's KafkaSchemaHistory asks the broker for its default, and makes a topic that keeps everything. */
    private static void history(Properties p) throws Exception {
        try (Admin admin = Admin.create(p)) {
            String node = admin.describeCluster().nodes().get().iterator().next().idString();
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node);
            short replicas = Short.parseShort(admin.describeConfigs(List.of(broker)).all().get().get(broker).get("default.replication.factor").value());
            Map<String, String> forEver = Map.of("cleanup.policy", "delete", "retention.ms", Long.toString(Long.MAX_VALUE), "retention.bytes", "-1");
            admin.createTopics(List.of(new NewTopic("schema-history", 1, replicas).configs(forEver))).all().get();
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "schema-history");
            Config got = admin.describeConfigs(List.of(topic)).all().get().get(topic);
            forEver.forEach((name, value) -> {
                if (!got.get(name).value().equals(value)) {
                    throw new IllegalStateException(name + " is " + got.get(name).value());
                }
            });
        }
    }

    private static void rounds(Properties p) throws Exception {
        Map<String, String> model = new TreeMap<>();
        Random random = new Random(7);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int written = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            System.out.println("begins");
            while (in.readLine() != null) {
                for (int i = 0; i < 200; i++, written++) {
                    String key = "{\"keytype\":\"SCHEMA\",\"subject\":\"s" + random.nextInt(20) + "\",\"version\":" + random.nextInt(3) + "}";
                    String value = random.nextInt(4) == 0 ? null : "{\"id\":" + written + "}";
                    if (value == null) {
                        model.remove(key);
                    } else {
                        model.put(key, value);
                    }
                    producer.send(new ProducerRecord<>(SCHEMAS.topic(), 0, key, value));
                }
                long last = producer.send(new ProducerRecord<>(SCHEMAS.topic(), 0, "NOOP", "")).get().offset();
                written++;
                System.out.println("round: " + readTo(p, last, model) + " of " + written);
            }
        }
    }

    /** Reads from the beginning to an offset, holds that against the model, and returns how many records there are. */
    private static int readTo(Properties p, long last, Map<String, String> model) {
        Map<String, String> got = new TreeMap<>();
        int records = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(SCHEMAS));
            consumer.seekToBeginning(List.of(SCHEMAS));
            for (long at = -1; at < last;) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (record.offset() <= at) {
                        throw new IllegalStateException("offset " + record.offset() + " after " + at);
                    }
                    at = record.offset();
                    records++;
                    if (record.value() == null) {
                        got.remove(record.key());
                    } else if (!record.key().equals("NOOP")) {
                        got.put(record.key(), record.value());
                    }
                }
            }
        }
        if (!got.equals(model)) {
            throw new IllegalStateException("it holds " + got + " and not " + model);
        }
        return records;
    }
}
