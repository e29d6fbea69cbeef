package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// checkTimeout bounds a health check; a broker that is well answers in milliseconds.
const checkTimeout = 5 * time.Second

func healthcheck(settings *config.Settings, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	addr, err := broker.Check(ctx, settings)
	if err != nil {
		fmt.Fprintln(stderr, "unhealthy:", err)
		return exitFailed
	}
	fmt.Fprintln(stdout, "healthy:", addr)
	return exitOK
}

// firstProcess is the command line of process 1: in a container the broker's,
// or that of an init which was given the broker's.
const firstProcess = "/proc/1/cmdline"

// flagsOfContainer are the flags that the broker of this container was started
// with. The image's health check has none of its own, and would ask at the
// wrong address if the listeners were a flag. Outside of a container, and where
// process 1 is something else, there are none.
func flagsOfContainer(environ []string, program, file string) []string {
	if !slices.Contains(environ, "DOZE_KAFKA_CONTAINER=true") {
		return nil
	}
	line, err := os.ReadFile(file)
	if err != nil {
		return nil // no Linux
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	i := slices.IndexFunc(args, func(a string) bool { return filepath.Base(a) == filepath.Base(program) })
	if i < 0 {
		return nil
	}
	args = args[i+1:]
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	return args
}
