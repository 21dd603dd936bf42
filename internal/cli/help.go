package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/reference"
	"leadferry/internal/explain"
)

func (p *program) explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "an outcome, exit code, rule or message: what it means, what to do", ArgsUsage: "[NAME]",
		Description: `Says what a word in results, problems or summaries means, or an exit code, a status
of HTTP, a reason to stop, a warning; how it comes to that, and what to do. NAME may be
a message that was printed, in quotes. Without NAME it lists all there are.

Example:

   leadferry explain in_doubt
   leadferry explain exit 5
   leadferry explain 429

Exit codes: 0 explained; 2 there is no such name; 3 standard output is closed.`,
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
	about := []string{e.Means, e.Why, "What to do: " + e.Do}
	if e.Why == "" {
		about = []string{e.Means, "What to do: " + e.Do}
	}
	if len(e.Next) > 0 {
		about = append(about, "   "+strings.Join(e.Next, "\n   "))
	}
	if e.See != "" {
		about = append(about, "More: "+e.See)
	}
	return reference.Page(strings.Join(append([]string{e.Name}, e.Also...), ", ")+" - "+e.Kind, strings.Join(about, "\n\n"))
}

const connectionHelp = `Commands that talk to the service, or look for what is known of it, take these flags.
Each has an environment variable, and a key in a profile of the configuration file
that is called the same, with _ for -. A flag beats the environment, which beats the
profile; leadferry config show tells which one won, leadferry config check whether they
work. The OAuth secret has no flag, which would show in the list of processes: it comes
from the variable LEADFERRY_CLIENT_SECRET, from a file, or from a command.

Example:

   leadferry config show --profile eu
   leadferry import --profile eu -m leads.yaml leads.csv
   leadferry import --sandbox -m leads.yaml leads.csv

--directory: a file as leadferry sandbox --help shows it.`

// help prints the screen of the command that the line names, or of the topic.
func (p *program) help() error {
	all := Reference()
	if p.line.Topic {
		const title = "leadferry help " + flags.ConnectionTopic + " - the way to the service, for all commands"
		return p.print(reference.Topic(title, connectionHelp, connecting, all.Find("import").Flags))
	}
	c := all
	for _, word := range p.line.Path[1:] {
		c = c.Find(word)
	}
	return p.print(reference.Help(all, c, reference.Elsewhere{Category: connecting, Topic: flags.ConnectionTopic}))
}

// print writes a text that was asked for to standard output.
func (p *program) print(text string) error {
	_, err := io.WriteString(&p.out, text)
	return err
}

// showHelp is the action of a command that only stands above others.
func (p *program) showHelp(*cli.Context) error { return p.help() }
