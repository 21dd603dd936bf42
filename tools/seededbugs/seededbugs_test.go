package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sources is the module that the bugs are made in.
const sources = "../.."

// TestBugsFitTheSources fails when the code has moved away from the table: a bug that is made nowhere is caught by
// nothing.
func TestBugsFitTheSources(t *testing.T) {
	for _, b := range bugs() {
		files, err := b.changed(func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(sources, file)) })
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
		}
		for _, a := range b.adds {
			if _, err := os.Stat(filepath.Join(sources, a.file)); err == nil {
				t.Errorf("%s would replace %s", b.name, a.file)
			}
		}
	}
}

func TestTestsOfTheTableAreThere(t *testing.T) {
	for _, b := range bugs() {
		if len(b.checks) == 0 {
			t.Errorf("%s is for no test", b.name)
		}
		for _, c := range b.checks {
			text := testsOf(t, filepath.Join(sources, c.folder))
			for _, name := range c.tests {
				name, _, _ = strings.Cut(name, "/")
				if strings.Count(text, "\nfunc "+name+"(t *testing.T)") != 1 {
					t.Errorf("%s: %s has no test %s", b.name, c.folder, name)
				}
			}
		}
	}
}

func testsOf(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestBugsAreNumberedAndNamed(t *testing.T) {
	names := map[string]bool{}
	for i, b := range bugs() {
		if b.number != i+1 || b.name == "" || b.imitates == "" || names[b.name] || strings.Contains(b.name, ",") {
			t.Errorf("bug %d: number %d, name %q", i+1, b.number, b.name)
		}
		names[b.name] = true
	}
	if len(names) != 69 {
		t.Errorf("%d bugs, want 69", len(names))
	}
}

func TestBugsAreChosenByNumberAndName(t *testing.T) {
	some, err := chosen(bugs(), "6, BOM kept")
	if err != nil || len(some) != 2 || some[0].number != 6 || some[1].number != 13 {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := chosen(bugs(), "99"); err == nil {
		t.Error("a bug that is not there was found")
	}
}

func TestAnEditMustFitOnce(t *testing.T) {
	b := bug{name: "b", edits: []edit{{"f.go", "x", "y"}}}
	for text, good := range map[string]bool{"a": false, "axb": true, "xx": false} {
		files, err := b.changed(func(string) ([]byte, error) { return []byte(text), nil })
		if (err == nil) != good || good && files["f.go"] != "ayb" {
			t.Errorf("%q: %v, %v", text, files, err)
		}
	}
}

func TestPlantedBugsAreWeeded(t *testing.T) {
	dir := tree(t.TempDir())
	if err := os.WriteFile(dir.path("f.go"), []byte("package f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := bug{edits: []edit{{"f.go", "f", "g"}}, adds: []added{{"http2.go", "http2.go.txt"}}}
	weed, err := dir.plant(&b)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(dir.path("f.go")); string(text) != "package g\n" {
		t.Errorf("planted: %q", text)
	}
	if err := weed(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(string(dir))
	if text, _ := os.ReadFile(dir.path("f.go")); string(text) != "package f\n" || len(left) != 1 || err != nil {
		t.Errorf("weeded: %q, %v, %v", text, left, err)
	}
}

func TestEventsAreRead(t *testing.T) {
	for _, test := range []struct {
		name, text, failed string
		hung, fault        bool
	}{
		{name: "all pass", text: `{"Action":"pass","Package":"leadferry/a","Test":"TestA"}
{"Action":"pass","Package":"leadferry/a"}
`},
		{name: "the first that fails", failed: "a TestA/sub", text: `{"Action":"fail","Package":"leadferry/a","Test":"TestA/sub"}
{"Action":"fail","Package":"leadferry/a","Test":"TestA"}
{"Action":"fail","Package":"leadferry/a"}
`},
		{name: "a leak behind the tests", failed: "a (behind its tests)", text: `{"Action":"pass","Package":"leadferry/a","Test":"TestA"}
{"Action":"fail","Package":"leadferry/a"}
`},
		{name: "a panic that ends all", failed: "a TestB/sub", text: `{"Action":"run","Package":"leadferry/a","Test":"TestA"}
{"Action":"pass","Package":"leadferry/a","Test":"TestA"}
{"Action":"run","Package":"leadferry/a","Test":"TestB/sub"}
{"Action":"fail","Package":"leadferry/a"}
`},
		{name: "no end", hung: true, failed: "a TestA", text: `{"Action":"output","Package":"leadferry/a","Test":"TestA","Output":"panic: test timed out after 1s\n"}
{"Action":"fail","Package":"leadferry/a","Test":"TestA"}
`},
		{name: "tests that cannot be built", fault: true, text: `{"ImportPath":"leadferry/a","Action":"build-fail"}
{"Action":"fail","Package":"leadferry/a","FailedBuild":"leadferry/a"}
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := readEvents([]byte(test.text))
			if (err != nil) != test.fault || err == nil && r.failed != test.failed || r.hung != test.hung {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
