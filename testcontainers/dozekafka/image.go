package dozekafka

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/testcontainers/testcontainers-go"
)

const (
	modulePath = "github.com/dozekafka/doze-kafka"
	repository = "ghcr.io/dozekafka/doze-kafka"
)

// pullTimeout bounds the attempt to pull an image of a few MB, before it is built instead.
const pullTimeout = 30 * time.Second

// image makes sure that the engine has an image, and names it.
func (o *options) image(ctx context.Context) (string, error) {
	if o.fromSource {
		return sourceImage(ctx)
	}
	version := releasedVersion()
	if version == "" { // a checkout: no image can belong to it
		return sourceImage(ctx)
	}
	img := imageOf(version)
	pullErr := havePulled(ctx, img)
	if pullErr == nil {
		return img, nil
	}
	built, err := sourceImage(ctx)
	if err != nil {
		return "", fmt.Errorf("the image %s can't be had: %w; nor can it be built from source: %w", img, pullErr, err)
	}
	return built, nil
}

// imageOf is the image of a release, which has no v before its version (.github/workflows/release.yml).
func imageOf(version string) string { return repository + ":" + strings.TrimPrefix(version, "v") }

// havePulled is nil if the engine has an image, or had it pulled.
func havePulled(ctx context.Context, img string) error {
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }() // idle connections, of no more use
	if _, err = docker.ImageInspect(ctx, img); err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }() // as above
	ctx, cancel := context.WithTimeoutCause(ctx, pullTimeout, fmt.Errorf("the pull took more than %v", pullTimeout))
	defer cancel()
	if err := provider.PullImage(ctx, img); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// releasedVersion is this module's version in the program that runs, such as
// v1.2.3; "" if it is none that was released: a checkout, a replacement, a commit.
func releasedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Replace == nil && isRelease(m.Version) {
			return m.Version
		}
	}
	return ""
}

// isRelease tells v1.2.3 and v1.2.3-rc.1 from commits (pseudo-versions end in
// a time and a hash) and changed checkouts.
func isRelease(version string) bool {
	if !strings.HasPrefix(version, "v") || strings.Contains(version, "+") {
		return false
	}
	parts := strings.Split(version, "-")
	return len(parts) < 3 || len(parts[len(parts)-1]) != 12
}
