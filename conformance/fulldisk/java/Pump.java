import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends numbered records of 1 KiB to partition 0 of a topic, with Apache Kafka's producer as it comes (idempotent, acks=all), until its
 * standard input ends; then waits for all answers. Prints "ack NUMBER OFFSET" for each that is acknowledged, "failed NUMBER ERROR" for each that is given up.
 * Arguments: bootstrap, topic, records per second.
 */
public final class Pump {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("key.serializer", StringSerializer.class.getName());
        config.put("value.serializer", StringSerializer.class.getName());
        config.put("delivery.timeout.ms", "240000");
        config.put("max.block.ms", "240000");
        config.put("retry.backoff.max.ms", "200");
        config.put("reconnect.backoff.max.ms", "200");
        long pause = 1_000_000_000L / Integer.parseInt(args[2]);
        Thread end = new Thread(() -> new BufferedReader(new InputStreamReader(System.in)).lines().forEach(line -> { }));
        end.setDaemon(true);
        end.start();
        String filler = " " + "x".repeat(1000);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
            for (int n = 0; end.isAlive(); n++) {
                int number = n;
                producer.send(new ProducerRecord<>(args[1], 0, null, number + filler), (at, e) -> print(number, e == null ? at.offset() : -1, e));
                long until = System.nanoTime() + pause;
                while (System.nanoTime() < until) {
                    java.util.concurrent.locks.LockSupport.parkNanos(until - System.nanoTime());
                }
            }
            producer.flush();
        }
    }

    private static synchronized void print(int number, long offset, Exception e) {
        System.out.println(e == null ? "ack " + number + " " + offset : "failed " + number + " " + e);
        System.out.flush();
    }
}
