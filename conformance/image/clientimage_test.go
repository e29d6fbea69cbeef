package image

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// clients is an image with the program cmd/client and with kcat: no image with a Kafka client can be counted on to be had.
const clients = "doze-kafka/conformance-clients:latest"

var sharedObject = regexp.MustCompile(`(/\S+) \(0x`)

// makeClients makes the image of clients, and the program for this machine, once.
var makeClients = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(scratch, "client")
	if _, err := command([]string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/client"); err != nil {
		return "", err
	}
	kcat, err := command(nil, "which", "kcat")
	if err != nil {
		return "", err
	}
	libraries, err := command(nil, "ldd", kcat)
	if err != nil {
		return "", err
	}
	files := []string{"--transform", "s,^" + strings.TrimPrefix(program, "/") + "$,client,", program, kcat}
	for _, m := range sharedObject.FindAllStringSubmatch(libraries, -1) {
		files = append(files, m[1])
	}
	archive := program + ".tar"
	if _, err := command(nil, "tar", append([]string{"--create", "--dereference", "--file", archive}, files...)...); err != nil {
		return "", err
	}
	_, err = docker("import", "--change", "ENV PATH=/:/usr/bin:/bin", archive, clients)
	return program, err
})

// needClients makes the image of clients and returns the program.
func needClients(t *testing.T) string {
	t.Helper()
	target.Need(t, "kcat")
	program, err := makeClients()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// sibling runs a program of the clients' image in a network to its end, and returns what it printed.
func sibling(t *testing.T, network string, argv ...string) string {
	t.Helper()
	needClients(t)
	return must(t, append([]string{"run", "--rm", "--network", network, clients}, argv...)...)
}
