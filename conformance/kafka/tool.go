package kafka

import (
	"bytes"
	"context"
	_ "embed" // log4j2.xml
	"os"
	"os/exec"
	"path/filepath"
)

// Tool classes of Kafka 4.4.
const (
	DumpLogSegments = "org.apache.kafka.tools.DumpLogSegments"
	storageTool     = "kafka.tools.StorageTool"
	server          = "kafka.Kafka"
)

//go:embed log4j2.xml
var logging []byte

// Output is what a tool wrote.
type Output struct {
	Stdout, Stderr string
}

// Tool runs the main class of a Kafka tool and returns its output, also with the error of a non-zero exit. Log lines of level error and above
// are part of Stderr; a tool that has nothing to complain about writes nothing there.
func Tool(ctx context.Context, class string, args ...string) (Output, error) {
	classpath, err := Classpath(ctx)
	if err != nil {
		return Output{}, err
	}
	dir, err := os.MkdirTemp("", "kafka-tool-")
	if err != nil {
		return Output{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover costs only space
	java, err := ToolArgs(dir, classpath)
	if err != nil {
		return Output{}, err
	}
	cmd := exec.CommandContext(ctx, "java", append(append(java, class), args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return Output{Stdout: stdout.String(), Stderr: stderr.String()}, err
}

// ToolArgs are the options of a JVM that runs tools with this class path. It writes the logging configuration into dir: errors alone are logged, on stderr.
func ToolArgs(dir, classpath string) ([]string, error) {
	java, err := javaArgs(dir, "error", classpath)
	return append(java, "-XX:TieredStopAtLevel=1"), err
}

// javaArgs writes the logging configuration into dir and returns the JVM's options.
func javaArgs(dir, level, classpath string) ([]string, error) {
	config := filepath.Join(dir, "log4j2.xml")
	if err := os.WriteFile(config, logging, 0o644); err != nil {
		return nil, err
	}
	return []string{
		"-XX:+UseSerialGC", "-Xmx768m", "-Djava.awt.headless=true",
		"-Dlog4j2.configurationFile=" + config, "-Dconformance.level=" + level, "-cp", classpath,
	}, nil
}
