package config

import (
	"slices"
	"strings"
	"testing"
)

// FX-3: the form of java.util.Properties.
func TestParseProperties(t *testing.T) {
	text := "# c\n! c\n\n  a = 1 \r\nb:2\rc 3\nd\ne=x\\\n  y\\\n\nf\\=g=h\\:i\nj=\\u00e9\\ud83d\\ude00\\t|\nk=a\\\\\nl=\nm==x\nn=#no comment\nq=z\\"
	got, err := parseProperties(text, "f")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range got {
		all = append(all, p.name+"="+p.value)
	}
	want := []string{"a=1", "b=2", "c=3", "d=", "e=xy", "f=g=h:i", "j=\u00e9\U0001F600\t|", `k=a\`, "l=", "m==x", "n=#no comment", "q=z"}
	if !slices.Equal(all, want) {
		t.Errorf("%q\nwant\n%q", all, want)
	}
	if got[0].by != "a in f" {
		t.Errorf("by %q", got[0].by)
	}
	for _, bad := range []string{`a=\u12`, `a=\u12x4`, `\u=1`} {
		if _, err := parseProperties(bad, "f"); err == nil || !strings.HasPrefix(err.Error(), "f: line ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzKafkaProperties(f *testing.F) {
	f.Add("listeners=A://:1,CONTROLLER://:2,B://[::]:3\nadvertised.listeners=B://h:3\nlog.retention.hours=7\n\\u0041:\\\n x", "KAFKA_CFG_LOG_DIRS=a,b")
	f.Add(fileInput, "KAFKA_ADVERTISED_LISTENERS=SSL://h:1,X://0.0.0.0:5")
	f.Add("a\\nb=1", "KAFKA_0\n=2")
	f.Fuzz(func(t *testing.T, text, variable string) {
		s, _, err := Sources{Properties: text, PropertiesFile: "f", Environ: []string{variable}}.Parse()
		if err != nil {
			if strings.ContainsRune(err.Error(), '\r') {
				t.Fatalf("a mistake of more than one line: %q", err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("Parse accepts what Validate refuses: %v", err)
		}
		if _, err := EffectiveTopic(s, nil); err != nil {
			t.Fatalf("Parse accepts defaults that no topic can have: %v", err)
		}
		for _, w := range s.Warnings {
			if strings.ContainsAny(w, "\r\n") {
				t.Fatalf("a warning of more than one line: %q", w)
			}
		}
	})
}
