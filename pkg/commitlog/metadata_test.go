package commitlog

import (
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// Whatever the file says, it is read as an id that is written like it, or as none.
func FuzzParseMetadata(f *testing.F) {
	f.Add("version: 0\ntopic_id: " + testTopicID.String())
	f.Add("version: 0\ntopic_id: " + testTopicID.String() + "\n")
	f.Add("version: 1\ntopic_id: x")
	f.Fuzz(func(t *testing.T, content string) {
		if id, ok := parseMetadata(content); ok && !strings.Contains(content, id.String()) {
			t.Errorf("%q is read as %s", content, id)
		}
	})
}

// Only names that the log itself gives are taken for its files.
func FuzzParseName(f *testing.F) {
	f.Add("00000000000000000042.timeindex")
	f.Add("0000000000000000004 .log")
	f.Add("-0000000000000000042.log")
	f.Add("99999999999999999999.log")
	f.Fuzz(func(t *testing.T, name string) {
		if base, suffix, ok := parseName(name); ok && segment.FileName(base, suffix) != name {
			t.Errorf("%q is read as %d %s", name, base, suffix)
		}
	})
}
