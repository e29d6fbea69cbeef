package clients

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Show 2: KafkaJS's producer and admin client, and its fetch layer (its Consumer needs a group; workload.js says more).
func TestKafkaJS(t *testing.T) {
	target.Need(t, "node", "npm")
	broker := target.Start(t, target.Options{})
	modules := nodeModules(t)
	path, want := textFile(t, *someLines)
	t.Log(broker.Name())
	for _, c := range append(codecs, "none idempotent", "zstd idempotent") {
		t.Run(c, func(t *testing.T) {
			codec, mode, _ := bytes.Cut([]byte(c), []byte(" "))
			topic := fmt.Sprintf("kafkajs-%s-%s", codec, mode)
			file := filepath.Join(t.TempDir(), "consumed")
			argv := []string{"node", filepath.Join("js", "workload.js"), broker.Addr(), topic, string(codec), path, file, strconv.Itoa(partitions), string(mode)}
			out := run(t, 2*time.Minute, []string{"NODE_PATH=" + modules, "KAFKAJS_NO_PARTITIONER_WARNING=1"}, argv...)
			consumed, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checkConsumed(t, want, "\t", partitions, consumed)
			checkCodec(t, broker.Addr(), topic, string(codec))
			t.Logf("%s", bytes.TrimSpace(out))
		})
	}
}

// nodeModules installs what js/package-lock.json pins into the cache.
func nodeModules(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join("js", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := kafka.Cached(fmt.Sprintf("kafkajs-%x", sha256.Sum256(lock))[:28], func(dir string) error {
		for _, name := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join("js", name))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				return err
			}
		}
		cmd := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "node_modules")
}
