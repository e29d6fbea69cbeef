import java.io.IOException;
import java.io.InputStreamReader;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Three stores, each with a changelog topic, out of the topic "updates", where no value is a deletion:
 *
 * "latest", a table: the value of each key.
 * "sums", an aggregate: how many updates a key has had since it was deleted, and its value. With at_least_once the value alone.
 * "windows", counts of ten seconds by the key's last character, by way of a repartition topic; its changelog is compacted and deleted from.
 *
 * Commands on its input: "dump FILE" writes the stores into a file, "close" ends it in order.
 *
 * Arguments: BOOTSTRAP STATE-DIRECTORY GUARANTEE SEGMENT-BYTES DELETE-RETENTION-MS
 */
public final class Table {
    private static final long WINDOW_MS = 10_000;

    private Table() {
    }

    public static void main(String[] args) throws IOException {
        boolean exactly = args[2].equals(StreamsConfig.EXACTLY_ONCE_V2);
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "table");
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        p.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[2]);
        p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        p.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 1000);
        p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0); // so that every update is a record
        p.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        p.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 10_000);
        p.put("reconnect.backoff.max.ms", 200); // so that a restarted broker is found at once

        KafkaStreams streams = new KafkaStreams(topology(exactly, Map.of("internal.segment.bytes", args[3], "min.cleanable.dirty.ratio", "0",
            "delete.retention.ms", args[4])).build(), p);
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("replaced: " + error.toString().replaceAll("\\s+", " "));
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println("state: " + now));
        streams.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("close"); line = commands.readLine()) {
            dump(streams, Path.of(line.substring("dump ".length())));
        }
        streams.close(CloseOptions.timeout(Duration.ofSeconds(30)).withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        System.out.println("closed");
    }

    private static StreamsBuilder topology(boolean exactly, Map<String, String> changelog) {
        Serde<String> text = Serdes.String();
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> latest = builder.table("updates", Consumed.with(text, text),
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("latest").withLoggingEnabled(changelog));
        latest.toStream()
            .mapValues(value -> value == null ? "" : value) // an aggregate skips what has no value
            .groupByKey(Grouped.with(text, text))
            .aggregate(() -> null, (key, value, sum) -> value.isEmpty() ? null : exactly ? add(sum) + " " + value : value,
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("sums").withKeySerde(text).withValueSerde(text).withLoggingEnabled(changelog));
        latest.toStream()
            .mapValues(value -> "")
            .groupBy((key, value) -> key.substring(key.length() - 1), Grouped.with(text, text))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(WINDOW_MS), Duration.ofMinutes(30)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withRetention(Duration.ofHours(1)).withLoggingEnabled(changelog));
        return builder;
    }

    private static int add(String sum) {
        return sum == null ? 1 : 1 + Integer.parseInt(sum.substring(0, sum.indexOf(' ')));
    }

    /** Writes "store TAB key TAB value" lines, and puts them in place when they are all there. */
    private static void dump(KafkaStreams streams, Path file) throws IOException {
        Path part = Path.of(file + ".part");
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(part))) {
            for (String name : new String[] {"latest", "sums"}) {
                try (KeyValueIterator<String, String> all = streams.store(
                    StoreQueryParameters.fromNameAndType(name, QueryableStoreTypes.<String, String>keyValueStore())).all()) {
                    while (all.hasNext()) {
                        KeyValue<String, String> next = all.next();
                        out.println(name + "\t" + next.key + "\t" + next.value);
                    }
                }
            }
            try (KeyValueIterator<Windowed<String>, Long> all = streams.store(
                StoreQueryParameters.fromNameAndType("windows", QueryableStoreTypes.<String, Long>windowStore())).all()) {
                while (all.hasNext()) {
                    KeyValue<Windowed<String>, Long> next = all.next();
                    out.println("windows\t" + next.key.key() + "@" + next.key.window().start() + "\t" + next.value);
                }
            }
        } catch (RuntimeException e) { // a store that migrates, or is not there yet
            System.out.println("no dump: " + e.toString().replaceAll("\\s+", " "));
            return;
        }
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    }
}
