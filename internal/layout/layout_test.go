package layout

import (
	_ "embed"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

//go:embed rooms.txt
var table string

// design is the layout of the module, with the rooms of the table.
func design() plan {
	p := plan{
		module: "leadferry", rooms: map[string]room{},
		reserved: []reserved{
			{path: "go.etcd.io/bbolt", rooms: []string{"checkpoint/bolt", "leadapi/sandbox"}, tests: true},
			{path: "github.com/jackc/pgx/v5", rooms: []string{"checkpoint/postgres", "checkpoint/postgres/server", "internal/pgtest"}, tests: true},
			// The engine knows statuses by name; what makes calls is reserved below.
			{path: "net/http", rooms: []string{"importer", "importer/delivery", "internal/page", "internal/testsupport", "leadapi", "leadapi/sandbox"}},
		},
		calls: reserved{path: "net/http", rooms: []string{"leadapi"}},
		names: []string{"Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext", "Client", "DefaultClient", "Transport", "DefaultTransport", "RoundTripper"},
	}
	_, lines, _ := strings.Cut(table, "\n\n")
	several := map[string][]string{}
	list := func(text string) (all []string) {
		for name := range strings.FieldsSeq(text) {
			if one, is := several[name]; is {
				all = append(all, one...)
			} else {
				all = append(all, name)
			}
		}
		return all
	}
	for line := range strings.Lines(lines) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		code, tests, _ := strings.Cut(text, "|")
		if strings.HasPrefix(name, "@") {
			several[name] = list(text)
		} else if name, stdOnly := strings.CutSuffix(name, " !"); name != "" {
			p.rooms[name] = room{imports: list(code), tests: list(tests), stdOnly: stdOnly}
		}
	}
	return p
}

// Every start pays for a regular expression that is compiled as a package variable.
func TestRegularExpressionsAreCompiledWhenNeeded(t *testing.T) {
	early := regexp.MustCompile(`(?m)^(var |\t)\w+ += regexp\.MustCompile`)
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "tools" || path == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if found := early.Find(text); found != nil {
			t.Errorf("%s: %s: take spelling.Form", path, strings.TrimSpace(string(found)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestModuleKeepsItsLayout(t *testing.T) {
	faults, err := design().check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

// Whoever works on the house finds each room on its page, by its own name or by that of the one above.
func TestRoomsStandOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range design().rooms {
		found := name == "."
		for at := name; at != "." && at != "internal" && !found; at = path.Dir(at) {
			last := "`" + path.Base(at) + "`" // as those that several rooms share are listed
			found = strings.Contains(string(page), "`"+at+"`") || strings.HasPrefix(at, "internal/") && strings.Contains(string(page), last)
		}
		if !found {
			t.Errorf("docs/design.md does not say what %s is for", name)
		}
	}
}
