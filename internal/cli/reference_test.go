package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"leadferry/internal/cli/complete"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/reference"
)

// TestMain makes the test's own program stand for leadferry where it is called so: shells
// run it, and what they asked of it is kept.
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

// answered is the answer to a line whose last word is being typed: kind first, then words.
func answered(t *testing.T, asked ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := completed(Reference(), asked).Write(&out); err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// What may stand at the cursor follows from the flags that the commands have.
func TestCompletionKnowsTheCommandLine(t *testing.T) {
	for asked, want := range map[string]string{
		"ch.":                                       "words checkpoint",
		"checkpoint re.":                            "words resolve repair",
		"help checkpoint re.":                       "words resolve repair",
		"checkpoint help re.":                       "words resolve repair",
		"nonsense .":                                "words",
		"import .":                                  "files",
		"checkpoint resolve .":                      "files",
		"checkpoint repair a b .":                   "words",
		"checkpoint history .":                      "words",
		"checkpoint status .":                       "words",
		"completion f.":                             "words fish",
		"completion fish .":                         "words",
		"import --chan.":                            "words --changed",
		"sync --chan.":                              "words",
		"--quiet import --qui.":                     "words",
		"import --quiet f.csv --no-p.":              "words --no-progress",
		"import --changed .":                        "words report update ignore",
		"import --changed=up.":                      "words --changed=update",
		"import --changed --dry.":                   "words",
		"import --changed --dry-run --lim.":         "words --limit",
		"import -m .":                               "files",
		"import -m=.":                               "files",
		"import -m a --mapp.":                       "words",
		"completion -.":                             "words --help -h --quiet --no-progress --log-level --log-format",
		"import -- --d.":                            "files",
		"import --out n.":                           "files",
		"import --problems=.":                       "files",
		"checkpoint --checkpoint c status --sandb.": "words --sandbox --sandbox-reset",
		"checkpoint repair --results a --resu.":     "words --results",
		"import --profile .":                        "words",
		"checkpoint forget KEY -- .":                "words",
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

// Whatever is typed, an answer fits what was begun and is printed on one line a word.
func TestCompletionOfAnything(t *testing.T) {
	program := Reference()
	var words []string
	program.Each(func(c *reference.Command) {
		words = append(words, c.Word())
		for _, f := range c.Flags {
			words = append(words, "--"+f.Names[0], "--"+f.Names[0]+"=")
		}
	})
	word := rapid.OneOf(rapid.SampledFrom(words), rapid.String(), rapid.SampledFrom([]string{"-", "--", "-m", "-m=", "=", "", "help", "$(x)"}))
	rapid.Check(t, func(t *rapid.T) {
		before, begun := rapid.SliceOfN(word, 0, 6).Draw(t, "before"), word.Draw(t, "begun")
		a := completed(program, append(before, begun+"."))
		var out bytes.Buffer
		if err := a.Write(&out); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != len(a.Values)+1 {
			t.Fatalf("%v: %q", err, out.String())
		}
		for _, v := range a.Values {
			if !strings.HasPrefix(v.Word, begun) {
				t.Fatalf("%q does not begin with %q", v.Word, begun)
			}
		}
	})
}

// What is offered for a value is taken.
func TestOfferedValuesAreTaken(t *testing.T) {
	app := (&program{}).app()
	Reference().Each(func(c *reference.Command) {
		for _, f := range c.Flags {
			for _, w := range f.Words {
				if _, err := flags.Parse(app, append(slices.Clone(c.Path[1:]), "--"+f.Names[0]+"="+w)); err != nil {
					t.Errorf("%s --%s=%s: %v", c.Name(), f.Names[0], w, err)
				}
			}
		}
	})
}

// explain tells what a name means and what to do; a name that is nearly right is found out.
func TestExplain(t *testing.T) {
	d := newDesk(t, "")
	d.must(0, "", []string{"explain", "in_doubt"}, "in_doubt - outcome", "What to do: ", "   leadferry checkpoint resolve in-doubt.csv")
	d.must(0, "", []string{"explain", "exit", "5"}, "5 - exit code")
	d.must(0, "", []string{"explain", "http", "429"}, "throttled, 429 - answer")
	d.must(0, "", []string{"explain", "leadferry: c.db: is damaged: the checkpoint is damaged"}, "damaged - refusal")
	d.must(2, "", []string{"explain", "indoubt"}, "did you mean leadferry explain in_doubt?")
	d.must(2, "", []string{"explain", "qqqqqqqq"}, "leadferry explain lists all there are")
	for line := range strings.Lines(d.must(0, "", []string{"explain"}, "WHAT BECAME OF A ROW:", "WARNINGS:")) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > reference.Width {
			t.Errorf("too wide: %s", line)
		}
	}
}

// The command prints the script of each shell, and refuses others.
func TestCompletionPrintsTheScripts(t *testing.T) {
	d := newDesk(t, "")
	for _, shell := range complete.Shells() {
		script := complete.Script(shell)
		if out := d.must(0, "", []string{"completion", shell}, complete.Word); out != string(script) {
			t.Errorf("%s: another script", shell)
		}
		if strings.Contains(string(script), "eval ") || strings.Contains(string(script), "Invoke-Expression") || strings.Contains(string(script), "compgen -W") {
			t.Errorf("%s: what is typed is evaluated", shell)
		}
	}
	d.must(2, "", []string{"completion"}, "bash, zsh, fish, powershell")
	d.must(2, "", []string{"completion", "tcsh"}, "bash, zsh, fish, powershell")
}

// No page of help is forgotten when its command goes.
func TestEveryPageIsOfACommand(t *testing.T) {
	known := []string{"leadferry.txt", flags.ConnectionTopic + ".txt"}
	Reference().Each(func(c *reference.Command) {
		known = append(known, strings.Join(c.Path[1:], "-")+".txt")
		if c.Description == "" {
			t.Errorf("%s has no page", c.Name())
		}
	})
	all, err := pages.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range all {
		if !slices.Contains(known, page.Name()) {
			t.Errorf("pages/%s is of no command", page.Name())
		}
	}
}
