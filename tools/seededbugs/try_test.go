package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallModule has three functions: a test beside it covers One, a test of another package Two, and nothing Three.
func smallModule(t *testing.T) tree {
	t.Helper()
	dir := tree(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":      "module leadferry\n\ngo 1.26\n",
		"a/a.go":      "package a\n\nimport \"os\"\n\nvar _ = os.Exit\n\nfunc One() int { return 1 }\n\nfunc Two() int { return 2 }\n\nfunc Three() int { return 3 }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fail()\n\t}\n}\n",
		"all/all.go":  "package all\n",
		"all/all_test.go": "package all\n\nimport (\n\t\"testing\"\n\n\t\"leadferry/a\"\n)\n\n" +
			"func TestTwo(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif a.Two() != 2 {\n\t\t\tpanic(2)\n\t\t}\n\t})\n}\n",
	} {
		file := filepath.Join(string(dir), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTryNamesTheTestThatCatchesABug(t *testing.T) {
	dir := smallModule(t)
	quick := map[string][]string{"a": {"TestOne"}, "all": {"TestTwo"}}
	for i, test := range []struct{ name, in, new, caught, fault string }{
		{name: "by its own test", in: "a.One", new: "return 7", caught: "a TestOne"},
		{name: "by a panic in a subtest", in: "a.Two", new: "return 7", caught: "all TestTwo/two"},
		{name: "behind the tests", in: "a.One", new: "os.Exit(3)", caught: "a (behind its tests)"},
		{name: "by none", in: "a.Three", new: "return 7"},
		{name: "by the compiler", in: "a.One", new: "return x", fault: "cannot be built"},
		{name: "by no end", in: "a.One", new: "panic(`test timed out after 3m`)", fault: "do not end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			caught, err := dir.try(t.Context(), &bug{Number: i, Name: test.name, Edits: []edit{{In: test.in, First: test.new}}, Caught: quick}, t.TempDir())
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("error %v, want one with %q", err, test.fault)
				}
			} else if err != nil || caught != test.caught {
				t.Errorf("caught by %q (%v), want %q", caught, err, test.caught)
			}
		})
	}
}
