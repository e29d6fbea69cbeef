package matrix

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Driver is a row of the table: a client, how its driver is built and started, and what the client cannot do.
type Driver struct {
	Name   string // of the client, as its driver says it
	Needs  []string
	build  func(testing.TB) (argv, env []string, err error)
	Limits map[string]string // what the client has not: a feature or a codec, and the reason

	once sync.Once
	argv []string
	env  []string
	err  error
}

// Drivers are all clients of the matrix, in the order of docs/clients.md.
var Drivers = []*Driver{
	{Name: "Java kafka-clients", Needs: []string{"java", "javac", "mvn"}, build: java("Driver")},
	{Name: "confluent-kafka-go", Needs: []string{"gcc"}, build: goModule("confluent-go")},
	{Name: "confluent-kafka-python", Needs: []string{"python3"}, build: python("confluent.py")},
	{Name: "kcat", Needs: []string{"kcat"}, build: goProgram("kcat"), Limits: map[string]string{
		"admin":        "it has no command that creates a topic; the test created it",
		"commit":       "it commits by itself, every 5 s and when it gives up partitions, never on request; the test waits until the broker has the offsets",
		"transactions": "it makes one transaction a run and commits it; it can neither abort nor send offsets",
		"headers":      "`-H` gives all records of a run the same headers; its records here have none",
	}},
	{Name: "franz-go", build: goProgram("franz")},
	{Name: "Sarama", build: goProgram("sarama")},
	{Name: "kafka-go", build: goProgram("kafkago"), Limits: map[string]string{
		"idempotent":     "its Writer has no idempotence",
		"transactions":   "its Writer has none",
		"read committed": "its Reader hands out what was aborted, and the markers too",
		"cooperative":    "it has eager assignors only (range, round robin, rack affinity)",
	}},
	{Name: "KafkaJS", Needs: []string{"node", "npm", "g++"}, build: node("kafkajs.js"), Limits: map[string]string{
		"range":       "it has round robin only, which the eager column is about",
		"cooperative": "it has eager assignors only",
	}},
	{Name: "@platformatic/kafka", Needs: []string{"node", "npm"}, build: node("platformatic.js"), Limits: map[string]string{
		"range":          "its eager assignor is round robin",
		"read committed": "its consumer hands out what was aborted",
	}},
	{Name: "kafka-python", Needs: []string{"python3"}, build: python("kafka_python.py")},
	{Name: "aiokafka", Needs: []string{"python3"}, build: python("aio.py"), Limits: map[string]string{
		"cooperative": "it has eager assignors only (range, round robin, sticky)",
	}},
}

// Command builds the driver, once, and returns what starts it and what is added to its environment.
func (d *Driver) Command(t testing.TB) (argv, env []string) {
	t.Helper()
	target.Need(t, d.Needs...)
	d.once.Do(func() { d.argv, d.env, d.err = d.build(t) })
	if d.err != nil {
		t.Fatal(d.err)
	}
	return slices.Clone(d.argv), slices.Clone(d.env)
}

// directory is the one of a driver's sources.
func directory(name string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "drivers", name)
}

// command runs a build step.
func command(t testing.TB, dir string, argv ...string) error {
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// programs is where the drivers in Go are built: outside the cache, as go build knows best when to build again. TestMain removes it.
var programs = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "matrix-") })

// goProgram is a driver of the conformance module.
func goProgram(name string) func(testing.TB) ([]string, []string, error) { return goModule(name) }

// goModule is a driver in Go, in the module that its directory belongs to.
func goModule(name string) func(testing.TB) ([]string, []string, error) {
	return func(t testing.TB) ([]string, []string, error) {
		dir, err := programs()
		if err != nil {
			return nil, nil, err
		}
		binary := filepath.Join(dir, name)
		return []string{binary}, nil, command(t, directory(name), "go", "build", "-o", binary, ".")
	}
}

// pinned is a directory of the cache that is made anew when one of the files changes.
func pinned(name string, files []string, build func(dir string) error) (string, error) {
	sum := sha256.New()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	return kafka.Cached(fmt.Sprintf("%s-%x", name, sum.Sum(nil)[:10]), build)
}

func java(class string) func(testing.TB) ([]string, []string, error) {
	return func(t testing.TB) ([]string, []string, error) {
		classpath, err := kafka.Classpath(t.Context())
		if err != nil {
			return nil, nil, err
		}
		source, logging := filepath.Join(directory("java"), class+".java"), filepath.Join(directory("java"), "..", "..", "..", "kafka", "log4j2.xml")
		classes, err := pinned("driver-java-"+kafka.Version(), []string{source}, func(dir string) error {
			return command(t, dir, "javac", "-d", dir, "-cp", classpath, source)
		})
		return []string{
			"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m", "-Dlog4j2.configurationFile=" + logging, "-Dconformance.level=error",
			"-cp", classes + string(filepath.ListSeparator) + classpath, class,
		}, nil, err
	}
}

// python is a driver that runs in a venv with what requirements.txt pins.
func python(file string) func(testing.TB) ([]string, []string, error) {
	return func(t testing.TB) ([]string, []string, error) {
		requirements := filepath.Join(directory("python"), "requirements.txt")
		venv, err := pinned("venv", []string{requirements}, func(dir string) error {
			if err := command(t, dir, "python3", "-m", "venv", dir); err != nil {
				return err
			}
			return command(t, dir, filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements)
		})
		return []string{filepath.Join(venv, "bin", "python"), filepath.Join(directory("python"), file)}, []string{"PYTHONDONTWRITEBYTECODE=1"}, err
	}
}

// node is a driver whose packages package-lock.json pins.
func node(file string) func(testing.TB) ([]string, []string, error) {
	return func(t testing.TB) ([]string, []string, error) {
		manifest, lock := filepath.Join(directory("node"), "package.json"), filepath.Join(directory("node"), "package-lock.json")
		dir, err := pinned("node", []string{manifest, lock}, func(dir string) error {
			for _, f := range []string{manifest, lock} {
				b, err := os.ReadFile(f)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o644); err != nil {
					return err
				}
			}
			return command(t, dir, "npm", "ci", "--no-audit", "--no-fund")
		})
		program := "node"
		// @platformatic/kafka needs a newer Node.js than distributions have: one comes as a package.
		if own := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+map[string]string{"amd64": "x64"}[runtime.GOARCH]+strings.TrimPrefix(runtime.GOARCH, "amd64"), "bin", "node"); file == "platformatic.js" {
			if _, err := os.Stat(own); err == nil {
				program = own
			}
		}
		return []string{program, filepath.Join(directory("node"), file)}, []string{"NODE_PATH=" + filepath.Join(dir, "node_modules")}, err
	}
}
