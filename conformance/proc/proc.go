// Package proc runs the programs that the conformance tests judge or are judged by (a broker, a JVM, a client), each in a
// process group of its own, and ends them by process id: never by name, and never more than was started here.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Process is one running program.
type Process struct {
	cmd     *exec.Cmd
	logPath string
	done    chan struct{}
	err     error // of Wait; read after done is closed
}

// Start runs argv with env added to this process's environment, without the
// DOZE_KAFKA_ variables in that: they are the tests' own, and a broker takes them for settings. Output of both streams is appended to the file logPath, so that a
// restart on the same data keeps the history of the run before it.
func Start(logPath string, env []string, argv ...string) (*Process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the child holds its own descriptor; nothing was written through this one
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DOZE_KAFKA_") }), env...)
	cmd.Stdout, cmd.Stderr = out, out
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return follow(cmd, logPath), nil
}

// PID is the process id, which is the id of the process group too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the whole group with SIGKILL and waits until the process is gone.
func (p *Process) Kill() {
	killGroup(p.cmd)
	<-p.done
}

// Stop asks the process to end with SIGTERM and waits for it. One that is still there after wait is killed, which is an error, as is an
// exit status other than 0 or, for a JVM, 143.
func (p *Process) Stop(wait time.Duration) error {
	select {
	case <-p.done:
		return fmt.Errorf("process %d had ended by itself: %s\n%s", p.PID(), p.cmd.ProcessState, p.LogTail(30))
	default:
	}
	if err := terminate(p.cmd); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("process %d did not stop within %v and was killed\n%s", p.PID(), wait, p.LogTail(30))
	}
	// 143 is a JVM's way to say that it ended in order after SIGTERM.
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok && exit.ExitCode() == 143 {
		return nil
	}
	if p.err != nil {
		return fmt.Errorf("process %d: %w\n%s", p.PID(), p.err, p.LogTail(30))
	}
	return nil
}

// LogTail is the last n lines of the program's output.
func (p *Process) LogTail(n int) string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
