package dozekafka

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// What the Dockerfile says too; a test compares them.
const (
	dataDir     = "/var/lib/kafka/data"
	brokerPath  = "/usr/local/bin/broker"
	imageUser   = "1000:0"
	imageUID    = 1000
	workingDir  = "/var/lib/kafka"
	stopSignal  = "SIGTERM"
	checkEvery  = 1 * time.Second
	checkFor    = 3 * time.Second
	checkStart  = 30 * time.Second
	checkTries  = 3
	sourceTitle = "doze-kafka"
)

// imageConfig is the image's configuration, as the OCI image specification
// and Docker's extension for health checks have it.
type imageConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Labels       map[string]string
	StopSignal   string
	Healthcheck  healthcheck
}

type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// sourceConfig is that of an image built from source.
func sourceConfig() imageConfig {
	return imageConfig{
		User:         imageUser,
		ExposedPorts: map[string]struct{}{kafkaPort: {}, httpPort: {}},
		Env: []string{
			"DOZE_KAFKA_CONTAINER=true", "DOZE_KAFKA_IMAGE_DATA_DIR=" + dataDir,
			"DOZE_KAFKA_IMAGE_LISTENERS=PLAINTEXT://0.0.0.0:9092", "DOZE_KAFKA_IMAGE_HTTP_LISTEN=0.0.0.0:9080",
		},
		Entrypoint: []string{brokerPath},
		Volumes:    map[string]struct{}{dataDir: {}},
		WorkingDir: workingDir,
		Labels:     map[string]string{"org.opencontainers.image.title": sourceTitle},
		StopSignal: stopSignal,
		Healthcheck: healthcheck{
			Test: []string{"CMD", brokerPath, "healthcheck"}, Interval: checkEvery, Timeout: checkFor, StartPeriod: checkStart, Retries: checkTries,
		},
	}
}

// pack makes an image from scratch around the broker's binary, as the archive
// that `docker load` takes: it needs no builder, and each file has the owner and mode that it should. The
// image's tag is the hash of its content.
func pack(binary []byte, arch string) (img string, archive []byte, err error) {
	layer, err := sourceLayer(binary)
	if err != nil {
		return "", nil, err
	}
	layerHash := sha256.Sum256(layer)
	conf, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": sourceConfig(),
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(layerHash[:])}},
	})
	if err != nil {
		return "", nil, err
	}
	confHash := sha256.Sum256(conf) // of the layer too: its hash is within
	img = sourceRepository + ":" + hex.EncodeToString(confHash[:8])
	confName := hex.EncodeToString(confHash[:]) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": confName, "RepoTags": []string{img}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return "", nil, err
	}
	archive, err = tarball([]entry{{name: "layer.tar", mode: 0o644, data: layer}, {name: confName, mode: 0o644, data: conf}, {name: "manifest.json", mode: 0o644, data: manifest}})
	return img, archive, err
}

// sourceLayer is the image's one layer: the binary, and a data directory from
// which a fresh volume takes owner and mode (FX-31).
func sourceLayer(binary []byte) ([]byte, error) {
	return tarball([]entry{
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: "usr/local/bin/", mode: 0o755},
		{name: strings.TrimPrefix(brokerPath, "/"), mode: 0o755, data: binary},
		{name: "var/", mode: 0o755}, {name: "var/lib/", mode: 0o755}, {name: "var/lib/kafka/", mode: 0o755},
		{name: strings.TrimPrefix(dataDir, "/") + "/", mode: 0o775, uid: imageUID},
	})
}

// An entry is a file of an archive, or a directory if its name ends in a slash.
type entry struct {
	name string
	mode int64
	uid  int
	data []byte
}

func tarball(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.uid, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
