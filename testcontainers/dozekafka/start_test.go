package dozekafka_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/testcontainers/dozekafka"
)

// use does with a fixture what its methods are for.
func use(t *testing.T, f *dozekafka.Fixture) {
	t.Helper()
	produce(t, brokers(t, f), "orders", "a")
	consume(t, brokers(t, f), "g", "orders", "a")
	id := f.ClusterID()
	if err := f.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers(t, f), "orders", "b")
	consume(t, brokers(t, f), "g", "orders", "b")
	if len(id) != 22 || f.ClusterID() != id {
		t.Errorf("cluster id %s, was %s", f.ClusterID(), id)
	}
	url, err := f.ControlURL(t.Context())
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.") {
		t.Errorf("control URL %s, %v", url, err)
	}
	if (f.Container() == nil) == (f.Broker() == nil) {
		t.Errorf("container %v, broker %v", f.Container(), f.Broker())
	}
}

// FX-47: in the process, the same broker with the same settings, at an address that stays over a restart.
func TestStartInProcess(t *testing.T) {
	f := dozekafka.Start(t, dozekafka.WithInProcess(), dozekafka.WithTopics("orders:1"), dozekafka.WithAutoCreateTopics(false),
		testcontainers.WithEnv(map[string]string{"DOZE_KAFKA_LOG_LEVEL": "info"}), dozekafka.WithTestLog(t), dozekafka.WithStablePort())
	before := brokers(t, f)
	use(t, f)
	if now := brokers(t, f); now[0] != before[0] {
		t.Errorf("brokers %v, were %v", now, before)
	}
	if f.Broker() == nil {
		t.Error("it is in a container")
	}
}

// FX-47: Docker is taken if it can be used ...
func TestStartTakesDocker(t *testing.T) {
	needDocker(t)
	f := dozekafka.Start(t, dozekafka.WithTopics("orders:1"))
	use(t, f)
	if f.Container() == nil {
		t.Error("it is not in a container")
	}
}

// ... and else the process. TestStartDoesWithoutDocker runs this.
func TestStartWithoutDocker(t *testing.T) {
	if os.Getenv(noEngine) == "" {
		t.Skip("TestStartDoesWithoutDocker runs this")
	}
	f := dozekafka.Start(t, dozekafka.WithTopics("orders:1"))
	use(t, f)
	if f.Broker() == nil {
		t.Error("it is in a container")
	}
}

// noEngine says that there is no engine that is of use.
const noEngine = "DOZE_KAFKA_TEST_NO_ENGINE"

// An engine that does not answer, and one that runs no Linux containers. Who names an
// engine by DOCKER_HOST means that one, though testcontainers would look for another.
func TestStartDoesWithoutDocker(t *testing.T) {
	windows := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"Os":"windows","Arch":"amd64","Version":"20.10.24","ApiVersion":"1.41"}`)
	}))
	defer windows.Close()
	for engine, why := range map[string]string{
		windows.Listener.Addr().String(): "it runs windows containers",
		"127.0.0.1:1":                    "127.0.0.1:1",
	} {
		out := runSelf(t, "TestStartWithoutDocker", "DOCKER_HOST=tcp://"+engine, noEngine+"=1", "DOZE_KAFKA_REQUIRE=")
		if _, said, ok := strings.Cut(out, "(there is no Docker engine of use: "); !ok || !strings.Contains(said, why) {
			t.Errorf("the log does not say why it is in the process:\n%s", out)
		}
	}
}

// A recorder is a test that may fail without this one failing.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf(format, args...)
	for _, a := range args {
		if err, ok := a.(error); ok {
			r.fatal = err.Error()
		}
	}
	runtime.Goexit()
}

// FX-47: what only a container can have is not left out in silence.
func TestInProcessRefusesWhatNeedsAContainer(t *testing.T) {
	for want, opt := range map[string]testcontainers.ContainerCustomizer{
		"WithPersistentVolume":               dozekafka.WithPersistentVolume("v"),
		"WithBuildFromSource":                dozekafka.WithBuildFromSource(),
		"an option that sets ExposedPorts":   testcontainers.WithExposedPorts("1/tcp"),
		"an option that sets Image":          testcontainers.WithImage("img"),
		"an option that sets Reuse":          testcontainers.WithReuseByName("name"),
		"an option that sets LifecycleHooks": testcontainers.WithLifecycleHooks(testcontainers.ContainerLifecycleHooks{}),
		"an option that sets FromDockerfile": testcontainers.WithDockerfile(testcontainers.FromDockerfile{Context: "."}),
		"DOZE_KAFKA_DATA_DIR is set by the":  testcontainers.WithEnv(map[string]string{"DOZE_KAFKA_DATA_DIR": "/x"}),
		"DOZE_KAFKA_NUM_PARTITIONS":          testcontainers.WithEnv(map[string]string{"DOZE_KAFKA_NUM_PARTITIONS": "no"}),
		"DOZE_KAFKA_NUM_PARTITION:":          testcontainers.WithEnv(map[string]string{"DOZE_KAFKA_NUM_PARTITION": "2"}),
		"DOZE_KAFKA_SEGMENT_BYTES":           dozekafka.WithSetting("SEGMENT_BYTES", "1"),
	} {
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			dozekafka.Start(r, dozekafka.WithInProcess(), opt)
		}()
		<-done
		if !strings.Contains(r.fatal, want) {
			t.Errorf("%s: %q", want, r.fatal)
		}
	}
}
