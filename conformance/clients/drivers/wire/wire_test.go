package wire

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// talk sends lines to a driver and returns what it writes.
func talk(t *testing.T, d Driver, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	m := &Member{out: &output{w: &out}, next: map[int]int64{}}
	if err := serve(t.Context(), d, "broker:9092", strings.NewReader(strings.Join(lines, "\n")), m); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestServeRepliesToEachCommand(t *testing.T) {
	d := Driver{
		Client: "mine", Version: "1", Language: "Go", Codecs: []string{"none"}, Features: []string{"commit"},
		Produce: func(_ context.Context, addr string, c Command) (acked [][3]int64, err error) {
			for i, r := range c.Records() {
				acked = append(acked, [3]int64{int64(r.Number), int64(r.Partition), int64(i)})
			}
			if addr != "broker:9092" {
				return nil, errors.New("another address\nthan given")
			}
			return acked, nil
		},
		Join: func(_ context.Context, _ string, _ Command, m *Member) error {
			m.Assigned([]int{1, 0})
			m.Record(0, 4, "k", "v", "h")
			m.Record(2, 9, "k", "v", "h") // not owned
			m.Revoked([]int{1}, true)
			return nil
		},
		Commit: func(_ context.Context, m *Member) (map[int]int64, error) { return m.Positions(), nil },
		Leave: func(_ context.Context, m *Member) error {
			m.RevokedAll()
			return errors.New("no\nway")
		},
	}
	got := talk(t, d, `{"id":1,"do":"info"}`, `{"id":2,"do":"create"}`, `{"id":3,"do":"produce","from":3,"count":2,"partitions":2}`, `{"id":4,"do":"join"}`, `{"id":5,"do":"commit"}`,
		`{"id":6,"do":"leave"}`, `{"id":7,"do":"quit"}`, `{"id":8,"do":"info"}`)
	want := `{"re":1,"client":"mine","version":"1","language":"Go","codecs":["none"],"features":["commit"],"partition":0,"offset":0}
{"re":2,"error":"mine has no create","partition":0,"offset":0}
{"re":3,"acked":[[3,1,0],[4,0,1]],"partition":0,"offset":0}
{"event":"assigned","partitions":[1,0],"owned":[0,1],"partition":0,"offset":0}
{"event":"record","partition":0,"offset":4,"key":"k","value":"v","header":"h"}
{"event":"revoked","partitions":[1],"owned":[0],"lost":true,"partition":0,"offset":0}
{"re":4,"partition":0,"offset":0}
{"re":5,"committed":{"0":5},"partition":0,"offset":0}
{"event":"revoked","partitions":[0],"partition":0,"offset":0}
{"re":6,"error":"no; way","partition":0,"offset":0}
{"re":7,"partition":0,"offset":0}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRecordsAreThoseOfTheProtocol(t *testing.T) {
	r := Command{From: 7, Count: 1, Partitions: 6}.Records()[0]
	if want := (Record{Number: 7, Partition: 1, Key: "key-7", Value: "value-7-" + strings.Repeat("x", 200), Header: "7"}); r != want {
		t.Errorf("%+v", r)
	}
}
