package layout

import (
	_ "embed"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
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
			p.rooms[name] = room{imports: list(code), tests: append(list(tests), "internal/testsupport/must"), stdOnly: stdOnly}
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
			t.Errorf("%s: %s: use spelling.Form", path, strings.TrimSpace(string(found)))
		}
		return err
	})
	must.Do(t, err)
}

func TestModuleKeepsItsLayout(t *testing.T) {
	faults, err := design().check(os.DirFS("../.."))
	must.Do(t, err)
	for _, f := range faults {
		t.Error(f)
	}
}

// docs/design.md names each room, or the one above it.
func TestDesignPageNamesEveryRoom(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	must.Do(t, err)
	for name := range design().rooms {
		found := name == "."
		for at := name; at != "." && at != "internal" && !found; at = path.Dir(at) {
			last := "`" + path.Base(at) + "`" // the page lists rooms below internal by their last name
			found = strings.Contains(string(page), "`"+at+"`") || strings.HasPrefix(at, "internal/") && strings.Contains(string(page), last)
		}
		if !found {
			t.Errorf("docs/design.md does not say what %s is for", name)
		}
	}
}

// untested are the faults of the catalogue that no test here can show, with the reasons.
var untested = map[int]string{
	48:  "the network below the client delivers a request twice: nothing on this side can see it, and docs/guarantees.md says so",
	86:  "data races: the whole suite runs under the race detector in .ci/run",
	122: "the supply chain: `go mod tidy -diff` and go.sum in .ci/run hold the modules; releases are built elsewhere",
}

// lastFault is the last fault that the tests must name: processes, disk, network, answers, tokens, order (sections 2.1
// to 2.6 of the catalogue), input and mapping files (2.7, 2.8), secrets (2.9), time (2.10), and people, files and
// answers at the edges (2.11), except connections that are closed while idle.
const lastFault = 139

var (
	mention = regexp.MustCompile(`(?i)\bfaults?:? +"?((?:m?\d+(?:\s*[-–]\s*m?\d+)?(?:,| and)?\s*)+)`)
	span    = regexp.MustCompile(`(m?)(\d+)(?:\s*[-–]\s*m?(\d+))?`)
)

// mentioned are the numbers of the faults that a text names after the word fault or faults.
func mentioned(text string) map[int]bool {
	found := map[int]bool{}
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		for _, s := range span.FindAllStringSubmatch(m[1], -1) {
			if s[1] != "" {
				continue // a measured trap, m1 to m33
			}
			from, _ := strconv.Atoi(s[2])
			to := from
			if s[3] != "" {
				to, _ = strconv.Atoi(s[3])
			}
			for n := from; n <= to && n <= lastFault; n++ {
				found[n] = true
			}
		}
	}
	return found
}

// A test names each fault of the catalogue in a comment, or the table above says why none does.
func TestEveryFaultHasATest(t *testing.T) {
	module := os.DirFS(path.Join("..", ".."))
	found := map[int]bool{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || strings.HasSuffix(name, "layout/layout_test.go"):
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "internal/e2e/testdata/script/"), d.IsDir():
			return nil
		}
		text, err := fs.ReadFile(module, name)
		for n := range mentioned(string(text)) {
			found[n] = true
		}
		return err
	})
	must.Do(t, err)
	for n := 1; n <= lastFault; n++ {
		switch reason := untested[n]; {
		case found[n] && reason != "":
			t.Errorf("fault %d has a test, but the table of untested faults lists it", n)
		case !found[n] && reason == "":
			t.Errorf("fault %d: no test names it, and no reason is given", n)
		}
	}
}
