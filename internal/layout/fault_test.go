package layout

import (
	"slices"
	"testing"
	"testing/fstest"
)

// A module that keeps a plan has no faults; each of these files is one.
func TestTheCheckerFindsFaults(t *testing.T) {
	toy := plan{
		module:   "toy",
		rooms:    map[string]room{".": {imports: []string{"shell"}, stdOnly: true}, "shell": {imports: []string{"leaf", "store"}}, "leaf": {tests: []string{"store"}}, "store": {}},
		reserved: []reserved{{path: "example.org/db", rooms: []string{"store"}, tests: true}, {path: "net/http", rooms: []string{"leaf", "store"}}},
		calls:    reserved{path: "net/http", rooms: []string{"leaf"}}, names: []string{"Get"},
	}
	good := map[string]string{
		"main.go": "package main\n\nimport _ \"toy/shell\"\n", "shell/shell.go": "package shell\n\nimport _ \"toy/leaf\"\n",
		"leaf/leaf_test.go": "package leaf_test\n\nimport (\n\t_ \"toy/leaf\"\n\t_ \"toy/store\"\n)\n", "store/store.go": "package store\n\nimport _ \"example.org/db/page\"\n",
		"tools/go.mod": "module toy/tools\n", "tools/util.go": "package util\n", "leaf/testdata/bad.go": "this is not Go",
	}
	for file, one := range map[string][2]string{
		"good.txt":        {},
		"leaf/x.go":       {"package leaf\n\nimport _ \"toy/store\"\n", "leaf may not import store"},
		"shell/y.go":      {"package shell\n\nimport _ \"toy\"\n", "shell may not import ."},
		"x.go":            {"package main\n\nimport _ \"example.org/flags\"\n", ". may import the standard library only, not example.org/flags"},
		"shell/x_test.go": {"package shell\n\nimport _ \"example.org/db\"\n", "example.org/db is for store only"},
		"store/x.go":      {"package store\n\nimport web \"net/http\"\n\nvar _ = web.Get\n", "web.Get is for leaf only"},
		"new/x.go":        {"package fresh\n", "package new has no room in the table"},
		"leaf/y.go":       {"package leaf\n\nfunc init() {}\n", "init function"},
		"leaf/util.go":    {"package leaf\n", `"util" says nothing of what it holds`},
	} {
		tree := fstest.MapFS{file: {Data: []byte(one[0])}}
		for name, text := range good {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
		var want []string
		if one[1] != "" {
			want = []string{file + ": " + one[1]}
		}
		if faults, err := toy.check(tree); err != nil || !slices.Equal(faults, want) {
			t.Errorf("%s: %q, %v, want %q", file, faults, err, want)
		}
	}
}
