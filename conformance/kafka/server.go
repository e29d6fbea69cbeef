package kafka

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/proc"
)

const (
	readyWithin = 90 * time.Second
	stopWithin  = 60 * time.Second
)

// Server is a Kafka in combined mode (broker and controller in one process) on loopback ports of its own.
type Server struct {
	dir  string
	addr string
	argv []string
	proc *proc.Process
}

// New prepares a Kafka in dir: configuration and formatted storage. properties are added to, or replace, those of a single node.
func New(ctx context.Context, dir string, properties map[string]string) (*Server, error) {
	classpath, err := Classpath(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	addr, controller := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	config := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(config, serverProperties(dir, addr, controller, properties), 0o644); err != nil {
		return nil, err
	}
	out, err := Tool(ctx, storageTool, "format", "--standalone", "-t", "DozeKafkaConformance00", "-c", config)
	if err != nil {
		return nil, fmt.Errorf("format storage: %w\n%s%s", err, out.Stdout, out.Stderr)
	}
	java, err := javaArgs(dir, "info", classpath)
	if err != nil {
		return nil, err
	}
	return &Server{dir: dir, addr: addr, argv: slices.Concat([]string{"java"}, java, []string{server, config})}, nil
}

// serverProperties are Kafka's defaults, except where one node cannot work with them.
func serverProperties(dir, addr, controller string, more map[string]string) []byte {
	p := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.bootstrap.servers":              controller,
		"controller.listener.names":                        "CONTROLLER",
		"listeners":                                        "PLAINTEXT://" + addr + ",CONTROLLER://" + controller,
		"advertised.listeners":                             "PLAINTEXT://" + addr,
		"log.dirs":                                         filepath.Join(dir, "data"),
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
	maps.Copy(p, more)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", k, p[k])
	}
	return []byte(b.String())
}

// Start runs the server and returns once it answers; after Stop or Kill it may be called again, on the same data and port.
func (s *Server) Start(ctx context.Context) error {
	p, err := proc.Start(filepath.Join(s.dir, "server.log"), nil, s.argv...)
	if err != nil {
		return err
	}
	s.proc = p
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := WaitReady(ctx, s.addr, p); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// Addr is the bootstrap address.
func (s *Server) Addr() string { return s.addr }

// DataDir holds the partitions' directories.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

// Stop shuts the server down in order.
func (s *Server) Stop() error { return s.proc.Stop(stopWithin) }

// Kill is a SIGKILL.
func (s *Server) Kill() { s.proc.Kill() }

// LogTail is the end of the server's log.
func (s *Server) LogTail(n int) string { return s.proc.LogTail(n) }

// WaitReady returns once the broker at addr, which is process p, lists itself in a Metadata response; with an error when ctx ends or the process
// has ended.
func WaitReady(ctx context.Context, addr string, p *proc.Process) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx, addr)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("%s ended before it was ready\n%s", addr, p.LogTail(30))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last answer: %w)\n%s", addr, ctx.Err(), err, p.LogTail(30))
		}
	}
}

func ready(ctx context.Context, addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err // cheaper than a client whose every attempt backs off
	}
	if err := conn.Close(); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err == nil && len(brokers) == 0 {
		return fmt.Errorf("no broker is registered yet")
	}
	return err
}

// given are the ports that FreePorts has returned in this process: a broker that is down for a moment gets its own back.
var given sync.Map

// FreePorts returns n loopback ports that were free a moment ago. They are below those that systems give to outgoing connections and to
// listeners on port 0 (Linux: from 32768 on, others: from 49152 on): nobody takes one before the broker is started, or while it is restarted,
// and who dials one at which nobody listens is not connected to itself.
func FreePorts(n int) ([]int, error) {
	const first, last, most = 20000, 32000, 1000
	var ports []int
	for range most {
		if len(ports) == n {
			return ports, nil
		}
		port := first + rand.IntN(last-first)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // somebody has it
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d ports of %d to %d are free", n, first, last)
}
