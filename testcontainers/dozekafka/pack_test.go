package dozekafka

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dockerfile is the final stage of the Dockerfile: each instruction with its arguments.
func dockerfile(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", " ")) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "FROM" {
			clear(all)
		}
		if name != "" && name != "#" {
			all[name] = append(all[name], strings.TrimSpace(args))
		}
	}
	return all
}

// FX-46: an image built from source is what the Dockerfile's is: environment, user, volume, ports, health check.
func TestSourceImageIsAsTheDockerfileSays(t *testing.T) {
	file, c := dockerfile(t), sourceConfig()
	equal := func(name string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v here and %v in the Dockerfile", name, got, want)
		}
	}
	one := func(name string) string { return strings.Join(file[name], " and ") }
	words := func(name string) []string {
		return slices.Sorted(slices.Values(strings.Fields(strings.Join(file[name], " "))))
	}
	equal("USER", c.User, one("USER"))
	equal("WORKDIR", c.WorkingDir, one("WORKDIR"))
	equal("STOPSIGNAL", c.StopSignal, one("STOPSIGNAL"))
	equal("ENV", slices.Sorted(slices.Values(c.Env)), words("ENV"))
	equal("VOLUME", slices.Sorted(maps.Keys(c.Volumes)), words("VOLUME"))
	var ports []string
	for p := range c.ExposedPorts {
		ports = append(ports, strings.TrimSuffix(p, "/tcp"))
	}
	slices.Sort(ports)
	expose := words("EXPOSE")
	equal("EXPOSE", ports, expose)
	var entrypoint, check []string
	if err := json.Unmarshal([]byte(one("ENTRYPOINT")), &entrypoint); err != nil {
		t.Fatal(err)
	}
	equal("ENTRYPOINT", c.Entrypoint, entrypoint)
	options, command, _ := strings.Cut(one("HEALTHCHECK"), "CMD ")
	if err := json.Unmarshal([]byte(command), &check); err != nil {
		t.Fatal(err)
	}
	equal("HEALTHCHECK's command", c.Healthcheck.Test, append([]string{"CMD"}, check...))
	for name, got := range map[string]time.Duration{
		"interval": c.Healthcheck.Interval, "timeout": c.Healthcheck.Timeout, "start-period": c.Healthcheck.StartPeriod,
	} {
		m := regexp.MustCompile(`--` + name + `=(\S+)`).FindStringSubmatch(options)
		if m == nil {
			t.Errorf("the Dockerfile's HEALTHCHECK has no --%s", name)
			continue
		}
		want, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		equal("HEALTHCHECK's "+name, got, want)
	}
	if want := fmt.Sprintf("--retries=%d ", c.Healthcheck.Retries); !strings.Contains(options, want) {
		t.Errorf("HEALTHCHECK has not %s: %s", want, options)
	}
	copies := strings.Join(file["COPY"], "\n")
	for _, want := range []string{"/broker " + brokerPath, "--chown=" + imageUser + " "} {
		if !strings.Contains(copies, want) {
			t.Errorf("no COPY of the Dockerfile has %q:\n%s", want, copies)
		}
	}
}

// FX-46: the same binary gives the same archive and tag, another one another tag.
func TestPackIsByContent(t *testing.T) {
	img, archive, err := pack([]byte("binary"), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := pack([]byte("binary"), "amd64")
	if err != nil || again != img || !bytes.Equal(archive, same) {
		t.Errorf("%s and %s, %v", img, again, err)
	}
	for _, other := range []struct{ binary, arch string }{{"Binary", "amd64"}, {"binary", "arm64"}} {
		if tag, _, err := pack([]byte(other.binary), other.arch); err != nil || tag == img {
			t.Errorf("%v: %s, %v", other, tag, err)
		}
	}
}

// FX-31: the data directory is owned by uid 1000 and writable for group 0.
func TestLayerHasTheDataDirectoryOfTheUser(t *testing.T) {
	layer, err := sourceLayer([]byte("binary"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = fmt.Sprintf("%d:%d %o %c", h.Uid, h.Gid, h.Mode, h.Typeflag)
	}
	for name, want := range map[string]string{"var/lib/kafka/data/": "1000:0 775 5", "usr/local/bin/broker": "0:0 755 0", "tmp/": "0:0 1777 5"} {
		if found[name] != want {
			t.Errorf("%s is %q, want %q", name, found[name], want)
		}
	}
}
