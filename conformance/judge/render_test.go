package judge

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestResponseIsRenderedUnderKmsgsNames(t *testing.T) {
	m := newMasks("127.0.0.1", 4711)
	resp := kmsg.NewPtrMetadataResponse()
	resp.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "127.0.0.1", Port: 4711}}
	topic := kmsg.NewMetadataResponseTopic()
	topic.ErrorCode = 17
	resp.Topics = append(resp.Topics, topic)
	got := compact(m.render(resp)["Brokers"]) + compact(m.render(resp)["Topics"])
	want := `[{"Host":"<host>","NodeID":1,"Port":"<port>","Rack":null}]` +
		`[{"AuthorizedOperations":-2147483648,"ErrorCode":"INVALID_TOPIC_EXCEPTION (17)","IsInternal":false,"Partitions":null,"Topic":null,"TopicID":"00000000000000000000000000000000"}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRecordsAreRenderedRightAndWrong(t *testing.T) {
	m := newMasks("127.0.0.1", 4711)
	for _, c := range []struct {
		name    string
		records []byte
		want    string
	}{
		{"empty", []byte{}, `[]`},
		{"right", Values("a").Bytes(), `[{"Attributes":"0x0","BaseOffset":0,"BaseSequence":-1,"BaseTimestamp":1700000000000,"CRC":"right","Codec":0,"Count":1,"LastOffsetDelta":0,` +
			`"LeaderEpoch":-1,"Length":57,"MaxTimestamp":1700000000000,"ProducerEpoch":-1,"ProducerID":-1,"Records":[{"Attributes":0,"Key":null,"OffsetDelta":0,"TimestampDelta":0,"Value":"a"}]}]`},
		{"cut", Values("a").Bytes()[:12], `["12 bytes that are no whole batch of magic 2: 0x000000000000000000000039"]`},
	} {
		if got := compact(m.batches(c.records)); got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
	wrong := m.batch(Values("a").Codec(2).With(func(b *Batch) { b.CRCXor, b.Payload = 1, []byte{1, 2, 3} }).Bytes())
	if wrong["CRC"] != "wrong" || wrong["Records"] != "3 bytes that can't be decompressed" {
		t.Errorf("%v", wrong)
	}
}

func TestErrorsHaveTheirNames(t *testing.T) {
	for code, want := range map[int16]string{0: "NONE", 87: "INVALID_RECORD (87)", -1: "UNKNOWN_SERVER_ERROR (-1)", 9999: "UNNAMED (9999)"} {
		if got := ErrorName(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

func TestListsAreOrderedWhereAsked(t *testing.T) {
	tree := map[string]any{"Topics": []any{"b", map[string]any{"Topics": []any{"d", "c"}}, "a"}, "Others": []any{"z", "y"}}
	sortLists(tree, []string{"Topics"})
	if got := compact(tree); got != `{"Others":["z","y"],"Topics":["a","b",{"Topics":["c","d"]}]}` {
		t.Error(got)
	}
}
