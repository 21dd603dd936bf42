package cli

import (
	"cmp"
	"embed"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/explain"
	"leadferry/internal/spelling"
	"leadferry/leadapi/sandbox"
)

// pages are the help texts of the commands, by their words, without flags. The first line is for the list of commands.
//
//go:embed pages
var pages embed.FS

// pageOf returns the page of a command.
func pageOf(words string) (usage, description string) {
	text, _ := pages.ReadFile("pages/" + words + ".txt")
	usage, description, _ = strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n\n")
	return usage, description
}

const (
	manyFlags  = 37 // more than a reader takes in
	flagColumn = 30 // the column in which help explains flags
	connecting = "Connection"

	connectionHelp = "connection" // a command that is only help, about flags that many others have
)

// help prints the help of the command on the line. It is the action of commands that only hold other commands.
func (p *program) help(*cli.Context) error {
	return p.print(screenOf(p.line.Command, p.line.Path, p.line.Typed["all"] == "true"))
}

// screenOf returns the help of the command with these words. If it has many flags, rare ones are shown only with all.
func screenOf(c *cli.Command, words []string, all bool) string {
	var s terminal.Screen
	name := strings.Join(words, " ")
	s.Line("%s\n", terminal.Wrap(name+" - "+c.Usage, terminal.Columns))
	usage := name + " [FLAGS] " + c.ArgsUsage
	if len(c.Subcommands) > 0 {
		usage = name + " COMMAND"
	}
	s.Line("USAGE:\n   %s\n", strings.TrimSpace(usage))
	s.Text(strings.NewReplacer( // in the page of the sandbox
		"$EMAIL", sandbox.Email, "$PASSWORD", sandbox.Password, "$FAULTS", sandbox.FaultHelp,
		"$DIRECTORY", strings.ReplaceAll(sandbox.DirectoryHelp, "\n", "\n   "),
	).Replace(c.Description))
	if len(c.Subcommands) > 0 {
		s.Heading("commands")
	}
	for _, sub := range c.Subcommands {
		s.Entry("   "+sub.Name, sub.Usage, 15)
	}
	groups := []string{"", "Input", "Run", "Files"}
	switch {
	case c.Name == connectionHelp:
		groups = []string{connecting}
	case len(words) == 1:
		groups = []string{"Flags"}
	}
	list := slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool {
		return !all && len(c.Flags) > manyFlags && !f.(cli.VisibleFlag).IsVisible()
	})
	for _, group := range groups {
		helpFlags(&s, group, list)
	}
	if rare := len(c.Flags) - len(list); rare > 0 {
		s.Heading("rare flags")
		s.Line("   %d more: leadferry help %s --all", rare, strings.Join(words[1:], " "))
	}
	if flags.Named("base-url", c.Flags) != nil && c.Name != connectionHelp {
		s.Heading(connecting)
		s.Line("   Address, account, proxy and --sandbox: leadferry help %s", connectionHelp)
	}
	last := "Flags of every command: --quiet, --no-progress, --log-level, --log-format, --help"
	if len(words) == 1 {
		last = "leadferry COMMAND --help shows the flags of a command, an example and its exit codes; " +
			"leadferry help connection shows the flags for the way to the service."
	}
	s.Line("\n%s", terminal.Wrap(last, terminal.Columns))
	return s.String()
}

// helpFlags lists the flags of one category.
func helpFlags(s *terminal.Screen, group string, list []cli.Flag) {
	begun := false
	for _, f := range list {
		if f.(cli.CategorizableFlag).GetCategory() != group {
			continue
		}
		if !begun {
			s.Heading(cmp.Or(group, "flags"))
			begun = true
		}
		// As people type it; then its meaning, its default and its variable.
		typed, about, _ := strings.Cut(f.String(), "\t")
		typed, _, _ = strings.Cut(typed, " [ ") // urfave writes a repeatable flag twice
		s.Entry("   "+strings.Replace(typed, " [=", "[=", 1), about, flagColumn)
	}
}

// warnOfVariables warns of variables that leadferry ignores but the user may rely on. The name is nearly that of a
// flag's variable, or its flag has no variable: a dry run that is asked for like that would be a live run.
func (p *program) warnOfVariables() {
	names := flags.Names()
	for _, of := range []string{"client-secret", "password", "shards", "any-filesystem"} { // they are not flags
		names[of] = true
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		word, ours := strings.CutPrefix(name, flags.Variable(""))
		if !ours {
			continue
		}
		word = strings.ReplaceAll(strings.ToLower(word), "_", "-")
		switch near := spelling.Nearest(word, slices.Sorted(maps.Keys(names))); {
		case near == "" || names[near] && name == flags.Variable(near):
		case names[near]:
			p.warn(name + " is set but has no effect: is " + flags.Variable(near) + " meant?")
		default:
			p.warn(name + " is set but has no effect: --" + near + " works on the command line only")
		}
	}
}

func (p *program) explain(c *cli.Context) error {
	asked := strings.Join(c.Args().Slice(), " ")
	if asked == "" {
		return p.print(everyEntry())
	}
	e, found := explain.Find(asked)
	if !found {
		return exit.Usage("there is no entry for "+strconv.Quote(asked),
			flags.Near("leadferry explain ", asked, explain.Names(), "leadferry explain lists all there are"))
	}
	return p.print(entryPage(e))
}

// everyEntry lists what leadferry explain knows, by kind.
func everyEntry() string {
	var s terminal.Screen
	s.Line("leadferry explain NAME - what leadferry says, and what to do about it")
	for _, k := range explain.Kinds() {
		s.Heading(k.Title)
		var names []string
		for _, e := range k.Entries {
			names = append(names, e.Name)
		}
		s.Entry("", strings.Join(names, ", "), 3)
	}
	return s.String()
}

// entryPage returns an entry as a screen.
func entryPage(e explain.Entry) string {
	var s terminal.Screen
	s.Line("%s", terminal.Wrap(strings.Join(append([]string{e.Name}, e.Also...), ", ")+" - "+e.Kind, terminal.Columns))
	about := spelling.Texts{e.Means}
	about.Add(e.Why != "", "%s", e.Why)
	about.Add(true, "What to do: %s", e.Do)
	about.Add(len(e.Next) > 0, "   %s", strings.Join(e.Next, "\n   "))
	about.Add(e.See != "", "More: %s", e.See)
	for _, text := range about {
		s.Line("")
		s.Text(text)
	}
	return s.String()
}

// print writes a requested text to standard output.
func (p *program) print(text string) error {
	_, err := io.WriteString(&p.out, text)
	return err
}

// completeWord is the first argument of completion scripts. The words of the line up to the cursor follow, without the
// program's name. The last word may be empty, so it has a dot at its end: some shells drop empty arguments.
const completeWord = "__complete"

// shells are the shells with a completion script. A script passes on what was typed, and evaluates none of it.
var shells = []string{"bash", "zsh", "fish", "powershell"}

//go:embed scripts
var scripts embed.FS

func (p *program) completion(c *cli.Context) error {
	script, err := scripts.ReadFile("scripts/leadferry." + c.Args().First())
	if c.NArg() != 1 || err != nil {
		return exit.Usage("completion takes one of "+strings.Join(shells, ", "), "such as completion bash")
	}
	return p.print(string(script))
}

// Completes answers a completion script, if args come from one, and says so: a half-typed `forget KEY` must not run.
func Completes(args []string, out *os.File) bool {
	if len(args) < 2 || args[1] != completeWord {
		return false
	}
	_, _ = io.WriteString(out, completed(args[2:])) // an error means that nobody reads it
	return true
}

// completed returns what may follow at the cursor, in the form that scripts read: a line that says files or words, then
// a line for each word with its meaning after a tab.
func completed(asked []string) string {
	begun, joined := "", ""
	if last := len(asked) - 1; last >= 0 {
		begun, asked = strings.TrimSuffix(asked[last], "."), asked[:last]
	}
	if name, value, is := strings.Cut(begun, "="); is && strings.HasPrefix(name, "-") && !slices.Contains(asked, "--") {
		joined, begun, asked = name+"=", value, append(slices.Clip(asked), name)
	}
	kind, words := candidates(asked, begun)
	answer := kind + "\n"
	for _, w := range words {
		if strings.HasPrefix(w[0], begun) {
			about, _, _ := strings.Cut(strings.ReplaceAll(w[1], "`", ""), "; ")
			answer += joined + w[0] + "\t" + about + "\n"
		}
	}
	return answer
}

// candidates returns the words that may follow others, with their meanings, and whether names of files may follow, too.
func candidates(before []string, begun string) (kind string, words [][2]string) {
	line, _ := flags.Order((&program{}).app(), before) // an incomplete line has mistakes
	known := line.Command.Flags
	onlyFiles, last := slices.Contains(before, "--"), ""
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	if f := flags.Named(strings.TrimLeft(last, "-"), known); f != nil && last[0] == '-' && flags.TakesValue(f) &&
		!onlyFiles {
		return values(argumentOf(f))
	}
	arguments := line.Command.ArgsUsage
	switch {
	case strings.HasPrefix(begun, "-") && !onlyFiles:
		for _, f := range known {
			for _, name := range f.Names() {
				words = append(words, [2]string{"--"[:min(len(name), 2)] + name, f.(cli.DocGenerationFlag).GetUsage()})
			}
		}
	case len(line.Command.Subcommands) > 0:
		for _, c := range line.Command.Subcommands {
			words = append(words, [2]string{c.Name, c.Usage})
		}
	case len(line.Files) < len(strings.Fields(arguments)) || strings.Contains(arguments, "..."):
		return values(arguments)
	}
	return "words", words
}

// argumentOf returns help's name for a flag's value: FILE, own|all; "" for a switch.
func argumentOf(f cli.Flag) string {
	called := strings.Split(f.(cli.DocGenerationFlag).GetUsage(), "`")
	return append(called, "")[1]
}

// fixedWords matches a value's name in help that lists its words, such as hold|resend.
var fixedWords = spelling.Form(`^[a-z0-9-]+(\|[a-z0-9-]+)+$`)

// values returns what a value with this name in help may be.
func values(called string) (kind string, words [][2]string) {
	if strings.Contains(called, "FILE") || called == "DIR" || called == "[RUN]" {
		return "files", nil
	}
	if fixedWords().MatchString(called) {
		for word := range strings.SplitSeq(called, "|") {
			words = append(words, [2]string{word})
		}
	}
	return "words", words
}
