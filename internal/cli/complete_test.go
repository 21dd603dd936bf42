package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"

	"leadferry/internal/cli/terminal"
)

// TestMain makes the test binary act as leadferry if it is called by that name, as shells do. It logs their calls.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "leadferry" {
		os.Exit(m.Run())
	}
	if calls, err := os.OpenFile(os.Getenv("LEADFERRY_TEST_CALLS"), os.O_APPEND|os.O_WRONLY, 0); err == nil {
		calls.WriteString(strings.Join(os.Args[1:], " ") + "\n")
		calls.Close()
	}
	if !Completes(os.Args, os.Stdout) {
		os.Exit(Run(context.Background(), nil, os.Args, Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
}

// answered is the answer to a line whose last word is being typed: the kind, then the offers.
func answered(t *testing.T, asked ...string) string {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(completed(asked))
	var words []string
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Completion offers the commands, flags and values that fit at the cursor.
func TestCompletionKnowsTheCommandLine(t *testing.T) {
	for asked, want := range map[string]string{
		"ch.":                                       "words checkpoint",
		"checkpoint re.":                            "words resolve repair",
		"help checkpoint re.":                       "words resolve repair",
		"checkpoint help re.":                       "words resolve repair",
		"import .":                                  "files",
		"checkpoint resolve .":                      "files",
		"checkpoint repair a b .":                   "words",
		"checkpoint history .":                      "words",
		"checkpoint status .":                       "words",
		"completion f.":                             "words fish",
		"completion fish .":                         "words",
		"import --chan.":                            "words --changed",
		"import --quiet f.csv --no-p.":              "words --no-progress",
		"import --changed .":                        "words report update ignore",
		"import --changed=up.":                      "words --changed=update",
		"import --changed --dry.":                   "words",
		"import --changed --dry-run --lim.":         "words --limit",
		"import -m .":                               "files",
		"import -m=.":                               "files",
		"completion -.":                             "words --quiet --no-progress --color --log-level --log-format --version -v --help -h",
		"import -- --d.":                            "files",
		"import --out n.":                           "files",
		"import --problems=.":                       "files",
		"checkpoint status --checkpoint c --sandb.": "words --sandbox --sandbox-reset",
		"checkpoint repair --results a --resu.":     "words --results",
		"import --profile .":                        "words",
		"--vers.":                                   "words --version",
		"import --unknown x -- .":                   "files",
	} {
		if got := answered(t, strings.Split(asked, " ")...); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
	if got := answered(t); !strings.HasPrefix(got, "words init validate import") {
		t.Errorf("nothing asked: %s", got)
	}
}

// Whatever is typed, each offer takes one line and begins with the word at the cursor.
func TestEachOfferBeginsWithTheTypedWord(t *testing.T) {
	words := []string{"-", "--", "-m", "-m=", "=", "", "help", "$(x)"}
	eachCommand(func(c *cli.Command, _ []string) {
		words = append(words, c.Name)
		for _, f := range c.Flags {
			words = append(words, "--"+f.Names()[0], "--"+f.Names()[0]+"=")
		}
	})
	word := rapid.OneOf(rapid.SampledFrom(words), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		before, begun := rapid.SliceOfN(word, 0, 6).Draw(t, "before"), word.Draw(t, "begun")
		kind, answer, _ := strings.Cut(completed(append(before, begun+".")), "\n")
		if kind != "words" && kind != "files" {
			t.Fatalf("%q", kind)
		}
		for line := range strings.Lines(answer) {
			if !strings.HasPrefix(line, begun) {
				t.Fatalf("%q does not begin with %q", line, begun)
			}
		}
	})
}

// explain says what a name means and what to do. For a misspelt name it suggests the right one.
func TestExplain(t *testing.T) {
	d := newDesk(t, "")
	d.must(0, "", []string{"explain", "in_doubt"}, "in_doubt - outcome", "What to do: ", "   leadferry checkpoint resolve in-doubt.csv")
	d.must(0, "", []string{"explain", "exit", "5"}, "5 - exit code")
	d.must(0, "", []string{"explain", "http", "429"}, "throttled, 429 - answer")
	d.must(0, "", []string{"explain", "leadferry: c.db: is damaged: the checkpoint is damaged"}, "damaged - refusal")
	d.must(2, "", []string{"explain", "indoubt"}, "did you mean leadferry explain in_doubt?")
	d.must(2, "", []string{"explain", "qqqqqqqq"}, "leadferry explain lists all there are")
	for line := range strings.Lines(d.must(0, "", []string{"explain"}, "HOW A ROW ENDED:", "WARNINGS:")) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > terminal.Columns {
			t.Errorf("too wide: %s", line)
		}
	}
}

// completion prints the script of each shell and refuses other shells.
func TestCompletionPrintsTheScripts(t *testing.T) {
	d := newDesk(t, "")
	for _, shell := range shells {
		script, _ := scripts.ReadFile("scripts/leadferry." + shell)
		if out := d.must(0, "", []string{"completion", shell}, completeWord); out != string(script) {
			t.Errorf("%s: another script", shell)
		}
		if strings.Contains(string(script), "eval ") || strings.Contains(string(script), "Invoke-Expression") || strings.Contains(string(script), "compgen -W") {
			t.Errorf("%s: what is typed is evaluated", shell)
		}
	}
	d.must(2, "", []string{"completion"}, "bash, zsh, fish, powershell")
	d.must(2, "", []string{"completion", "tcsh"}, "bash, zsh, fish, powershell")
}
