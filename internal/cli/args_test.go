package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/testsupport/must"
)

// Flags count wherever they are typed: if a --dry-run after a file name were dropped, the run would be live.
func TestFlagsCountInAnyOrder(t *testing.T) {
	app := (&program{}).app()
	tests := []struct{ args, want string }{
		{"import f.csv --dry-run", "import --dry-run=true -- f.csv"},
		{"import --dry-run f.csv", "import --dry-run=true -- f.csv"},
		{"import f.csv -m map.yaml g.csv -c 4", "import --mapping=map.yaml --concurrency=4 -- f.csv g.csv"},
		{"import f.csv --mapping=map.yaml -m b.yaml", "import --mapping=map.yaml --mapping=b.yaml -- f.csv"},
		{"import - --quiet --log-level debug", "import --quiet=true --log-level=debug -- -"},
		{"--log-level debug import f.csv", "import --log-level=debug -- f.csv"},
		{"import -m map.yaml -- --dry-run -m", "import --mapping=map.yaml -- --dry-run -m"},
		{"import --limit -1 f.csv", "import --limit=-1 -- f.csv"},
		{"sync --check-remote f.csv --web=:1", "sync --check-remote=true --web=:1 -- f.csv"},
		{"checkpoint resolve f.csv --sandbox", "checkpoint resolve --sandbox=true -- f.csv"},
		{"import f.csv -- help", "import -- f.csv help"},
		{"checkpoint forget help —key –", "checkpoint forget -- help —key –"},
		{"import f.csv --version", "import --version=true -- f.csv"},
		{"checkpoint status -v", "checkpoint status --version=true --"},
	}
	for _, test := range tests {
		line, err := flags.Order(app, strings.Fields(test.args))
		got := strings.Join(line.Args, " ")
		if want := "leadferry " + test.want; err != nil || got != want || line.Typed["help"] != "" {
			t.Errorf("%s: %v, %v; want %s", test.args, got, err, want)
		}
	}
}

// The refusal of a command line quotes its own words and says what to do.
func TestCommandLinesThatAreRefused(t *testing.T) {
	d := newDesk(t, "")
	t.Chdir(d.dir)
	const apart, unset = "; a value that begins with - is joined to it: ", " is given without a value\nhint: is a variable not set? Without the flag, the default counts"
	for args, want := range map[string]string{
		"imprt f.csv":                      "there is no command \"imprt\"\nhint: did you mean import?",
		"checkpoint frob f.csv":            "there is no command \"frob\"\nhint: see leadferry checkpoint --help",
		"--sandbox import f.csv":           "there is no flag --sandbox\nhint: see leadferry --help; ",
		"version":                          "there is no command \"version\"\nhint: see leadferry --help",
		"validate -n":                      "there is no flag -n\nhint: see leadferry validate --help; write -- before names that begin with -",
		"import --client-secret=s3cret":    "there is no flag --client-secret\nhint: ",
		"login --password s3cret":          "there is no flag --password\nhint: ",
		"import -c8 f.csv":                 "there is no flag -c…\nhint: put a blank between flag and value: -c VALUE",
		"import f.csv -phunter2":           "there is no flag -p…\nhint: put a blank between flag and value: -p VALUE",
		"status --sandbox":                 "there is no command \"status\"\nhint: did you mean leadferry checkpoint status?",
		"--bogus":                          "there is no flag --bogus\nhint: see leadferry --help; write -- before names that begin with -",
		"import f.csv --concurency 4":      "there is no flag --concurency\nhint: did you mean --concurrency?",
		"sync f.csv --changed update":      "there is no flag --changed\nhint: see leadferry sync --help; ",
		"import f.csv --out --":            "flag --out needs a value\nhint: see leadferry import --help" + apart + "--out=VALUE",
		"import f.csv --results --out=o":   "flag --results needs a value\nhint: see leadferry import --help" + apart + "--results=VALUE",
		"import f.csv --checkpoint=":       "--checkpoint" + unset,
		"checkpoint export --state=":       "--state" + unset,
		"import --limit 1.5":               "--limit takes a whole number, 0 or more\nhint: see leadferry import --help",
		"import --problems x.txt":          "--problems takes a file that ends with .csv or .jsonl, or github\nhint: see leadferry import --help",
		"import --yes=maybe":               "--yes takes no value\nhint: ",
		"import --timeout 90":              "--timeout takes a duration, such as 90s or 10m\nhint: ",
		"import --rate fast":               "--rate takes a number, 0 or more\nhint: ",
		"checkpoint status c.db --sandbox": "checkpoint status takes no file names\nhint: --checkpoint names the checkpoint; see leadferry checkpoint status --help",
		"login someone@example.com":        "login takes no file names\nhint: see leadferry login --help",
		"import ---limit 4":                "there is no flag ---limit\nhint: did you mean --limit?",
	} {
		if code, out := d.run("", strings.Fields(args)...); code != 2 || !strings.Contains(out, "leadferry: "+want) {
			t.Errorf("%s\n got %d %s\nwant %s", args, code, out, want)
		}
	}
}

// A pattern such as *.csv becomes the names of all files in the folder. None of them
// may become a flag, the value of one, or standard input. fault 130
func TestFileNamesNeverBecomeFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	app := (&program{}).app()
	for _, name := range []string{"-m", "-", "--yes", "--checkpoint=z.csv", "-x.csv", "--help", "--version", "--bogus", "-5"} {
		must.Do(t, os.WriteFile(name, []byte("id\n1\n"), 0o600))
		for _, args := range [][]string{
			{"import", name},
			{"import", "a.csv", name},
			{"sync", name, "a.csv"},
			{"validate", "--quiet", name, "a.csv"},
			{"import", "--mapping", name, "a.csv"},
			{"init", "-m=b.yaml", "--help", name},
			{"checkpoint", "forget", name},
		} {
			if name == "-" && args[1] == "--mapping" {
				continue // here it is the value of --mapping
			}
			_, err := flags.Order(app, args)
			if e, ok := errors.AsType[*exit.Error](err); !ok || !strings.Contains(e.Hint, "./"+name+" ") {
				t.Errorf("%q: %v", args, err)
			}
		}
		must.Do(t, os.Remove(name))
	}
	if _, err := flags.Order(app, []string{"import", "-", "--summary", "-"}); err != nil {
		t.Errorf("standard input and output: %v", err)
	}
}

// Each command's help has an example and the exit codes, and fits the width of a terminal.
func TestHelpOfEachCommand(t *testing.T) {
	known := []string{"leadferry.txt"}
	eachCommand(func(c *cli.Command, words []string) {
		known = append(known, strings.Join(words[1:], "-")+".txt")
		out := screenOf(c, words, true)
		if !strings.Contains(out, "Exit codes: 0 ") || !strings.Contains(out, "Example") && len(words) > 1 {
			t.Errorf("%v: no example, or no exit codes", words)
		}
		for line := range strings.Lines(out) {
			if strings.Contains(line, "(default: false)") || utf8.RuneCountInString(line) > terminal.Columns+1 {
				t.Errorf("%v: %s", words, line)
			}
		}
		if strings.Contains(out, "--base-url URL") != (c.Name == connectionHelp) {
			t.Errorf("%v: lists the connection flags once more", words)
		}
	})
	all, err := pages.ReadDir("pages")
	must.Do(t, err)
	for _, page := range all {
		if !slices.Contains(known, page.Name()) {
			t.Errorf("pages/%s belongs to no command", page.Name())
		}
	}
}

// Every flag that names a connection or a path can be set in the environment.
func TestFlagsOfConnectionsAndPathsHaveVariables(t *testing.T) {
	eachCommand(func(c *cli.Command, _ []string) {
		for _, f := range c.Flags {
			name, called := f.Names()[0], argumentOf(f)
			path := strings.HasPrefix(called, "FILE") || strings.HasPrefix(called, "DIR") || strings.HasPrefix(called, "URL")
			if (path || f.(cli.CategorizableFlag).GetCategory() == connecting) && name != "sandbox" && name != "sandbox-reset" &&
				!slices.Equal(f.(cli.DocGenerationFlag).GetEnvVars(), []string{flags.Variable(name)}) {
				t.Errorf("%s --%s has no variable", c.Name, name)
			}
		}
	})
}

func TestConfigShowListsEveryVariableOfRuns(t *testing.T) {
	app := (&program{}).app()
	shown := map[string]bool{}
	for _, f := range app.Command("config").Command("show").Flags {
		shown[f.Names()[0]] = true
	}
	for _, name := range []string{"import", "sync", "reconcile", "validate"} {
		c := app.Command(name)
		for _, f := range c.Flags {
			if name := f.Names()[0]; len(f.(cli.DocGenerationFlag).GetEnvVars()) > 0 && !shown[name] {
				t.Errorf("%s --%s may come from the environment, and config show lacks it", c.Name, name)
			}
		}
	}
}

// Each example in the help parses. Those that need no service also run, one after another,
// in a folder with the samples.
func TestExamplesOfHelpRun(t *testing.T) {
	d := newDesk(t, "")
	for _, name := range []string{"leads.csv", "leads.yaml"} {
		b, err := os.ReadFile("../../samples/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(d.dir, name), b, 0o600)
		}
		must.Do(t, err)
	}
	t.Chdir(d.dir)
	app, ran := (&program{}).app(), 0
	eachCommand(func(c *cli.Command, words []string) {
		examples := 0
		for line := range strings.Lines(strings.ReplaceAll(c.Description, "\\\n", "")) {
			if !strings.HasPrefix(line, "   leadferry ") {
				continue
			}
			examples++
			line, _, _ = strings.Cut(line, " #")
			line, _, piped := strings.Cut(strings.TrimSpace(line), " |")
			line, _, _ = strings.Cut(line, " >")
			args := strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]
			if _, err := flags.Order(app, args); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			alone := slices.Contains([]string{"validate", "schema", "completion"}, args[0]) || slices.Contains(args, "--sandbox") && args[0] != "checkpoint"
			if alone && !piped && !strings.Contains(line, "samples/") {
				ran++
				if code, out := d.run("", args...); code != 0 && code != 1 {
					t.Errorf("%s: exit %d\n%s", line, code, out)
				}
			}
		}
		if examples == 0 && words[len(words)-1] != "config" && c.Name != "show" && c.Name != "check" {
			t.Errorf("%s: no example", c.Name)
		}
	})
	if ran < 5 {
		t.Errorf("%d examples ran", ran)
	}
}

// eachCommand calls f with every command and the words that name it.
func eachCommand(f func(c *cli.Command, words []string)) {
	line, _ := flags.Order((&program{}).app(), nil)
	var each func(c *cli.Command, words []string)
	each = func(c *cli.Command, words []string) {
		f(c, words)
		for _, sub := range c.Subcommands {
			each(sub, append(words[:len(words):len(words)], sub.Name))
		}
	}
	each(line.Command, line.Path)
}
