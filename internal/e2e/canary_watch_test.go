package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// who says which kinds of canaries a file may hold.
type who uint8

const (
	people who = 1 << iota
	secrets
)

// allowances are the only files that may hold canaries, besides those that the tests wrote, and the sentence that
// allows it. Their mode must be 0600.
var allowances = []struct {
	path   *regexp.Regexp // in the world's folder
	who    who
	reason string
}{
	{
		regexp.MustCompile(`(^|/)rejects(-\d+)?\.(csv|tsv|jsonl)(\.partial)?$`), people,
		"README: only the rejects file and your own input hold names, e-mail addresses and texts",
	},
	{
		regexp.MustCompile(`^state/leadferry/tokens/(\.[0-9a-f]+\.json-\d+\.tmp|[0-9a-f]+\.json)$`), secrets,
		"README: tokens are kept from run to run, in a file that concurrent runs share (the draft of a killed run stays until the next renewal)",
	},
	{
		regexp.MustCompile(`^config/leadferry/credentials/\w+\.json$`), secrets,
		"README: login keeps the client in a file for its owner alone",
	},
	{
		regexp.MustCompile(`^said/\d+ .*(--show|--dry-run).*\.out$`), people,
		"README: --show prints the first requests exactly as they would be sent",
	},
	{
		regexp.MustCompile(`^said/\d+ .*validate -m wrong\.yaml .*\.err$`), people,
		"docs/security: validate prints the texts that a table lacks, for whoever fills it in",
	},
}

// allowed returns what a file of a world may hold.
func allowed(path string) (may who) {
	for _, a := range allowances {
		if a.path.MatchString(path) {
			may |= a.who
		}
	}
	return may
}

// said is what one command printed.
type said struct {
	args []string
	text string
}

// watch makes the end of the test search the world's folder and all that was printed. A hit fails the test.
func (w *world) watch() {
	w.t.Cleanup(func() {
		w.scan(newFinder(w.common(append(w.tokens(), sandbox.ClientSecret)...)))
	})
}

// keep notes what a command printed.
func (w *world) keep(args []string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, said{args, text})
}

// tokens are the tokens that the program has stored.
func (w *world) tokens() (all []string) {
	paths, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "tokens", "*.json"))
	must.Do(w.t, err)
	for _, path := range paths {
		var kept struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &kept)
		}
		if err != nil {
			continue // damaged on purpose
		}
		for _, token := range []string{kept.Access, kept.Refresh} {
			if len(token) >= pieceLength {
				all = append(all, token)
			}
		}
	}
	return all
}

// scan fails the test for each canary in a place where it may not be, and counts them.
func (w *world) scan(f *finder) (hits int) {
	w.t.Helper()
	look := func(name, text string, may who) { hits += reportHits(w.t, f, name, text, may) }
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.dir, path)
		if err != nil {
			return err
		}
		look("the name of "+name, name, 0)
		if !d.Type().IsRegular() || w.given[name] {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		look(name, string(b), w.may(name, d))
		return nil
	})
	must.Do(w.t, err)
	for _, s := range w.said {
		may := who(0)
		if slices.Contains(s.args, "--show") || slices.Contains(s.args, "--dry-run") {
			may = people
		}
		look("what leadferry "+strings.Join(s.args, " ")+" printed", s.text, may)
	}
	return hits
}

// may returns what a file may hold. It fails the test if others may read such a file.
func (w *world) may(name string, d fs.DirEntry) who {
	may := allowed(name)
	info, err := d.Info()
	if err != nil {
		w.t.Error(err)
	} else if may != 0 && info.Mode().Perm() != 0o600 && w.program == nil { // wine derives modes from access lists
		w.t.Errorf("%s has mode %v", name, info.Mode())
	}
	return may
}

// reportHits fails the test for canaries that a text must not hold.
func reportHits(t *testing.T, f *finder, name, text string, may who) (hits int) {
	t.Helper()
	for _, h := range f.find(text) {
		if h.canary.secret && may&secrets != 0 || !h.canary.secret && may&people != 0 {
			continue
		}
		if hits++; hits <= 5 {
			t.Errorf("%s holds %v", name, h)
		}
	}
	return hits
}

// modes checks that what is in the folders is for their owner alone. faults 119
func (w *world) modes(folders ...string) {
	w.t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(w.dir, folder), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				w.t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		must.Do(w.t, err)
	}
}

// plantedRows is how many people are planted; each has a value for each of
// plantedColumns, and another name and note later.
const plantedRows = 80

// plantedColumns hold what nobody but the service may learn. Nothing sends the last.
var plantedColumns = []string{"full name", "mail", "phone", "note", "street", "town", "memo"}

// person is one row's planted values.
type person struct {
	cells   []string // by plantedColumns
	renamed string
	noted   string
}

// plantedPersons are the same in every run. Their values are random, so that none turns up by chance.
func plantedPersons() []person {
	r := rand.New(rand.NewPCG(117, 121))
	text := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	word := func(n int) string { return text("bcdfghjklmnpqrstvwxz", n) }
	digits := func(n int) string { return text("0123456789", n) }
	name := func() string { return "Ö" + word(8) + " O'" + word(7) }
	note := func() string { return `=HYPERLINK("http://` + word(10) + ".example\"), a\x1b[31m\nb\t" + word(5) }
	people := make([]person, plantedRows)
	for i := range people {
		mail := word(10) + "@" + word(8) + ".example"
		if i%10 == 4 {
			mail = word(10) + " at " + word(8) + ".example"
		}
		people[i] = person{
			cells: []string{
				name(), mail, "+49 15" + digits(2) + " " + digits(9), note(),
				word(9) + "straße " + digits(5) + "/ß&", "東京" + word(9) + "市%+", "<" + word(14) + `\>`,
			},
			renamed: name(), noted: note(),
		}
	}
	return people
}

func plantedPeople() (canaries []canary) {
	for _, p := range plantedPersons() {
		for _, value := range append([]string{p.renamed, p.noted}, p.cells...) {
			canaries = append(canaries, canary{value: value})
		}
	}
	return canaries
}

// The secrets of the parrot's account. Tokens get a number at their end.
const (
	canaryPassword  = `pQ7"kW v3ö+/%&-Zp9tLm2Rb5Yc<`
	canaryTemporary = "hJ4.nVe8sXo1UqTg6.Dw0~Fy-Kz2"
	canarySecret    = `sK5"+/=&%<rM8zCi3EjPu7Hv>Bd4`
	canaryAccess    = "aB2.lSx6GnQd9.OwTk4+IyVh5-Jr"
	canaryRefresh   = "rR1/cFv7+ZaJm=3Nh&8XpLs6~Wq"
)

func plantedSecrets() (canaries []canary) {
	for _, s := range []string{canaryPassword, canaryTemporary, canarySecret, canaryAccess, canaryRefresh} {
		canaries = append(canaries, canary{s, true})
	}
	return canaries
}

// common is what each test of a world looks for at its end: the secrets, and the names
// that w.leads and w.export write, if they were used.
func (w *world) common(secrets ...string) (canaries []canary) {
	if w.given["leads.csv"] || w.given["crm.csv"] {
		for i := range 10 {
			canaries = append(canaries, canary{value: fmt.Sprintf("Person %d", i)})
		}
	}
	for _, s := range secrets {
		canaries = append(canaries, canary{s, true})
	}
	return canaries
}

// watched is a test of scripts. It searches their logs, which hold all that the commands printed.
type watched struct {
	*testing.T
	find *finder
}

// watchScripts makes a watched test that looks for the client secret and the people of the samples.
func watchScripts(t *testing.T) watched {
	t.Helper()
	canaries := []canary{{sandbox.ClientSecret, true}}
	for _, name := range []string{"leads.csv", "crm-export.csv", "leads-with-mistakes.csv"} {
		f, err := os.Open(filepath.Join(root(t), "samples", name))
		must.Do(t, err)
		defer f.Close()
		r := csv.NewReader(f)
		r.FieldsPerRecord, r.LazyQuotes = -1, true
		rows, err := r.ReadAll()
		must.Do(t, err)
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

// Verbose makes testscript log the output of commands that succeed, too.
func (w watched) Verbose() bool { return true }

func (w watched) Log(args ...any) {
	w.T.Helper()
	text := fmt.Sprint(args...)
	reportHits(w.T, w.find, "the log", shownOnPurpose.ReplaceAllString(text, ""), 0)
	w.T.Log(args...)
}

// shownOnPurpose are requests as --show prints them.
var shownOnPurpose = regexp.MustCompile(`(?m)^(POST|PATCH) /v\d/\S+\n\{.*$`)

// written matches the files of a script that must hold no canary: results, summaries, pages, metrics, checkpoints.
var written = regexp.MustCompile(`(^|/)(results\.csv|summary\.json|report\.html|[^/]*\.(prom|db|seq))$|^\.tmp/`)

// uncorrected are the results of rejects that were imported again as they were. A record that could not be split is in
// its first column, which is the key, and results show keys.
const uncorrected = "retry/results.csv"

// look makes the end of a script search the files that it left, except the sandbox's leads and the samples.
func (w watched) look(e *testscript.Env) {
	e.Defer(func() {
		err := filepath.WalkDir(e.WorkDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			name, err := filepath.Rel(e.WorkDir, path)
			if err != nil || !written.MatchString(name) || name == uncorrected || strings.HasSuffix(name, "-service.db") || strings.HasPrefix(name, "samples/") {
				return err
			}
			b, err := os.ReadFile(path)
			reportHits(w.T, w.find, e.WorkDir+"/"+name, string(b), 0)
			return err
		})
		must.Do(w.T, err)
	})
}
