//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// typist types the commands and flags that the program prints.
type typist struct {
	*world
	last  []string // the command of the run, without flags from hints
	typed []string
}

// commandLine matches a line with a command, optionAlone a flag that a hint names by itself. argument matches words
// that look like arguments, and valued flags that take a value.
var (
	commandLine = regexp.MustCompile(`(?m)^ *(leadferry .*)$`)
	optionAlone = regexp.MustCompile(`(?:^|[ (])(--[a-z][a-z-]*(?:[= ][^ ,;()]+)?)`)
	argument    = regexp.MustCompile(`^-|[./*=_]|^[0-9a-f]{8,}$`)
	valued      = regexp.MustCompile(`^--?(m|o|c|base-url|leads-url|checkpoint|state|run|out|profile|limit|summary)$`)
)

// commands returns what a person can paste from an output: its commands, and ty.last with the flags of its hints.
func (ty *typist) commands(said string) (lines [][]string) {
	add := func(words ...string) {
		if !slices.ContainsFunc(lines, func(l []string) bool { return slices.Equal(l, words) }) {
			lines = append(lines, words)
		}
	}
	for _, found := range commandLine.FindAllStringSubmatch(said, -1) {
		add("sh", "-c", found[1])
	}
	for _, hint := range strings.Split(said, "\n") {
		rest, isHint := strings.CutPrefix(strings.TrimSpace(hint), "hint: ")
		for _, found := range strings.Split(hint, "leadferry ")[1:] {
			words := strings.Fields("leadferry " + strings.ReplaceAll(found, "`", " ; "))
			if commandLine.MatchString(hint) || len(words) < 3 {
				continue
			}
			end := 2
			if end < len(words) && slices.Contains([]string{"checkpoint", "config", "help"}, words[1]) {
				end++
			}
			for ; end < len(words); end++ {
				if !argument.MatchString(words[end]) && !valued.MatchString(words[end-1]) || strings.ContainsAny(words[end-1][len(words[end-1])-1:], ",;:)") {
					break
				}
			}
			if text := strings.TrimRight(strings.Join(words[:min(end, len(words))], " "), " .,;:)"); strings.Count(text, " ") > 1 {
				add("sh", "-c", text)
			}
			rest = strings.Replace(rest, found, "", 1)
		}
		if !isHint {
			continue
		}
		for _, found := range optionAlone.FindAllStringSubmatch(rest, -1) {
			flag, value, _ := strings.Cut(strings.TrimRight(found[1], ".:"), " ")
			switch words := append(slices.Clone(ty.last), flag); {
			// These flags say that other leads are meant.
			case strings.HasPrefix(flag, "--new-checkpoint"), strings.HasPrefix(flag, "--new-key"):
			case value != "" && (argument.MatchString(value) || valued.MatchString(flag) || flag == "--changed" || flag == "--in-doubt"):
				add(append(words, value)...)
			default:
				add(words...)
			}
		}
	}
	return lines
}

// types runs a command and returns its output. It answers no questions.
func (ty *typist) types(words []string) string {
	ty.t.Helper()
	c := exec.Command(words[0], words[1:]...)
	if words[0] != "sh" {
		c = ty.command(words...)
	}
	c.Dir, c.Env = ty.dir, append(slices.Clone(ty.env), "PATH="+filepath.Join(ty.dir, "tmp")+":"+os.Getenv("PATH"))
	out, _ := c.CombinedOutput()
	ty.keep(words, string(out))
	ty.typed = append(ty.typed, fmt.Sprintf("%d  %s", c.ProcessState.ExitCode(), strings.Join(words, " ")))
	if code := c.ProcessState.ExitCode(); code == 2 && words[0] == "sh" && strings.Contains(string(out), "leadferry help") {
		ty.t.Errorf("the program does not understand a command that it printed: %s\n%s", words[2], out)
	}
	if words[0] == "sh" && (strings.Contains(words[2], "leadferry explain") || strings.Contains(words[2], "help")) { // examples
		return ""
	}
	return string(out)
}

// mostTyped times -rounds is about how many commands are typed in a situation.
const mostTyped = 6

// typesAll types each command of an output twice, then the run, then the commands that those print, and so on. Every
// second time it begins with the last command.
func (ty *typist) typesAll(said string) {
	ty.t.Helper()
	for round := 0; round < 4 && len(ty.typed) < mostTyped**rounds; round++ {
		lines := ty.commands(said)
		if round%2 == 1 {
			slices.Reverse(lines)
		}
		said = ""
		for _, words := range lines {
			for range 2 {
				said += ty.types(words)
			}
		}
		said += ty.types(ty.last)
	}
}

// All printed commands can be typed as they are, twice and in any order, and make no lead twice. If the ledger is lost,
// older or another one, the run is refused, however often and with whatever flags. faults 141 to 155
func TestWhatIsPrintedCanBeTyped(t *testing.T) {
	t.Parallel()
	for name, s := range situations() {
		t.Run(strings.ReplaceAll(name, ",", ""), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Faults: s.faults})
			w.leads(60)
			ty := &typist{world: w}
			must.Do(t, os.Symlink(binary(), filepath.Join(w.dir, "tmp", "leadferry")))
			ty.last = s.arrange(w)
			if s.code == 4 {
				before := len(w.byRef())
				contains(t, w.must(4, ty.last...), s.words...)
				w.must(4, append(slices.Clone(ty.last), "--out", "none", "--yes", "--require-checkpoint")...)
				w.must(4, append(slices.Clone(ty.last), "--new-checkpoint=0000000000000000")...)
				w.holds(before)
			}
			said := ty.types(ty.last)
			if s.once != nil {
				w.run(append(slices.Clone(ty.last), s.once...)...)
				said = w.must(3, append(slices.Clone(ty.last), s.once...)...)
				before := w.twice()
				ty.typesAll(said)
				if after := w.twice(); before == 0 || after != before {
					t.Errorf("%d leads too many before the printed commands were typed, %d after", before, after)
				}
			} else {
				ty.typesAll(said)
				w.byRef()
			}
			if s.code == 4 && !slices.ContainsFunc(ty.typed, func(line string) bool { return strings.Contains(line, "leadferry checkpoint") }) {
				t.Error("no command was typed")
			}
			if t.Failed() || testing.Verbose() {
				t.Log(strings.Join(ty.typed, "\n"))
			}
		})
	}
}

// twice counts the service's leads beyond one for each row.
func (w *world) twice() int {
	w.t.Helper()
	leads := w.made()
	rows := map[any]bool{}
	for _, l := range leads {
		rows[l.Content["importRef"]] = true
	}
	return len(leads) - len(rows)
}

// A situation begins after an import of 20 of 60 rows, which was killed in its midst if kill is set. Then lose damages
// or changes the ledger. If code is 4, the same command is refused with these words.
type situation struct {
	kill  bool
	lose  func(w *world)
	with  []string // further flags of the next run
	code  int
	words []string

	faults string   // of the service; then nothing is imported before
	once   []string // flags for a run after it has stopped, which send rows twice on purpose
}

// arrange brings the situation about, and returns the command of the next run.
func (s *situation) arrange(w *world) (run []string) {
	w.t.Helper()
	if s.kill {
		w.killsFour("--limit", "20")
	} else if s.faults == "" {
		w.must(0, append(importFour, "--limit", "20")...)
	}
	if s.lose != nil {
		s.lose(w)
	}
	for i, one := range s.with {
		if one == "LOCALHOST" {
			s.with[i] = "http://" + strings.Replace(w.address(), "127.0.0.1", "localhost", 1)
		}
	}
	return slices.Clip(append(slices.Clone(importFour), s.with...))
}

// beforeACommand restores the state from before an adoption.
func beforeACommand(w *world) {
	w.write("found.csv", "key,lead_id\nX1,5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77\n")
	restore := w.backup("state")
	w.must(0, "checkpoint adopt found.csv")
	restore()
}

func situations() map[string]situation {
	const other = "another checkpoint is in use for this trunk"
	more := func(w *world, args ...string) { w.must(0, append(append([]string{}, importFour...), args...)...) }
	return map[string]situation{
		"state lost, run folders kept": {
			lose: func(w *world) { w.removeAll("state") }, code: 4, words: []string{other, "adopt leadferry-runs/*/results.csv*", "it knew 20"},
		},
		"killed, state lost":         {kill: true, lose: func(w *world) { w.removeAll("state") }, code: 4, words: []string{other, "did not end"}},
		"checkpoint lost, book kept": {lose: func(w *world) { w.removeAll("leadferry-runs"); _ = os.Remove(w.checkpoint()) }, code: 4, words: []string{other}},
		"filled by a list, then lost": {
			lose: func(w *world) {
				w.must(0, "checkpoint export -o known.csv")
				w.removeAll("state")
				w.removeAll("leadferry-runs")
				w.must(0, "checkpoint adopt known.csv")
				_ = os.Remove(w.checkpoint())
			}, code: 4, words: []string{other, "write known.csv"},
		},
		"another file":             {with: []string{"--checkpoint", "mine.db"}, code: 4, words: []string{other}},
		"the address changed":      {with: []string{"--leads-url", "LOCALHOST"}, code: 4, words: []string{other, "(service at "}},
		"backup from before a run": {lose: func(w *world) { restore := w.backup("state"); more(w, "--limit", "30"); restore() }, code: 4, words: []string{"does not know the run"}},
		"only the file, from before": {lose: func(w *world) {
			restore := w.backup(w.checkpoint())
			more(w, "--limit", "30")
			restore()
			w.removeAll("leadferry-runs")
		}, code: 4, words: []string{"does not know the run"}},
		"from before a resolve": {lose: beforeACommand, code: 4, words: []string{"it is at commit"}},
		"copied to a file, old one back": {
			lose: func(w *world) {
				restore := w.backup(w.checkpoint())
				w.must(0, "checkpoint copy", w.checkpoint(), "to.db")
				more(w, "--limit", "30", "--checkpoint", "to.db")
				restore()
			}, code: 4, words: []string{"it is at commit", other, "to.db"},
		},
		"a copy that goes on, then the first one": {
			lose: func(w *world) {
				w.copyTree(w.checkpoint(), "copy.db")
				more(w, "--limit", "30", "--checkpoint", "copy.db")
			}, code: 4, words: []string{"does not know the run"},
		},
		"in 100 newer runs of another trunk": {
			lose: func(w *world) {
				found, _ := filepath.Glob(filepath.Join(w.dir, "leadferry-runs", "*", "run.json"))
				text := w.read(strings.TrimPrefix(found[0], w.dir+"/"))
				text = strings.NewReplacer(sandbox.TrunkID, "another-trunk", `"ledger":"`, `"ledger":"0`).Replace(text)
				for i := range 100 {
					name := "leadferry-runs/30000101T000000Z-import-" + strings.Repeat("0", 5) + string(rune('a'+i/26)) + string(rune('a'+i%26))
					must.Do(w.t, os.MkdirAll(filepath.Join(w.dir, name), 0o700))
					w.write(name+"/run.json", text)
				}
				w.removeAll("state")
			}, code: 4, words: []string{other},
		},
		"a witness that is cut off": {
			lose: func(w *world) {
				found, _ := filepath.Glob(filepath.Join(w.dir, "leadferry-runs", "*", "run.json"))
				must.Do(w.t, os.Truncate(found[0], 40))
				w.removeAll("state")
			}, code: 4, words: []string{"run.json cannot be read"},
		},
		"rows in doubt":           {faults: "create.drop-stored#5"},
		"stopped for doubts":      {faults: "create.500-stored/1"},
		"sent again, and stopped": {faults: "create.500-stored/1", with: []string{"-c", "1"}, once: []string{"--in-doubt", "resend"}}, // in order
		"killed, then resumed":    {kill: true},
		"another key": {lose: func(w *world) {
			w.write("leads.yaml", strings.Replace(mappingText, `"{id}"`, `"{id}-{name}"`, 1))
		}},
		"a damaged page": {lose: func(w *world) {
			f, err := os.OpenFile(w.checkpoint(), os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt(make([]byte, 9000), 12000)
				_ = f.Close()
			}
			must.Do(w.t, err)
		}},
		"another state directory": {code: 4, lose: func(w *world) {
			w.env = append(w.env, "XDG_STATE_HOME="+filepath.Join(w.dir, "moved"))
		}},
		"the state moved by copying, then back": {code: 4, lose: func(w *world) {
			w.removeAll("state/leadferry/tokens")
			w.copyTree("state", "moved")
			elsewhere := slices.Clone(w.env)
			w.env = append(w.env, "XDG_STATE_HOME="+filepath.Join(w.dir, "moved"))
			w.must(0, append(importFour, "--limit", "30")...)
			w.env = elsewhere
		}},
		"an older file, the book gone": {code: 4, lose: func(w *world) {
			restore := w.backup(w.checkpoint())
			w.must(0, append(importFour, "--limit", "30")...)
			w.removeAll("state/leadferry/ledgers")
			restore()
		}},
		"from before a forget": {code: 4, lose: func(w *world) {
			restore := w.backup("state")
			w.must(0, "checkpoint forget L00003")
			restore()
		}},
	}
}
