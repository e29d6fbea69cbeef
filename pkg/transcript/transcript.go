// Package transcript runs the conversations in a test's testdata/: commands,
// and what they printed, in the test's own form. They are a test, and read as documentation.
package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the transcripts in testdata do now into them")

// Run plays every testdata/*.txt as a test of its own. play returns a script
// with what its commands print now in the place of what they printed before;
// with -update that is written into the file, otherwise a difference fails.
func Run(t *testing.T, play func(t *testing.T, script string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(b))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := difference(got, string(b)); d != "" {
				t.Fatalf("%s, %s", file, d)
			}
		})
	}
}

// difference is the first line in which two texts differ, "" if there is none.
// Where one text ends before the other, that is a difference.
func difference(got, want string) string {
	const end = "(the end)"
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		gl, wl := end, end
		if i < len(g) {
			gl = g[i]
		}
		if i < len(w) {
			wl = w[i]
		}
		if gl != wl {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, gl, wl)
		}
	}
	return ""
}
