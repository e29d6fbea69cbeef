package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxCompressed is what a registry transfers at most, in bytes (FX-30).
const maxCompressed = 8_000_000

// config is what docker image inspect tells of an image.
type config struct {
	Architecture string
	Size         int64
	Config       struct {
		User         string
		Env          []string
		Entrypoint   []string
		Cmd          []string
		Labels       map[string]string
		Volumes      map[string]any
		ExposedPorts map[string]any
		StopSignal   string
		Healthcheck  struct {
			Test     []string
			Interval int64
		}
	}
}

func inspectImage(t *testing.T, name string) (c config) {
	t.Helper()
	var list []config
	if err := json.Unmarshal([]byte(must(t, "image", "inspect", name)), &list); err != nil || len(list) != 1 {
		t.Fatal(err, len(list))
	}
	return list[0]
}

// Show 2. FX-30, FX-31, FX-32: what the image says of itself.
func TestImageDescribesItself(t *testing.T) {
	needEngine(t)
	c := inspectImage(t, image)
	t.Logf("user %s, health check %q, labels %q", c.Config.User, c.Config.Healthcheck.Test, c.Config.Labels)
	if c.Config.User != "1000:0" || c.Config.StopSignal != "SIGTERM" || len(c.Config.Cmd) != 0 {
		t.Errorf("user %q, stop signal %q, command %q", c.Config.User, c.Config.StopSignal, c.Config.Cmd)
	}
	if h := c.Config.Healthcheck; h.Interval != 1e9 || strings.Join(h.Test, " ") != "CMD "+c.Config.Entrypoint[0]+" healthcheck" {
		t.Errorf("health check %v", h)
	}
	for _, port := range []string{"9092/tcp", "9080/tcp"} {
		if _, ok := c.Config.ExposedPorts[port]; !ok {
			t.Errorf("port %s is not exposed", port)
		}
	}
	if _, ok := c.Config.Volumes[dataDir]; !ok || len(c.Config.Volumes) != 1 {
		t.Errorf("volumes %v", c.Config.Volumes)
	}
	for _, label := range []string{"title", "description", "source", "documentation", "licenses", "version", "revision"} {
		if c.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s", label)
		}
	}
}

// Show 2. FX-30: the layers as a registry has them.
func TestImageIsSmall(t *testing.T) {
	needEngine(t)
	saved := filepath.Join(t.TempDir(), "image.tar")
	must(t, "save", "--output", saved, image)
	compressed := 0
	for name, content := range layers(t, saved) {
		n := len(gzipped(t, content))
		t.Logf("layer %.12s: %d bytes, compressed %d", name, len(content), n)
		compressed += n
	}
	t.Logf("image: compressed %d bytes, unpacked %d bytes", compressed, inspectImage(t, image).Size)
	if compressed > maxCompressed || compressed < 1_000_000 {
		t.Errorf("%d bytes compressed, at most %d", compressed, maxCompressed)
	}
}

// layers are the layers of a saved image by file name.
func layers(t *testing.T, saved string) map[string][]byte {
	t.Helper()
	f, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatal(err, len(manifest))
	}
	found := map[string][]byte{}
	for _, l := range manifest[0].Layers {
		found[l] = files[l]
	}
	return found
}

// gzipped is content compressed as a push does, unless it is so already.
func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		return content
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Show 2. FX-30: both architectures build on either, and nothing of the target runs.
func TestImageBuildsForBothArchitectures(t *testing.T) {
	needEngine(t)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		tagged := "doze-kafka/conformance:" + arch
		args := []string{"buildx", "build", "--quiet", "--load", "--platform", "linux/" + arch, "--tag", tagged, "--build-arg", "VERSION=1.2.3", "--build-arg", "REVISION=abc"}
		// Where no registry can be reached, .ci/docker has made a base for each.
		if base := "doze-kafka/stand-in-base:" + arch; there("image", "inspect", base) {
			args = append(args, "--build-arg", "BASE_IMAGE="+base)
		}
		must(t, append(args, root())...)
		c := inspectImage(t, tagged)
		if c.Architecture != arch || c.Config.Labels["org.opencontainers.image.version"] != "1.2.3" || c.Config.Labels["org.opencontainers.image.revision"] != "abc" {
			t.Errorf("%s: architecture %s, labels %q", arch, c.Architecture, c.Config.Labels)
		}
		binary := filepath.Join(t.TempDir(), "broker")
		must(t, "cp", create(t, "--platform", "linux/"+arch, tagged).name+":"+c.Config.Entrypoint[0], binary)
		f, err := elf.Open(binary)
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Section(".interp") != nil {
			t.Errorf("%s: machine %v, dynamic: %v", arch, f.Machine, f.Section(".interp") != nil)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("linux/%s: %s, unpacked %d bytes", arch, f.Machine, c.Size)
	}
}

// FX-22: the version that the image was built with is what the program in it says.
func TestImageSaysItsVersion(t *testing.T) {
	needEngine(t)
	want := inspectImage(t, image).Config.Labels["org.opencontainers.image.version"]
	if got := must(t, "run", "--rm", image, "version"); got != want {
		t.Errorf("version %q, label %q", got, want)
	}
}

// FX-32: the health check asks where the broker listens, however it was told to: in the environment, by flags, with an init before it.
func TestHealthCheckKnowsTheListeners(t *testing.T) {
	needEngine(t)
	for name, args := range map[string][]string{
		"environment":     {"--env", "DOZE_KAFKA_LISTENERS=PLAINTEXT://:19092", image},
		"KAFKA_LISTENERS": {"--env", "KAFKA_LISTENERS=PLAINTEXT://:19092", image},
		"flag":            {image, "--listeners", "PLAINTEXT://:19092"},
		"flag, init":      {"--init", image, "run", "--listeners=PLAINTEXT://:19092"},
		"two":             {image, "--listeners", "A://127.0.0.1:19092,B://:19093"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, args...).healthy()
		})
	}
}

// A broker that does not answer is unhealthy within seconds: here one that is kept waiting for its endpoint, past the start period.
func TestHealthCheckFailsWithoutAListener(t *testing.T) {
	needEngine(t)
	c := run(t, "--health-start-period", "1s", "--env", "DOZE_KAFKA_WAIT_FOR_ENDPOINT=true", image)
	c.await("{{.State.Health.Status}}", "unhealthy")
}
