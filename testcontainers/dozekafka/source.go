package dozekafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// sourceRepository is what images are called that were built from source. The
// registry "localhost" keeps anybody from pulling it from somewhere.
const sourceRepository = "localhost/doze-kafka-from-source"

// building is held while an image is built: the tests of one process, in
// parallel, want the same one. Its source does not change meanwhile.
var building struct {
	sync.Mutex
	built map[string]string // image by the engine's architecture
}

// sourceImage makes sure that the engine has an image built from source, and names it.
func sourceImage(ctx context.Context) (string, error) {
	building.Lock()
	defer building.Unlock()
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = docker.Close() }() // idle connections, of no more use
	version, err := docker.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", err
	}
	if version.Os != "linux" {
		return "", fmt.Errorf("the Docker engine runs %s containers, not Linux ones", version.Os)
	}
	if img := building.built[version.Arch]; img != "" {
		if _, err := docker.ImageInspect(ctx, img); err == nil {
			return img, nil // and else somebody has removed it
		}
	}
	img, err := buildImage(ctx, docker, version.Arch)
	if err != nil {
		return "", err
	}
	building.built = map[string]string{version.Arch: img}
	return img, nil
}

// buildImage builds the broker, and the engine's image around it unless it has that one.
func buildImage(ctx context.Context, docker *testcontainers.DockerClient, arch string) (string, error) {
	binary, err := buildBroker(ctx, arch)
	if err != nil {
		return "", fmt.Errorf("build from source: %w", err)
	}
	img, archive, err := pack(binary, arch)
	if err != nil {
		return "", fmt.Errorf("build from source: %w", err)
	}
	if _, err = docker.ImageInspect(ctx, img); err == nil {
		return img, nil
	} else if !errdefs.IsNotFound(err) {
		return "", err
	}
	loaded, err := docker.ImageLoad(ctx, bytes.NewReader(archive))
	if err != nil {
		return "", fmt.Errorf("load the image that was built from source: %w", err)
	}
	said, err := io.ReadAll(loaded) // an error of the engine is in its text
	if err = errors.Join(err, loaded.Close()); err != nil {
		return "", fmt.Errorf("load the image that was built from source: %w", err)
	}
	if _, err = docker.ImageInspect(ctx, img); err != nil {
		return "", fmt.Errorf("load the image that was built from source: %w; the engine said: %s", err, said)
	}
	return img, nil
}

// buildBroker builds the broker for Linux in the module of the current
// directory, which is the consumer's when its tests run.
func buildBroker(ctx context.Context, arch string) ([]byte, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("there is no Go toolchain on the PATH: %w", err)
	}
	mod, err := goOutput(ctx, goCommand, nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	if mod == "" || mod == os.DevNull {
		dir, _ := os.Getwd() // for the message alone
		return nil, fmt.Errorf("%s is in no Go module: a test that builds the broker has to run in the module that requires %s", dir, modulePath)
	}
	dir, err := buildDir(mod, arch)
	if err != nil {
		return nil, err
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(dir, "broker")}
	if _, err := os.Stat(filepath.Join(filepath.Dir(mod), "vendor", "modules.txt")); err == nil {
		// The vendor directory has the broker's packages, but not its
		// command, which nothing imports. Copies keep go.mod and go.sum as they are.
		if args, err = withoutVendor(args, mod, dir); err != nil {
			return nil, err
		}
	}
	env := []string{"GOOS=linux", "GOARCH=" + arch, "CGO_ENABLED=0", "GOFLAGS=" + moduleFlags(os.Getenv("GOFLAGS")), "GOTMPDIR=" + dir}
	if _, err := goOutput(ctx, goCommand, env, append(args, modulePath+"/cmd/broker")...); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "broker"))
}

// buildDir is a directory that is the same for the same module: Go does not
// link a program again that is up to date. Renaming within it (GOTMPDIR is there too)
// lets the tests of several packages build at the same time.
func buildDir(mod, arch string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	hash := sha256.Sum256([]byte(mod + "\x00" + arch))
	dir := filepath.Join(cache, "doze-kafka", "build-"+hex.EncodeToString(hash[:6]))
	return dir, os.MkdirAll(dir, 0o755)
}

// withoutVendor adds the flags that make Go look at the module graph in spite of a vendor directory.
func withoutVendor(args []string, mod, dir string) ([]string, error) {
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(mod), name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return nil, err
		}
	}
	return append(args, "-mod=mod", "-modfile="+filepath.Join(dir, "go.mod")), nil
}

// moduleFlags are those of GOFLAGS that say where modules are. The others are
// about the caller's own build, such as -race, which needs cgo.
func moduleFlags(goflags string) string {
	var keep []string
	for _, f := range strings.Fields(goflags) {
		name, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
		if name == "modcacherw" || name == "modfile" || name == "overlay" {
			keep = append(keep, f)
		}
	}
	return strings.Join(keep, " ")
}

// goOutput runs the go command and returns what it printed.
func goOutput(ctx context.Context, goCommand string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, goCommand, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
