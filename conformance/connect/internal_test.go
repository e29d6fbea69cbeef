package connect

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// ST-40, ST-45: Connect's own check of a topic's cleanup.policy, a topic as Debezium makes it for the history of a schema, and the pattern of a schema
// registry: what is read back up to a record that was just written is all that there is, after compactions and kills of the broker.
func TestTopicsThatProgramsKeepTheirStateIn(t *testing.T) {
	target.Need(t, "java", "mvn")
	ports, err := kafka.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	control := fmt.Sprintf("127.0.0.1:%d", ports[0])
	broker := target.Start(t, target.Options{Flags: []string{"--http-listen", control}})
	p := startInternal(t, broker.Addr())
	p.says(t, "begins")
	read, written := 0, 0
	for round := range 3 {
		if round > 0 {
			compact(t, broker, control, "_schemas")
			broker.Kill()
			broker.Restart()
		}
		if _, err := fmt.Fprintln(p.in); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(p.says(t, "round: "), "round: %d of %d", &read, &written); err != nil {
			t.Fatal(err)
		}
	}
	if broker.Name() == "doze-kafka" && read > written-200 {
		t.Errorf("%d records of %d are there: nothing was compacted", read, written)
	}
	t.Logf("%s: %d records of %d are there, and hold all schemas", broker.Name(), read, written)
}

// program is a run of Internal.java.
type program struct {
	in    io.Writer
	lines chan string
}

func startInternal(t *testing.T, addr string) *program {
	t.Helper()
	levels, err := filepath.Abs(filepath.Join("..", "kafka", "log4j2.xml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dlog4j2.configurationFile="+levels, "-Dconformance.level=error",
		"-cp", classpath(t), filepath.Join("java", "Internal.java"), addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{in: in, lines: make(chan string, 1000)}
	t.Cleanup(func() {
		in.Close()         //nolint:errcheck // it may have ended
		cmd.Process.Kill() //nolint:errcheck // the same
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	go func() {
		defer close(p.lines)
		for all := bufio.NewScanner(out); all.Scan(); {
			p.lines <- all.Text()
		}
	}()
	return p
}

// says waits for a line that begins so. Without it the program has failed.
func (p *program) says(t *testing.T, prefix string) string {
	t.Helper()
	var others []string
	for late := time.After(within); ; {
		select {
		case line, ok := <-p.lines:
			if strings.HasPrefix(line, prefix) {
				return line
			}
			if others = append(others, line); !ok {
				t.Fatalf("the program has ended:\n%s", strings.Join(others, "\n"))
			}
		case <-late:
			t.Fatalf("the program does not say %q:\n%s", prefix, strings.Join(others, "\n"))
		}
	}
}
