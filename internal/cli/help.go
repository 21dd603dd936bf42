package cli

import (
	"embed"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint/bolt"
	"leadferry/internal/cli/complete"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/reference"
	"leadferry/internal/explain"
	"leadferry/internal/spelling"
)

// pages are what help says of each command beside its flags: a text a command, named by its words.
//
//go:embed pages
var pages embed.FS

// description is the page of a command, "" where it has none of its own.
func description(words string) string {
	text, _ := pages.ReadFile("pages/" + words + ".txt")
	return strings.TrimSuffix(string(text), "\n")
}

// Reference is the whole command line as tables.
func Reference() *reference.Command {
	app := (&program{}).app()
	r := referenceOf(&cli.Command{
		Name: app.Name, Usage: app.Usage, Description: app.Description, ArgsUsage: "COMMAND", Flags: app.Flags, Subcommands: app.Commands,
	}, nil)
	return &r
}

func referenceOf(c *cli.Command, above []string) reference.Command {
	r := reference.Command{
		Path: append(above[:len(above):len(above)], c.Name), Summary: c.Usage, Description: c.Description, Arguments: c.ArgsUsage,
	}
	r.Words = choices(c.ArgsUsage)
	for _, f := range c.Flags {
		r.Flags = append(r.Flags, referenceOfFlag(f))
	}
	for _, sub := range c.Subcommands {
		r.Commands = append(r.Commands, referenceOf(sub, r.Path))
	}
	return r
}

var backticked = spelling.Form("`([^`]*)`")

func referenceOfFlag(f cli.Flag) reference.Flag {
	r := reference.Flag{Names: f.Names()}
	if d, ok := f.(cli.DocGenerationFlag); ok {
		r.Usage = strings.ReplaceAll(d.GetUsage(), "`", "")
		if d.TakesValue() {
			r.Argument, r.Default = "VALUE", defaultOf(d)
			if m := backticked().FindStringSubmatch(d.GetUsage()); m != nil {
				r.Argument = m[1]
			}
		}
		r.Variable = strings.Join(d.GetEnvVars(), ", ")
	}
	if c, ok := f.(cli.CategorizableFlag); ok {
		r.Category = c.GetCategory()
	}
	_, r.Repeats = f.(*cli.StringSliceFlag)
	r.Rare = slices.Contains(rare, r.Names[0])
	r.Words = choices(r.Argument)
	return r
}

// rare are flags that most people never need, or meet in what a refusal prints.
var rare = []string{
	"list", "max-age", "ledger-standby", "fleet", "shard", "new-checkpoint", "new-key", "wait", "timeout", "retries", "max-wait", "resend-on",
	"max-duration", "max-creates", "max-rejects", "max-invalid", "retry-rejected", "look-alikes", "keep-runs", "metrics", "results-columns",
	"problems", "on-finish", "summary", "results", "rejects",
}

// defaultOf is what holds without the flag, where that says anything.
func defaultOf(d cli.DocGenerationFlag) string {
	text := strings.Trim(d.GetDefaultText(), `"`)
	if strings.Contains(d.GetUsage(), "(default: ") || text == "0" || text == "none" {
		return ""
	}
	return text
}

var oneOf = spelling.Form(`^[a-z0-9-]+(\|[a-z0-9-]+)+$`)

// choices are the words that the name of a value is made of, such as hold|resend.
func choices(argument string) []string {
	if !oneOf().MatchString(argument) {
		return nil
	}
	return strings.Split(argument, "|")
}

// flaglessVariables are those that stand for no flag.
var flaglessVariables = [...]string{external.SecretVariable, "LEADFERRY_PASSWORD", "LEADFERRY_SHARDS", "LEADFERRY_ANY_FILESYSTEM"}

// warnOfVariables tells of variables whose names are near to one that counts: a checkpoint that such a one names is not used,
// and its leads would be made again. It tells, too, of those of flags that have none: who asks for a dry run so gets a live one.
func (p *program) warnOfVariables() {
	const prefix = "LEADFERRY_"
	var known []string // what stands behind the prefix
	none := map[string]string{}
	for _, name := range flaglessVariables {
		known = append(known, strings.TrimPrefix(name, prefix))
	}
	Reference().Each(func(c *reference.Command) {
		for _, f := range c.Flags {
			if f.Variable == "" {
				none[flags.Variable(f.Names[0])] = "--" + f.Names[0]
			}
			known = append(known, strings.TrimPrefix(f.Variable, prefix))
		}
	})
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		word, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(known, word) {
			continue
		}
		if flag := none[name]; flag != "" {
			p.warn(name + " is set and counts for nothing: " + flag + " is given on the command line alone")
		} else if near := spelling.Nearest(word, known); near != "" {
			p.warn(name + " is set and counts for nothing: is " + prefix + near + " meant?")
		}
	}
}

// ChecksFile checks a checkpoint's file, where args are those of a process that another one has started for that; is says so.
func ChecksFile(args []string, out *os.File) (code int, is bool) { return bolt.CheckFile(args, out) }

// Completes answers a completion script on out, where that is what args are: the program
// itself must not begin then. Its exit code is 0 even where there is nothing to say.
func Completes(args []string, out *os.File) bool {
	if len(args) < 2 || args[1] != complete.Word {
		return false
	}
	_ = completed(Reference(), args[2:]).Write(out) // who does not listen wants none
	return true
}

// completed is what may stand at the end of a half-typed line. The last of its words, which may be empty, has a dot behind it.
func completed(all *reference.Command, asked []string) complete.Answer {
	begun := ""
	if n := len(asked) - 1; n >= 0 {
		begun, asked = strings.TrimSuffix(asked[n], "."), asked[:n]
	}
	line, _ := flags.Parse((&program{}).app(), asked) // a line that is not ready has mistakes
	if line.Lost {
		return complete.Answer{}
	}
	l := complete.Line{Program: all, Command: all, Given: line.Typed, Awaited: line.Awaited, OnlyFiles: line.Rest, Arguments: len(line.Files)}
	for _, word := range line.Path[1:] {
		l.Command = l.Command.Find(word)
	}
	return l.Complete(begun)
}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print what makes a shell complete commands, flags and values", ArgsUsage: strings.Join(complete.Shells(), "|"),
		Action: func(c *cli.Context) error {
			script := complete.Script(c.Args().First())
			if c.NArg() != 1 || script == nil {
				return exit.Usage("completion takes one of "+strings.Join(complete.Shells(), ", "), "for example: leadferry completion bash")
			}
			return p.print(string(script))
		},
	}
}

func (p *program) explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "an outcome, exit code, rule or message: what it means, what to do", ArgsUsage: "[NAME]",
		Action: func(c *cli.Context) error {
			asked := strings.Join(c.Args().Slice(), " ")
			if asked == "" {
				return p.print(everyEntry())
			}
			e, found := explain.Find(asked)
			if !found {
				return exit.Usage("there is no entry for "+strconv.Quote(asked), flags.Near("leadferry explain ", asked, explain.Names(), "leadferry explain lists all there are"))
			}
			return p.print(entryPage(e))
		},
	}
}

// everyEntry lists what can be explained, by kind.
func everyEntry() string {
	var lists []reference.List
	for _, k := range explain.Kinds() {
		l := reference.List{Title: k.Title}
		for _, e := range k.Entries {
			l.Items = append(l.Items, [2]string{e.Name, e.Means})
		}
		lists = append(lists, l)
	}
	return reference.Lists("leadferry explain NAME - what leadferry says, and what to do about it", lists)
}

// entryPage is one entry as a screen.
func entryPage(e explain.Entry) string {
	about := []string{e.Means}
	if e.Why != "" {
		about = append(about, e.Why)
	}
	about = append(about, "What to do: "+e.Do)
	if len(e.Next) > 0 {
		about = append(about, "   "+strings.Join(e.Next, "\n   "))
	}
	if e.See != "" {
		about = append(about, "More: "+e.See)
	}
	return reference.Page(strings.Join(append([]string{e.Name}, e.Also...), ", ")+" - "+e.Kind, strings.Join(about, "\n\n"))
}

// help prints the screen of the command that the line names, or of the topic. It is the action of commands that only stand
// above others.
func (p *program) help(*cli.Context) error {
	all := Reference()
	if p.line.Topic {
		const title = "leadferry help " + flags.ConnectionTopic + " - the way to the service, for all commands"
		return p.print(reference.Topic(title, description(flags.ConnectionTopic), connecting, all.Find("import").Flags))
	}
	c := all
	for _, word := range p.line.Path[1:] {
		c = c.Find(word)
	}
	return p.print(reference.Help(all, c, reference.Elsewhere{Category: connecting, Topic: flags.ConnectionTopic}, p.line.All))
}

// print writes a text that was asked for to standard output.
func (p *program) print(text string) error {
	_, err := io.WriteString(&p.out, text)
	return err
}
