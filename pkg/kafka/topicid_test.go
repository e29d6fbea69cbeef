package kafka

import (
	"strings"
	"testing"
)

// The texts are those of Kafka's Uuid.toString.
func TestTopicIDHasKafkasText(t *testing.T) {
	for text, id := range map[string]TopicID{
		"AAAAAAAAAAAAAAAAAAAAAA": {},
		"AAAAAAAAAAAAAAAAAAAAAQ": metadataTopicID,
		"_____________________w": {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
		"AAECAwQFBgcICQoLDA0ODw": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	} {
		if got := id.String(); got != text {
			t.Errorf("String of %v is %q, want %q", [16]byte(id), got, text)
		}
		if got, err := ParseTopicID(text); err != nil || got != id {
			t.Errorf("ParseTopicID(%q) is %v, %v", text, [16]byte(got), err)
		}
	}
}

func TestParseTopicIDRefusesOtherText(t *testing.T) {
	for _, text := range []string{
		"", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAA",
		"AAAAAAAAAAAAAAAAAAAAA+", "AAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAA\nAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA\n",
	} {
		id, err := ParseTopicID(text)
		if err == nil || !id.IsZero() {
			t.Errorf("ParseTopicID(%q) is %v, %v", text, id, err)
		} else if !strings.Contains(err.Error(), "22 characters") {
			t.Errorf("the error does not say what is wanted: %v", err)
		}
	}
}

func FuzzParseTopicID(f *testing.F) {
	f.Add("AAECAwQFBgcICQoLDA0ODw")
	f.Add("AAECAwQFBgcICQoLDA0OD\n")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseTopicID(text)
		if err != nil {
			return
		}
		if again, err := ParseTopicID(id.String()); err != nil || again != id || len(text) != 22 || id.String()[:21] != text[:21] {
			t.Errorf("%q is read as %v", text, id)
		}
	})
}

func TestNewTopicIDIsRandomAndSafeOnACommandLine(t *testing.T) {
	seen := map[TopicID]bool{}
	for range 2000 {
		id := NewTopicID()
		if seen[id] || id.IsZero() || id == metadataTopicID {
			t.Fatal("not a new id:", id)
		}
		seen[id] = true
		if id.String()[0] == '-' {
			t.Fatal("starts with a dash:", id)
		}
		if id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Fatal("not a version 4 UUID:", id)
		}
	}
}

func TestTheZeroTopicIDIsNone(t *testing.T) {
	if !(TopicID{}).IsZero() || metadataTopicID.IsZero() {
		t.Error("IsZero")
	}
}
