package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/reference"
)

// connectionTopic is what `leadferry help` takes for the flags that lead to the service,
// which are the same for every command.
const connectionTopic = "connection"

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
	if p.line.topic {
		const title = "leadferry help " + connectionTopic + " - the way to the service, for all commands"
		return p.print(reference.Topic(title, connectionHelp, connecting, all.Find("import").Flags))
	}
	c := all
	for _, word := range p.line.path[1:] {
		c = c.Find(word)
	}
	return p.print(reference.Help(all, c, reference.Elsewhere{Category: connecting, Topic: connectionTopic}))
}

// print writes a text that was asked for to standard output.
func (p *program) print(text string) error {
	if _, err := p.Out.WriteString(text); err != nil {
		return stopped(fmt.Sprintf("standard output could not be written: %v", err), "")
	}
	return nil
}

// showHelp is the action of a command that only stands above others.
func (p *program) showHelp(*cli.Context) error { return p.help() }
