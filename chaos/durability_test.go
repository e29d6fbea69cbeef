package chaos

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every line of docs/durability.md is held by a test that it names: they exist.
func TestTheTestsThatDurabilityNamesExist(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "docs", "durability.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), ".Test"); n != len(named) || n < 30 {
		t.Errorf("%d tests are named, %d as `directory.TestName`", n, len(named))
	}
	sources := map[string]string{}
	for _, m := range named {
		dir, name := m[1], m[2]
		if sources[dir] == "" {
			sources[dir] = testsOf(t, filepath.Join("..", filepath.FromSlash(dir)))
		}
		if !strings.Contains(sources[dir], "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("docs/durability.md names %s of %s, which is not there", name, dir)
		}
	}
}

// testsOf is the text of all test files of a directory.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
