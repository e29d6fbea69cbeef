package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
)

// Show 5. FX-31: users, mounts and rights that people run containers with. Each takes a record and gives it back.
func TestImageWorksWithTheMountsAndUsersPeopleHave(t *testing.T) {
	needEngine(t)
	owned := bind(t, "1000:0", 0o755)
	for name, args := range map[string][]string{
		"as it is":                       {},
		"read-only root":                 {"--read-only"},
		"no capabilities":                {"--cap-drop", "ALL", "--security-opt", "no-new-privileges"},
		"read-only, no capabilities":     {"--read-only", "--cap-drop", "ALL", "--volume", newVolume(t) + ":" + dataDir},
		"random uid, gid 0":              {"--user", "1000730000:0"},
		"random uid, gid 0, read-only":   {"--user", "1000730000:0", "--read-only", "--volume", newVolume(t) + ":" + dataDir},
		"uid without a group":            {"--user", "4711"},
		"fresh named volume":             {"--volume", newVolume(t) + ":" + dataDir},
		"tmpfs":                          {"--tmpfs", dataDir},
		"tmpfs, random uid, read-only":   {"--tmpfs", dataDir, "--user", "4711:0", "--read-only"},
		"tmpfs of somebody's":            {"--tmpfs", dataDir + ":uid=4711,gid=4711,mode=0700", "--user", "4711:4711"},
		"bind mount of the first user's": {"--volume", owned + ":" + dataDir},
		"64 MiB of memory":               {"--memory", "64m"},
		"root":                           {"--user", "0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, addr := published(t, args...)
			if err := client.Produce(t.Context(), addr, "demo", "hello"); err != nil {
				t.Fatal(err)
			}
			if got, err := client.Consume(t.Context(), addr, "demo", "group", 1); err != nil || got[0] != "hello" {
				t.Errorf("consumed %q, %v", got, err)
			}
		})
	}
}

// bind is a directory of this machine with an owner, for a bind mount.
func bind(t *testing.T, owner string, mode os.FileMode) string {
	t.Helper()
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	if err := os.Mkdir(dir, mode); err != nil {
		t.Fatal(err)
	}
	// By a container, as the test need not be root; so is the way back, for what the broker has made in it.
	chown := func(owner string) {
		needClients(t)
		must(t, "run", "--rm", "--user", "0:0", "--volume", parent+":/mnt", clients, "/client", "chown", owner, "/mnt/data")
	}
	chown(owner)
	t.Cleanup(func() { chown(self()) })
	return dir
}

// Show 5. FX-31: what can't work stops the start with exit code 1 and one line: path, owner, our uid, the fix.
func TestDirectoryThatIsNotWritableIsALine(t *testing.T) {
	needEngine(t)
	foreign := bind(t, "1234:5678", 0o755)
	for name, c := range map[string]struct {
		args, want []string
	}{
		"foreign bind mount": {[]string{"--volume", foreign + ":" + dataDir},
			[]string{dataDir + " is not writable", "uid 1234, gid 5678", "runs as uid 1000, gid 0", "chown -R 1000:0", "--user 1234:5678", "named volume"}},
		"random uid and gid": {[]string{"--user", "4711:4711"},
			[]string{dataDir + " is not writable", "uid 1000, gid 0", "runs as uid 4711, gid 4711", "--user 1000:0"}},
		"read-only mount": {[]string{"--volume", newVolume(t) + ":" + dataDir + ":ro"},
			[]string{dataDir, "read-only file system", "without :ro"}},
		"read-only root, directory elsewhere": {[]string{"--read-only", "--env", "DOZE_KAFKA_DATA_DIR=/elsewhere"},
			[]string{"/elsewhere is on a read-only file system", "mount a volume or a tmpfs at /elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, log := run(t, append(c.args, "--env", "DOZE_KAFKA_LOG_LEVEL=error", image)...).exit()
			t.Log(strings.TrimSpace(log))
			if code != 1 || strings.Count(strings.TrimSpace(log), "\n") != 0 {
				t.Errorf("exit code %d, log:\n%s", code, log)
			}
			for _, want := range c.want {
				if !strings.Contains(log, want) {
					t.Errorf("no %q", want)
				}
			}
		})
	}
}
