package streams

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// application is a process of one.
type application struct {
	*output
	cmd *exec.Cmd
	in  io.WriteCloser // commands
}

// start runs a program of the directory java. It is killed when the test ends.
func start(t *testing.T, jars, program string, args ...string) *application {
	t.Helper()
	levels, err := filepath.Abs(filepath.Join("..", "kafka", "log4j2.xml"))
	if err != nil {
		t.Fatal(err)
	}
	argv := append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx384m", "-Dlog4j2.configurationFile=" + levels, "-Dconformance.level=error", "-cp", jars,
		filepath.Join("java", program+".java")}, args...)
	cmd := exec.Command("java", argv...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	app := &application{output: out, cmd: cmd, in: in}
	t.Cleanup(app.kill)
	return app
}

// runs waits until the application says that it runs.
func (a *application) runs(t *testing.T) {
	t.Helper()
	a.says(t, "state: RUNNING")
}

// says waits until the application has said something.
func (a *application) says(t *testing.T, what string) {
	t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(finishes)
	defer tick.Stop()
	for !a.has(what) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the application does not say %q:\n%s", what, a.tail())
		}
	}
}

// command is a line that the application is told.
func (a *application) command(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(a.in, format+"\n", args...); err != nil {
		t.Fatalf("%v:\n%s", err, a.tail())
	}
}

// kill ends it without a word. The second time it does nothing.
func (a *application) kill() {
	a.cmd.Process.Kill() //nolint:errcheck // it has ended by itself
	a.cmd.Wait()         //nolint:errcheck // it was killed
}

// output keeps what the application says.
type output struct {
	mu   sync.Mutex
	text []byte
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *output) has(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Contains(o.text, []byte(what))
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text[max(0, len(o.text)-8000):])
}
