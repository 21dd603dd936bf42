package layout

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// toy is a plan of four rooms; goodModule keeps it.
func toy() plan {
	return plan{
		module: "toy",
		rooms: map[string]room{
			".":     {imports: []string{"shell"}, stdOnly: true},
			"shell": {imports: []string{"leaf", "store"}},
			"leaf":  {tests: []string{"store"}},
			"store": {},
		},
		reserved: []reserved{
			{path: "example.org/db", rooms: []string{"store"}, tests: true},
			{path: "net/http", rooms: []string{"leaf", "store"}},
		},
		calls: reserved{path: "net/http", rooms: []string{"leaf"}},
		names: []string{"Get"},
	}
}

// good is a module that keeps the plan toy to the edge of every rule.
func good() map[string]string {
	return map[string]string{
		"main.go":              "package main\n\nimport _ \"toy/shell\"\n\nfunc main() {}\n",
		"main_test.go":         "package main\n\nimport _ \"example.org/script\"\n",
		"shell/shell.go":       "package shell\n\nimport (\n\t_ \"example.org/flags\"\n\t_ \"toy/leaf\"\n\t_ \"toy/store\"\n)\n",
		"shell/shell_test.go":  "package shell\n\nimport _ \"net/http/httptest\"\n",
		"leaf/leaf.go":         "package leaf\n\nimport web \"net/http\"\n\nvar _ = web.Get\n",
		"leaf/leaf_test.go":    "package leaf_test\n\nimport (\n\t_ \"toy/leaf\"\n\t_ \"toy/store\"\n)\n",
		"store/store.go":       "package store\n\nimport (\n\t\"net/http\"\n\n\t_ \"example.org/db/page\"\n)\n\nvar _ = http.Serve\n",
		"store/store_test.go":  "package store\n\nimport \"net/http\"\n\nvar _ = http.Get\n",
		"store/start.go":       "package store\n\ntype T struct{}\n\nfunc (T) init() {}\n",
		"tools/go.mod":         "module toy/tools\n",
		"tools/util.go":        "package util\n",
		"leaf/testdata/bad.go": "this is not Go",
		".hidden/util.go":      "package util\n",
	}
}

func module(files map[string]string) fs.FS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestCheckerPassesAModuleThatKeepsThePlan(t *testing.T) {
	faults, err := toy().check(module(good()))
	if err != nil || len(faults) > 0 {
		t.Errorf("faults %v, error %v", faults, err)
	}
}

func TestCheckerFindsEveryKindOfFault(t *testing.T) {
	tests := map[string]struct{ file, text, want string }{
		"leaf imports leaf":      {"leaf/x.go", "package leaf\n\nimport _ \"toy/store\"\n", "leaf/x.go:3: leaf may not import store"},
		"leaf imports upwards":   {"store/x.go", "package store\n\nimport _ \"toy/shell\"\n", "store/x.go:3: store may not import shell"},
		"test imports too much":  {"store/x_test.go", "package store\n\nimport _ \"toy/leaf\"\n", "store/x_test.go:3: store may not import leaf"},
		"room imports the root":  {"shell/x.go", "package shell\n\nimport _ \"toy\"\n", "shell/x.go:3: shell may not import ."},
		"room imports nowhere":   {"shell/x.go", "package shell\n\nimport _ \"toy/new\"\n", "shell/x.go:3: shell may not import new"},
		"root skips the shell":   {"x.go", "package main\n\nimport _ \"toy/leaf\"\n", "x.go:3: . may not import leaf"},
		"root imports a library": {"x.go", "package main\n\nimport _ \"example.org/flags\"\n", "x.go:3: . may import the standard library only, not example.org/flags"},
		"reserved library":       {"shell/x.go", "package shell\n\nimport _ \"example.org/db\"\n", "shell/x.go:3: example.org/db is for store only"},
		"reserved, in a test":    {"shell/x_test.go", "package shell\n\nimport _ \"example.org/db\"\n", "shell/x_test.go:3: example.org/db is for store only"},
		"reserved, sub-package":  {"shell/x.go", "package shell\n\nimport _ \"net/http/httptest\"\n", "shell/x.go:3: net/http is for leaf and store only"},
		"a call from elsewhere":  {"store/x.go", "package store\n\nimport web \"net/http\"\n\nvar _ = web.Get\n", "store/x.go:5: net/http.Get is for leaf only"},
		"package without a room": {"new/x.go", "package fresh\n", "new/x.go:1: package new has no room in the table"},
		"init function":          {"leaf/x.go", "package leaf\n\nfunc init() {}\n", "leaf/x.go:3: init function"},
		"vague file name":        {"leaf/util_test.go", "package leaf\n", `leaf/util_test.go:1: "util" says nothing of what it holds`},
		"vague folder name":      {"utils/x.go", "package fresh\n", "utils/x.go:1: \"utils\" says nothing of what it holds\nutils/x.go:1: package utils has no room in the table"},
		"vague package name":     {"leaf/x.go", "package helpers\n", `leaf/x.go:1: "helpers" says nothing of what it holds`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := good()
			files[tt.file] = tt.text
			faults, err := toy().check(module(files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range faults {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckerNoticesARoomWithoutFiles(t *testing.T) {
	files := good()
	delete(files, "main.go")
	delete(files, "main_test.go")
	faults, err := toy().check(module(files))
	want := "the table has this room, the module has no Go file in it"
	if err != nil || len(faults) != 1 || faults[0].text != want {
		t.Errorf("faults %v, error %v", faults, err)
	}
}

func TestCheckerReportsAFileThatIsNotGo(t *testing.T) {
	files := good()
	files["leaf/x.go"] = "this is not Go"
	if _, err := toy().check(module(files)); err == nil {
		t.Error("no error")
	}
}
