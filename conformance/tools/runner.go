// Package tools runs Apache Kafka's own command line tools (the classes behind kafka-topics.sh and its kin) against a broker, by scripts
// in testdata/ that also hold what they printed with a real Kafka.
package tools

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // Runner.java
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
)

//go:embed runner/Runner.java
var runnerSource []byte

// Runner is a JVM that runs one tool after the other. It is not safe for use by several goroutines at once.
type Runner struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
	stderr  bytes.Buffer // of the JVM itself: a tool's is in its Result
}

// Result is what a tool wrote, and its exit status.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// NewRunner starts the JVM, which ends with ctx or by Close. Its files are in dir.
func NewRunner(ctx context.Context, dir string) (*Runner, error) {
	all, err := kafka.Classpath(ctx)
	if err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(all + ".jar")
	if err != nil {
		return nil, err
	}
	isTools := func(jar string) bool { return strings.HasPrefix(filepath.Base(jar), "kafka-tools-"+kafka.Version()) }
	at := slices.IndexFunc(jars, isTools)
	if at < 0 {
		return nil, fmt.Errorf("no jar of kafka-tools %s in %s", kafka.Version(), filepath.Dir(all))
	}
	tools, classpath := jars[at], strings.Join(slices.DeleteFunc(slices.Clone(jars), isTools), string(os.PathListSeparator))
	source := filepath.Join(dir, "Runner.java")
	if err := os.WriteFile(source, runnerSource, 0o600); err != nil {
		return nil, err
	}
	java, err := kafka.ToolArgs(dir, classpath)
	if err != nil {
		return nil, err
	}
	r := &Runner{cmd: exec.CommandContext(ctx, "java", append(java, source, tools)...)}
	r.cmd.Stderr = &r.stderr
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.answers = bufio.NewReader(stdout)
	return r, r.cmd.Start()
}

// Run calls the main method of a class and waits until it is done.
func (r *Runner) Run(class, stdin string, args ...string) (Result, error) {
	line := class + " " + base64.StdEncoding.EncodeToString([]byte(stdin))
	for _, a := range args {
		line += " " + base64.StdEncoding.EncodeToString([]byte(a))
	}
	if _, err := io.WriteString(r.stdin, line+"\n"); err != nil {
		return Result{}, fmt.Errorf("the JVM of the tools has ended: %w\n%s", err, r.stderr.String())
	}
	answer, err := r.answers.ReadString('\n')
	if err != nil {
		return Result{}, fmt.Errorf("the JVM of the tools has ended: %w\n%s", err, r.stderr.String())
	}
	result, err := parseAnswer(strings.TrimSuffix(answer, "\n"))
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w in the answer %q", class, err, answer)
	}
	return result, nil
}

func parseAnswer(line string) (Result, error) {
	words := strings.Split(line, " ")
	if len(words) != 3 {
		return Result{}, errors.New("not three words")
	}
	status, err := strconv.Atoi(words[0])
	if err != nil {
		return Result{}, err
	}
	stdout, err := base64.StdEncoding.DecodeString(words[1])
	if err != nil {
		return Result{}, err
	}
	stderr, err := base64.StdEncoding.DecodeString(words[2])
	if err != nil {
		return Result{}, err
	}
	return Result{Stdout: string(stdout), Stderr: string(stderr), Exit: status}, nil
}

// Close ends the JVM.
func (r *Runner) Close() error {
	if err := r.stdin.Close(); err != nil {
		return err
	}
	return r.cmd.Wait()
}
