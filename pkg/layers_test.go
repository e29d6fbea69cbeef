// Package pkg_test holds the tests of the tree's shape: which package may
// import which, and who may touch the disk.
package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/dozekafka/doze-kafka/pkg/"

// row is one line of the table in README.md.
type row struct {
	level      int
	thirdParty []string // import path prefixes, besides kerr
}

const (
	kmsg = "github.com/twmb/franz-go/pkg/kmsg"
	kerr = "github.com/twmb/franz-go/pkg/kerr"
)

// rows is the table "Packages, lowest row first" of README.md. A package
// imports only packages of a smaller row, the standard library, kerr, and the
// modules named here.
var rows = map[string]row{
	"kafka":         {0, nil},
	"vfs":           {0, []string{"golang.org/x/sys"}},
	"clock":         {0, nil},
	"record":        {0, []string{"github.com/klauspost/compress", "github.com/pierrec/lz4/v4"}},
	"config":        {0, []string{"github.com/caarlos0/env/v11"}},
	"vfs/faultfs":   {1, nil},
	"vfs/crashfs":   {1, nil},
	"producer":      {1, nil},
	"segment":       {1, nil},
	"metastore":     {1, []string{"go.etcd.io/bbolt"}},
	"server":        {1, []string{kmsg, "golang.org/x/sys"}},
	"fetchsession":  {1, nil},
	"group/classic": {1, nil},
	"endpoint":      {1, nil},
	"client":        {1, []string{kmsg}},
	"commitlog":     {2, nil},
	"topic":         {3, nil},
	"group":         {3, nil},
	"cleaner":       {4, nil},
	"txn":           {4, nil},
	"handler":       {5, []string{kmsg}},
	"control":       {5, []string{"github.com/VictoriaMetrics/metrics"}},
	"dump":          {5, nil},
	"broker":        {6, nil},
	"transcript":    {7, nil},
	"brokertest":    {7, []string{"github.com/twmb/franz-go", "go.etcd.io/bbolt"}},

	"brokertest/history": {7, nil},
}

// diskCalls are the functions of package os that open, make or change files.
var diskCalls = map[string]bool{
	"Chmod": true, "Chown": true, "Chtimes": true, "CopyFS": true, "Create": true, "CreateTemp": true, "DirFS": true,
	"Lchown": true, "Link": true, "Lstat": true, "Mkdir": true, "MkdirAll": true, "MkdirTemp": true,
	"NewFile": true, "Open": true, "OpenFile": true, "OpenRoot": true, "ReadDir": true, "ReadFile": true, "Readlink": true,
	"Remove": true, "RemoveAll": true, "Rename": true, "Stat": true, "Symlink": true, "Truncate": true, "WriteFile": true,
}

// diskAllowed says which packages may call them all the same, and why.
var diskAllowed = map[string]string{
	"vfs":        "it is the door to the disk",
	"endpoint":   "it reads the kernel's tables in /proc and /sys, which are not the data's disk",
	"broker":     "it reads the memory limit of the control group in /sys, which is not the data's disk",
	"brokertest": "it is a test's own files",
	"transcript": "it is a test's own files",
}

type source struct {
	name string // path below pkg/
	pkg  string
	file *ast.File
}

// sources parses every Go file below pkg/ that is not a test.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		out = append(out, source{name, path.Dir(name), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 2*len(rows) {
		t.Fatalf("%d source files found below pkg/: is the test run in its folder?", len(out))
	}
	return out
}

func TestPackagesImportOnlyLowerRows(t *testing.T) {
	for _, s := range sources(t) {
		from, ok := rows[s.pkg]
		if !ok {
			t.Errorf("%s: package %s is in no row: give it one here and in pkg/README.md", s.name, s.pkg)
			continue
		}
		for _, imp := range s.file.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if msg := wrongImport(s.pkg, from, p); msg != "" {
				t.Errorf("%s: %s", s.name, msg)
			}
		}
	}
}

// wrongImport says in a sentence what is wrong with an import, "" if nothing is.
func wrongImport(pkg string, from row, imported string) string {
	if inner, ok := strings.CutPrefix(imported, modulePath); ok {
		to, known := rows[inner]
		switch {
		case !known:
			return "package " + pkg + " imports " + inner + ", which is in no row"
		case to.level >= from.level:
			return "package " + pkg + " of row " + strconv.Itoa(from.level) + " imports " + inner +
				" of row " + strconv.Itoa(to.level) + ": only smaller rows may be imported"
		}
		return ""
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") || imported == kerr {
		return ""
	}
	allowed := func(prefix string) bool { return imported == prefix || strings.HasPrefix(imported, prefix+"/") }
	if slices.ContainsFunc(from.thirdParty, allowed) {
		return ""
	}
	return "package " + pkg + " imports " + imported + ", which its row does not name"
}

func TestOnlyVFSTouchesTheDisk(t *testing.T) {
	for _, s := range sources(t) {
		if diskAllowed[s.pkg] != "" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && diskCalls[sel.Sel.Name] {
				t.Errorf("%s: os.%s: files are reached through a vfs.FS, so that tests can fail them and cut their power",
					s.name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestEveryRowHasItsPackage(t *testing.T) {
	for _, p := range slices.Sorted(maps.Keys(rows)) {
		if _, err := os.Stat(filepath.FromSlash(p)); err != nil {
			t.Errorf("row %d names package %s, which is not there: %v", rows[p].level, p, err)
		}
	}
}

// The rows stand in README.md too, for people.
func TestReadmeNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for p, r := range rows {
		want := "| " + strconv.Itoa(r.level) + " | `" + p + "` |"
		if r.level == 7 {
			want = "| test | `" + p + "` |"
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("pkg/README.md lacks the line of package %s: %s ...", p, want)
		}
	}
}

func TestWrongImportsAreSeen(t *testing.T) {
	for _, c := range []struct{ pkg, imported string }{
		{"segment", modulePath + "commitlog"},
		{"record", modulePath + "kafka"},
		{"topic", modulePath + "util"},
		{"topic", "github.com/IBM/sarama"},
		{"broker", "github.com/dozekafka/doze-kafka/testcontainers/dozekafka"},
	} {
		if wrongImport(c.pkg, rows[c.pkg], c.imported) == "" {
			t.Errorf("%s may import %s, it seems", c.pkg, c.imported)
		}
	}
	for _, c := range []struct{ pkg, imported string }{
		{"commitlog", modulePath + "segment"},
		{"record", "github.com/klauspost/compress/zstd"},
		{"topic", kerr},
		{"topic", "log/slog"},
	} {
		if msg := wrongImport(c.pkg, rows[c.pkg], c.imported); msg != "" {
			t.Error(msg)
		}
	}
}
