package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/leadapi/sandbox"
)

// who are the canaries that a file may hold.
type who uint8

const (
	people who = 1 << iota
	secrets
)

// allowances are the only places where canaries may stand, beside what the tests
// wrote themselves, with the words that allow it. Whoever else may read such a file
// fails the test all the same.
var allowances = []struct {
	path   *regexp.Regexp // in the world's folder
	who    who
	reason string
}{
	{
		regexp.MustCompile(`(^|/)rejects(-\d+)?\.(csv|tsv|jsonl)(\.partial)?$`), people,
		"README: names, e-mail addresses and texts stand in the rejects file and in your own input alone",
	},
	{
		regexp.MustCompile(`^state/leadferry/tokens/(\.[0-9a-f]+\.json-\d+\.tmp|[0-9a-f]+\.json)$`), secrets,
		"README: tokens are kept from run to run, in a file that concurrent runs share (until the next renewal, a killed one's draft stands there too)",
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

// allowed is what may stand in a file of a world.
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

// watch looks through all that is in the world's folder when its test ends, and all
// that was printed: a hit fails the test that wrote it.
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

// tokens are those that the program has kept.
func (w *world) tokens() (all []string) {
	paths, err := filepath.Glob(filepath.Join(w.dir, "state", "leadferry", "tokens", "*.json"))
	if err != nil {
		w.t.Error(err)
	}
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

// scan fails the test for every canary that stands where it may not, and counts them.
func (w *world) scan(f *finder) (hits int) {
	w.t.Helper()
	look := func(name, text string, may who) { hits += tell(w.t, f, name, text, may) }
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
	if err != nil {
		w.t.Error(err)
	}
	for _, s := range w.said {
		may := who(0)
		if slices.Contains(s.args, "--show") || slices.Contains(s.args, "--dry-run") {
			may = people
		}
		look("what leadferry "+strings.Join(s.args, " ")+" printed", s.text, may)
	}
	return hits
}

// may is what a file may hold, if it is for its owner alone.
func (w *world) may(name string, d fs.DirEntry) who {
	may := allowed(name)
	info, err := d.Info()
	if err != nil {
		w.t.Error(err)
	} else if may != 0 && info.Mode().Perm() != 0o600 && w.program == nil { // wine has lists, and makes modes of them
		w.t.Errorf("%s has mode %v", name, info.Mode())
	}
	return may
}

// tell fails the test for what a text holds but must not.
func tell(t *testing.T, f *finder, name, text string, may who) (hits int) {
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
		if err != nil {
			w.t.Error(err)
		}
	}
}
