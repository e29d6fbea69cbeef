// Command broker is doze-kafka: a single-node Kafka broker with its data on disk.
//
//	broker [flags]              run
//	broker healthcheck [flags]  ask the broker that these settings start for an answer; exit 0 or 1
//	broker dump FILE...         print the files of a segment
//	broker version              print the version
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // a setting that can't be (FX-2)
)

// gcPercent keeps the collector from running for every few MB of garbage: the
// live heap is so small that Go's default would.
const gcPercent = 400

// version is set by the linker in releases.
var version = ""

func main() {
	tuneCollector(os.Getenv, broker.MemoryLimit())
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// tuneCollector sets gcPercent and, in a control group with a memory limit,
// Go's soft limit a tenth below it: a few requests of 100 MiB would otherwise
// leave so much garbage that the kernel kills the process. Go's own variables
// have their way.
func tuneCollector(getenv func(string) string, limit int64) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(limit - limit/10)
	}
}

func run(args, environ []string, stdout, stderr io.Writer) int {
	command := "run"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	switch command {
	case "version":
		fmt.Fprintln(stdout, programVersion())
		return exitOK
	case "dump":
		return dumpFiles(args, stdout, stderr)
	case "run", "healthcheck":
	default:
		fmt.Fprintf(stderr, "broker: unknown command %q: there are run (the default), healthcheck, dump and version\n", command)
		return exitUsage
	}
	if command == "healthcheck" && len(args) == 0 {
		args = flagsOfContainer(environ, os.Args[0], firstProcess)
	}
	settings, help, err := parse(args, environ, config.PropertiesFile)
	if help != "" {
		fmt.Fprint(stdout, help)
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	if command == "healthcheck" {
		return healthcheck(settings, stdout, stderr)
	}
	return serve(settings, stderr)
}

// parse reads the settings, a file of Kafka's properties among them if it is there (FX-3).
func parse(args, environ []string, file string) (s *config.Settings, help string, err error) {
	properties, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	return config.Sources{Args: args, Environ: environ, Properties: string(properties), PropertiesFile: file}.Parse()
}

func serve(settings *config.Settings, stderr io.Writer) int {
	log := broker.NewLogger(stderr, settings)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := broker.Start(ctx, settings, broker.WithLogger(log), broker.WithVersion(programVersion()))
	if err != nil && ctx.Err() != nil {
		log.Info("stopped before it was ready") // such as while it waited for its endpoint
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, "broker:", err)
		return exitFailed
	}
	if err := b.Wait(ctx); err != nil {
		fmt.Fprintln(stderr, "broker:", err)
		return exitFailed
	}
	return exitOK
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
