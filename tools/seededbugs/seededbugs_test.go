package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/tools/must"
)

// sources is the module in which the bugs are made.
const sources tree = "../.."

func allBugs(t *testing.T) []bug {
	t.Helper()
	return must.Get(bugs())
}

// TestBugsFitTheSources fails if the code no longer has a line that the table quotes: that bug could not be made.
func TestBugsFitTheSources(t *testing.T) {
	for _, b := range allBugs(t) {
		files, err := sources.changed(nil, &b)
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
		}
		for file := range b.Add {
			if _, err := os.Stat(filepath.Join(string(sources), file)); err == nil {
				t.Errorf("%s would replace %s", b.Name, file)
			}
		}
	}
}

// TestBugsCompile type-checks the package of each bug. Each bug is made in one package only.
func TestBugsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the program")
	}
	type listed struct {
		Dir, ImportPath, Export string
		GoFiles                 []string
	}
	list := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./...")
	list.Dir = must.Get(filepath.Abs(string(sources)))
	compiled, packages := map[string]string{}, map[string]listed{} // by import path; by folder
	for in := json.NewDecoder(bytes.NewReader(must.Get(list.Output()))); in.More(); {
		var p listed
		must.Do(in.Decode(&p))
		compiled[p.ImportPath], packages[p.Dir] = p.Export, p
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	for _, b := range allBugs(t) {
		files, folder := must.Get(sources.changed(nil, &b)), ""
		for name := range files {
			folder = filepath.Dir(name)
		}
		p := packages[filepath.Join(list.Dir, folder)]
		for _, name := range p.GoFiles {
			name = filepath.Join(folder, name)
			files[name] = sources.read(name, files)
		}
		var parsed []*ast.File
		for name, text := range files {
			if strings.HasSuffix(name, ".go") {
				parsed = append(parsed, must.Get(parser.ParseFile(set, name, text, parser.SkipObjectResolution)))
			}
		}
		if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, parsed, nil); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

func TestTestsInTheTableExist(t *testing.T) {
	for _, b := range allBugs(t) {
		if len(b.Caught) == 0 {
			t.Errorf("%s names no test that catches it", b.Name)
		}
		for folder, tests := range b.Caught {
			text := testsOf(t, filepath.Join(string(sources), folder))
			for _, name := range tests {
				name, _, _ = strings.Cut(name, "/")
				if strings.Count(text, "\nfunc "+name+"(t *testing.T)") != 1 {
					t.Errorf("%s: %s has no test %s", b.Name, folder, name)
				}
			}
		}
	}
}

func testsOf(t *testing.T, folder string) string {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(folder, "*_test.go")))
	var all strings.Builder
	for _, name := range names {
		text := must.Get(os.ReadFile(name))
		all.Write(text)
	}
	return all.String()
}

func TestBugsAreNumberedAndNamed(t *testing.T) {
	names := map[string]bool{}
	all := allBugs(t)
	for i, b := range all {
		if b.Number != i+1 || b.Name == "" || b.Imitates == "" || names[b.Name] || strings.Contains(b.Name, ",") {
			t.Errorf("bug %d: number %d, name %q", i+1, b.Number, b.Name)
		}
		for _, e := range b.Edits {
			if (e.In == "") == (e.File == "") || (e.First == "") == (e.Old == "") {
				t.Errorf("%s: an edit is in a function or a file, and says what comes first or what is replaced: %+v", b.Name, e)
			}
		}
		names[b.Name] = true
	}
	if len(all) != 96 {
		t.Errorf("%d bugs, want 96", len(all))
	}
}

func TestEdits(t *testing.T) {
	const before = "package a\n\nfunc (x *t) f() int {\n\ty := 1 // one\n\treturn y\n}\n\nfunc f() int {\n\ty := 1\n\treturn y\n}\n"
	dir := tree(t.TempDir())
	must.Do(os.Mkdir(filepath.Join(string(dir), "a"), 0o700))
	for name, text := range map[string]string{"a/b.go": "package a\n", "a/a.go": before, "q.sql": "a  b"} {
		must.Do(os.WriteFile(filepath.Join(string(dir), name), []byte(text), 0o600))
	}
	for _, test := range []struct {
		edit edit
		want string // "": an error
	}{
		{edit{In: "a.f", Old: "y := 1", New: "y := 2"}, strings.Replace(before, "f() int {\n\ty := 1\n", "f() int {\n\ty := 2\n", 1)},
		{edit{In: "a.t.f", Old: "y := 1 return y", New: "return 2"}, strings.Replace(before, "y := 1 // one\n\treturn y", "return 2", 1)},
		{edit{In: "a.t.f", First: "return 2"}, strings.Replace(before, "t) f() int {", "t) f() int {\nif true {\nreturn 2\n}\n", 1)},
		{edit{File: "q.sql", Old: "b", New: "c"}, "a  c"},
		{edit{In: "a.f", Old: "y", New: "z"}, ""},
		{edit{In: "a.f", Old: "x", New: "z"}, ""},
		{edit{In: "a.g", First: "return 2"}, ""},
		{edit{File: "r.sql", Old: "b", New: "c"}, ""},
	} {
		files, err := dir.changed(nil, &bug{Name: "b", Edits: []edit{test.edit}})
		if (err == nil) != (test.want != "") || err == nil && files["a/a.go"]+files["q.sql"] != test.want {
			t.Errorf("%+v: %q, %v", test.edit, files, err)
		}
	}
}
