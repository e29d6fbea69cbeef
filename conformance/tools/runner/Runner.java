import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's tools one after the other in one JVM, because a JVM's start costs more than most of them. A line of standard
 * input is "class stdin arg...", with all but the class in Base64; the line that answers it is "exit-status stdout stderr".
 *
 * Each call has a class loader of its own for the tools' jar (some keep counters in static fields), and streams of its own, which the threads that
 * it starts inherit. Exit.exit ends the call: its output is what was written until then.
 */
public final class Runner {
    /** How long a call may take: a tool that never ends is told as status -1. */
    private static final long LIMIT_SECONDS = 90;

    private static final InheritableThreadLocal<Call> CURRENT = new InheritableThreadLocal<>();

    /** What a tool's thread unwinds with after Exit.exit, so that the tool closes its clients. */
    private static final class Exited extends Error {
        Exited() {
            super("exit", null, false, false);
        }
    }

    private static final class Call {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final ByteArrayOutputStream err = new ByteArrayOutputStream();
        private final InputStream in;
        private final CountDownLatch done = new CountDownLatch(1);
        private int status;

        Call(byte[] stdin) {
            in = new ByteArrayInputStream(stdin);
        }

        synchronized void write(boolean toErr, byte[] b, int off, int len) {
            if (done.getCount() > 0) {
                (toErr ? err : out).write(b, off, len);
            }
        }

        /** Only the first end counts. */
        synchronized void end(int s) {
            if (done.getCount() > 0) {
                status = s;
                done.countDown();
            }
        }
    }

    private static final class Streams extends OutputStream {
        private final boolean err;

        Streams(boolean err) {
            this.err = err;
        }

        @Override
        public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] b, int off, int len) {
            Call call = CURRENT.get();
            if (call != null) {
                call.write(err, b, off, len);
            }
        }
    }

    private static final class Stdin extends InputStream {
        @Override
        public int read() throws IOException {
            return CURRENT.get().in.read();
        }

        @Override
        public int read(byte[] b, int off, int len) throws IOException {
            return CURRENT.get().in.read(b, off, len);
        }

        @Override
        public int available() throws IOException {
            return CURRENT.get().in.available();
        }
    }

    public static void main(String[] args) throws Exception {
        URL toolsJar = Path.of(args[0]).toUri().toURL();
        PrintStream answers = System.out;
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        System.setOut(new PrintStream(new Streams(false), true));
        System.setErr(new PrintStream(new Streams(true), true));
        System.setIn(new Stdin());
        Exit.Procedure exit = (status, message) -> {
            CURRENT.get().end(status);
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, hook) -> { });
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            String[] words = line.split(" ", -1);
            String[] toolArgs = Arrays.stream(words).skip(2).map(w -> new String(decode(w), StandardCharsets.UTF_8)).toArray(String[]::new);
            Call call = new Call(decode(words[1]));
            Thread thread = new Thread(() -> run(call, toolsJar, words[0], toolArgs), "main");
            thread.setDaemon(true);
            thread.start();
            if (!call.done.await(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                call.end(-1);
            }
            Base64.Encoder base64 = Base64.getEncoder();
            answers.println(call.status + " " + base64.encodeToString(call.out.toByteArray()) + " " + base64.encodeToString(call.err.toByteArray()));
            answers.flush();
        }
    }

    private static byte[] decode(String word) {
        return Base64.getDecoder().decode(word);
    }

    private static void run(Call call, URL toolsJar, String className, String[] args) {
        CURRENT.set(call);
        try {
            ClassLoader loader = new URLClassLoader(new URL[] {toolsJar}, Runner.class.getClassLoader());
            Thread.currentThread().setContextClassLoader(loader);
            loader.loadClass(className).getMethod("main", String[].class).invoke(null, (Object) args);
            call.end(0);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) { // as the JVM does with what main throws
                System.err.print("Exception in thread \"main\" ");
                e.getCause().printStackTrace();
            }
            call.end(1);
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            call.end(1);
        }
    }
}
