import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * How long a new consumer of a fresh group takes from subscribe to its first record, in one JVM: a line of microseconds for each run, after
 * ten that warm the JVM up.
 *
 * Arguments: BOOTSTRAP TOPIC GROUP-PREFIX RUNS
 */
public final class FirstRecord {
    private static final int WARM_UP = 10;

    private FirstRecord() {
    }

    public static void main(String[] args) {
        int runs = Integer.parseInt(args[3]);
        for (int i = -WARM_UP; i < runs; i++) {
            Properties p = new Properties();
            p.put("bootstrap.servers", args[0]);
            p.put("group.id", args[2] + i);
            p.put("auto.offset.reset", "earliest");
            p.put("key.deserializer", ByteArrayDeserializer.class.getName());
            p.put("value.deserializer", ByteArrayDeserializer.class.getName());
            long began = System.nanoTime();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p)) {
                consumer.subscribe(List.of(args[1]));
                while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
                    if (System.nanoTime() - began > 30_000_000_000L) {
                        throw new IllegalStateException("no record within 30 s");
                    }
                }
                if (i >= 0) {
                    System.out.println((System.nanoTime() - began) / 1000);
                }
            }
        }
    }
}
