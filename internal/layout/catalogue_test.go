package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// untested are the faults of the catalogue that no test here can show, and why.
var untested = map[int]string{
	48:  "the network below the client delivers a request twice: nothing on this side can see it, and the README says so",
	86:  "data races: the whole suite runs under the race detector in .ci/run",
	122: "the supply chain: `go mod tidy -diff` and go.sum in .ci/run hold the modules; releases are built elsewhere",
}

// lastFault ends what this suite answers for: processes, disk, network, answers, tokens, order (sections 2.1 to 2.6 of
// the catalogue), input and mapping files (2.7, 2.8), secrets (2.9), time (2.10), and people, files and answers at the
// edges (2.11), but for connections that are closed while they rest.
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

// Each fault of the catalogue stands in the comment of a test, so that a search for its number finds it, or in the
// table above.
func TestEveryFaultHasATest(t *testing.T) {
	module := os.DirFS(path.Join("..", ".."))
	found := map[int]bool{}
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || strings.HasSuffix(name, "layout/catalogue_test.go"):
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
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= lastFault; n++ {
		switch reason := untested[n]; {
		case found[n] && reason != "":
			t.Errorf("fault %d has a test and stands in the table of those that have none", n)
		case !found[n] && reason == "":
			t.Errorf("fault %d: no test names it, and no reason is given", n)
		}
	}
}
