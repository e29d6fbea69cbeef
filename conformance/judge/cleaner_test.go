package judge

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestOurBrokerIsAskedToCompact(t *testing.T) {
	var asked []string
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.Method+" "+r.URL.Path) }))
	defer control.Close()
	e := metadataOnly(t)
	e.CanCompact(Cleaner{Control: strings.TrimPrefix(control.URL, "http://"), FirstDirty: func(string) int64 { t.Error("Kafka's checkpoint was read"); return 0 }})
	e.Compact(Topic{Name: "s-t"}, 5)
	if want := []string{"POST /v1/topics/s-t/compact"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// CF-1: a delete horizon is a time of the cleaner's, and no recording may depend on it.
func TestRecordsOfABatchWithADeleteHorizonTellTheirTimes(t *testing.T) {
	m := newMasks("127.0.0.1", 9092)
	horizon := m.start.UnixMilli() + 24*60*60*1000
	b := NewBatch(Record{Key: []byte("k")})
	b.Records[0].TimestampDelta = Base - horizon
	b.BaseTimestamp, b.Attributes = horizon, hasHorizon
	tree := m.batch(b.Bytes())
	record := tree["Records"].([]any)[0].(map[string]any)
	if _, ok := record["TimestampDelta"]; ok || record["Timestamp"] != Base || tree["BaseTimestamp"] != "<now+24h>" || tree["Attributes"] != "0x40" {
		t.Errorf("got %v", tree)
	}
}

func TestOffsetsInABatch(t *testing.T) {
	b := Values("a", "b", "c").Codec(4)
	b.BaseOffset = 7
	b.Records[2].OffsetDelta = 5
	if got, want := OffsetsIn(b.Bytes()), []int64{7, 8, 12}; !slices.Equal(got, want) {
		t.Errorf("offsets %d, want %d", got, want)
	}
	b.Attributes |= isControl
	if got := OffsetsIn(b.Bytes()); got != nil {
		t.Errorf("offsets %d of control records", got)
	}
	b.Attributes &^= isControl
	b.Payload = []byte("no such thing")
	if got := OffsetsIn(b.Bytes()); got != nil {
		t.Errorf("offsets %d of what can't be read", got)
	}
}
