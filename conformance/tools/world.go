package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
)

// stateWithin is how long a group may take to get into the state that a script waits for.
const stateWithin = 60 * time.Second

// world is what a script acts in: a broker, the clients that it started, and a directory for its files.
type world struct {
	addr    string
	dir     string
	client  *kgo.Client
	admin   *kadm.Client
	members map[string]*member
	open    []*kgo.Client // with a transaction that nobody ends
}

// member is a client that has joined a group and reads until it leaves.
type member struct {
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}
}

func newWorld(addr, dir string) (*world, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	return &world{addr: addr, dir: dir, client: client, admin: kadm.NewClient(client), members: map[string]*member{}}, nil
}

func (w *world) close() {
	for _, m := range w.members {
		m.leave()
	}
	for _, c := range w.open {
		c.Close()
	}
	w.client.Close()
}

// do runs a % line.
func (w *world) do(ctx context.Context, s step) error {
	args, _, err := words(s.command[2:])
	if err != nil {
		return err
	}
	verbs := map[string]struct {
		args int // at least
		run  func(context.Context, []string) error
	}{
		"topic": {2, w.topic}, "produce": {3, w.produce}, "member": {3, w.join}, "leave": {1, w.leave}, "await": {3, w.await}, "commit": {2, w.commit},
		"transaction": {4, w.transaction},
		"file":        {1, func(_ context.Context, a []string) error { return w.file(a[0], s.input) }},
	}
	verb, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("no such thing: %s", s.command)
	}
	if len(args)-1 < verb.args {
		return fmt.Errorf("at least %d words have to follow: %s", verb.args, s.command)
	}
	return verb.run(ctx, args[1:])
}

// topic: name partitions. It returns once it can be produced to.
func (w *world) topic(ctx context.Context, args []string) error {
	partitions, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return err
	}
	if _, err := w.admin.CreateTopic(ctx, int32(partitions), 1, nil, args[0]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stateWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if topics, err := w.admin.ListTopics(ctx, args[0]); err == nil && len(topics[args[0]].Partitions) == int(partitions) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("topic %s is not there within %v", args[0], stateWithin)
		}
	}
}

// produce: topic partition count [at TIME]. TIME is of the first record, by RFC 3339 or from now (-2h); each record is a second later. Without it the last is a second ago.
func (w *world) produce(ctx context.Context, args []string) error {
	partition, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	at := time.Now().Add(-time.Duration(count) * time.Second) // none of them in the future
	if len(args) == 5 {
		if ago, err := time.ParseDuration(args[4]); err == nil {
			at = time.Now().Add(ago)
		} else if at, err = time.Parse(time.RFC3339, args[4]); err != nil {
			return err
		}
	}
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = &kgo.Record{Topic: args[0], Partition: int32(partition), Value: fmt.Appendf(nil, "%s-%d-%d", args[0], partition, i), Timestamp: at.Add(time.Duration(i) * time.Second)}
	}
	return w.client.ProduceSync(ctx, records...).FirstErr()
}

// join: name group topic... The name is the client's id, and the first part of the member's.
func (w *world) join(ctx context.Context, args []string) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(w.addr), kgo.ClientID(args[0]), kgo.ConsumerGroup(args[1]), kgo.ConsumeTopics(args[2:]...),
		kgo.SessionTimeout(5 * time.Minute), // a static member that has left is a member until then
		kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if instance, ok := strings.CutPrefix(args[0], "static-"); ok {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &member{client: client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			client.PollFetches(ctx)
		}
	}()
	w.members[args[0]] = m
	return nil
}

func (m *member) leave() {
	m.cancel()
	<-m.done
	m.client.Close() // leaves the group, if the member is not a static one
}

func (w *world) leave(_ context.Context, args []string) error {
	m := w.members[args[0]]
	if m == nil {
		return fmt.Errorf("no member %s", args[0])
	}
	delete(w.members, args[0])
	m.leave()
	return nil
}

// await: group state members.
func (w *world) await(ctx context.Context, args []string) error {
	members, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stateWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		groups, err := w.admin.DescribeGroups(ctx, args[0])
		if g := groups[args[0]]; err == nil && g.State == args[1] && len(g.Members) == members {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("group %s is not %s with %d members within %v: %+v, %w", args[0], args[1], members, stateWithin, groups[args[0]], err)
		}
	}
}

// commit: group topic:partition=offset... as a simple consumer does, which is not a member.
func (w *world) commit(ctx context.Context, args []string) error {
	var offsets kadm.Offsets
	for _, arg := range args[1:] {
		topic, rest, _ := strings.Cut(arg, ":")
		partition, offset, _ := strings.Cut(rest, "=")
		p, err := strconv.ParseInt(partition, 10, 32)
		if err != nil {
			return err
		}
		o, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			return err
		}
		offsets.Add(kadm.Offset{Topic: topic, Partition: int32(p), At: o, LeaderEpoch: -1})
	}
	return w.admin.CommitAllOffsets(ctx, args[0], offsets)
}

// transaction: id topic partition count [commit|abort]. Without an end it stays open.
func (w *world) transaction(ctx context.Context, args []string) error {
	partition, err := strconv.ParseInt(args[2], 10, 32)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.TransactionalID(args[0]), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.TransactionTimeout(15*time.Minute)) // one without an end is open as long as its script takes
	if err != nil {
		return err
	}
	w.open = append(w.open, client)
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	for i := range count {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: args[1], Partition: int32(partition), Value: fmt.Appendf(nil, "%s-%d", args[0], i)}).FirstErr(); err != nil {
			return err
		}
	}
	// franz-go 1.22.3 sends the first records for a topic before it has stored the topic's partitions, and a transaction that is ended in
	// between counts as one without records: nothing is sent, and no error comes. This waits until its update of metadata is done.
	client.PurgeTopicsFromProducing("no topic")
	if len(args) == 4 {
		return nil
	}
	return client.EndTransaction(ctx, args[4] == "commit")
}

// file: name, and its lines as input.
func (w *world) file(name string, lines []string) error {
	return os.WriteFile(filepath.Join(w.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// tool runs a $ line: a tool by its name, with the broker's address first unless the line says where ($BROKER); $DIR is the script's directory.
func (w *world) tool(ctx context.Context, r *Runner, m *masker, s step) ([]string, error) {
	args, filters, err := words(s.command[2:])
	if err != nil {
		return nil, err
	}
	class, ok := classes[args[0]]
	if !ok {
		return nil, fmt.Errorf("no such tool: %s", s.command)
	}
	if !strings.Contains(s.command, "$BROKER") {
		args = append([]string{args[0], "--bootstrap-server", "$BROKER"}, args[1:]...)
	}
	for i := range args {
		args[i] = strings.NewReplacer("$BROKER", w.addr, "$DIR", w.dir).Replace(args[i])
	}
	stdin := ""
	if len(s.input) > 0 {
		stdin = strings.Join(s.input, "\n") + "\n"
	}
	var result Result
	if strings.HasPrefix(args[0], "kafka-verifiable-") {
		result, err = process(ctx, toolPackage+class, args[1:])
	} else {
		result, err = r.Run(toolPackage+class, stdin, args[1:]...)
	}
	if err != nil {
		return nil, err
	}
	return m.lines(output(result), filters)
}

// process runs a tool in a JVM of its own: one that calls System.exit.
func process(ctx context.Context, class string, args []string) (Result, error) {
	out, err := kafka.Tool(ctx, class, args...)
	result := Result{Stdout: out.Stdout, Stderr: out.Stderr}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.Exit = exit.ExitCode()
		return result, nil
	}
	return result, err
}

// Play runs a script against the broker at addr and returns it with the output of now. dataDir is the broker's, the script's
// files are in dir.
func Play(ctx context.Context, r *Runner, addr, dataDir, dir, script string) (string, error) {
	steps, err := parse(script)
	if err != nil {
		return "", err
	}
	w, err := newWorld(addr, dir)
	if err != nil {
		return "", err
	}
	defer w.close()
	port := addr[strings.LastIndex(addr, ":")+1:]
	m := newMasker(addr, strings.TrimSuffix(addr, port)+"00000", " "+port+" ", " 00000 ", dataDir, "$DATA", dir, "$DIR", kafka.Version(), "<version>")
	for i := range steps {
		s := &steps[i]
		switch {
		case strings.HasPrefix(s.command, "% "):
			err = w.do(ctx, *s)
		case strings.HasPrefix(s.command, "$ "):
			s.output, err = w.tool(ctx, r, m, *s)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.command, err)
		}
	}
	return format(steps), nil
}
