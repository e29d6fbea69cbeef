// Package kafka starts a real Apache Kafka (KRaft, one node) and runs its tools, from the Maven artifacts pinned in pom.xml. It is the
// judge of the conformance tests: what it answers is right.
package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // pom.xml
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

//go:embed pom.xml
var pom []byte

var pomVersion = regexp.MustCompile(`<kafka.version>(.+)</kafka.version>`)

// Version is that of Apache Kafka, its tools and its Java client.
func Version() string { return string(pomVersion.FindSubmatch(pom)[1]) }

// CacheDir is where downloaded and built things of the conformance tests are kept: $DOZE_KAFKA_CACHE, or a folder in the user's cache
// directory. It is never inside the repository.
func CacheDir() (string, error) {
	dir := os.Getenv("DOZE_KAFKA_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "doze-kafka")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// Cached returns the directory for key in the cache, made by build if it is not there yet. build fills a temporary directory that is then
// renamed, so that an interrupted or a simultaneous build never leaves half a directory to be used.
func Cached(key string, build func(dir string) error) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, key)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	tmp, err := os.MkdirTemp(cache, key+".tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a leftover costs only space
	if err := build(tmp); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, final); err != nil {
		if _, statErr := os.Stat(final); statErr == nil {
			return final, nil // another test process was first
		}
		return "", err
	}
	return final, nil
}

// Classpath is the Java class path with Kafka, its tools and its client. The first call on a machine downloads some 110 MB with Maven.
func Classpath(ctx context.Context) (string, error) { return Jars(ctx, "kafka-"+Version(), pom) }

// Jars is the Java class path of what a pom depends on. The first call on a machine downloads it with Maven, into a directory of the cache
// whose name begins with name.
func Jars(ctx context.Context, name string, pom []byte) (string, error) {
	dir, err := Cached(fmt.Sprintf("%s-%x", name, sha256.Sum256(pom))[:32], func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), pom, 0o644); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", dir, "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("mvn dependency:copy-dependencies: %w\n%s", err, bytes.TrimSpace(out))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "lib", "*"), nil
}
