package e2e

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leadferry/leadapi/sandbox"
)

// watched is a test of scripts whose logs, with all that every command printed, are
// looked through.
type watched struct {
	*testing.T
	find *finder
}

// watchScripts looks for the client secret and for the people of the samples.
func watchScripts(t *testing.T) watched {
	t.Helper()
	canaries := []canary{{sandbox.ClientSecret, true}}
	for _, name := range []string{"leads.csv", "crm-export.csv", "leads-with-mistakes.csv"} {
		f, err := os.Open(filepath.Join(root(t), "samples", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := csv.NewReader(f)
		r.FieldsPerRecord, r.LazyQuotes = -1, true
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, cell := range row {
				if strings.Contains(cell, "@") || len(cell) >= 40 && strings.Count(cell, " ") > 4 {
					canaries = append(canaries, canary{value: cell})
				}
			}
		}
	}
	return watched{t, newFinder(canaries)}
}

func (w watched) Run(name string, f func(testscript.T)) {
	w.T.Run(name, func(t *testing.T) { f(watched{t, w.find}) })
}

// Verbose keeps what passing commands printed.
func (w watched) Verbose() bool { return true }

func (w watched) Log(args ...any) {
	w.T.Helper()
	text := fmt.Sprint(args...)
	tell(w.T, w.find, "the log", shownOnPurpose.ReplaceAllString(text, ""), 0)
	w.T.Log(args...)
}

// shownOnPurpose are requests as --show prints them.
var shownOnPurpose = regexp.MustCompile(`(?m)^(POST|PATCH) /v\d/\S+\n\{.*$`)

// written are files of the program that are for others to read, in a script's folder.
var written = regexp.MustCompile(`(^|/)(results\.csv|summary\.json|report\.html|[^/]*\.(prom|db|seq))$|^\.tmp/`)

// whole is where rejects are imported again uncorrected: a record that could not be split
// into its columns stands whole in the first of them, which is the key there, and keys
// stand in results.
const whole = "retry/results.csv"

// look looks through what a script has left behind. The imitation keeps its leads as a
// service would; the script's own inputs stay as they are.
func (w watched) look(e *testscript.Env) {
	e.Defer(func() {
		err := filepath.WalkDir(e.WorkDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			name, err := filepath.Rel(e.WorkDir, path)
			if err != nil || !written.MatchString(name) || name == whole || strings.HasSuffix(name, "-service.db") || strings.HasPrefix(name, "samples/") {
				return err
			}
			b, err := os.ReadFile(path)
			tell(w.T, w.find, e.WorkDir+"/"+name, string(b), 0)
			return err
		})
		if err != nil {
			w.T.Error(err)
		}
	})
}
