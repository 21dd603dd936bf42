package cli

import (
	"slices"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/terminal"
)

func (p *program) checkpointCommand() *cli.Command {
	commands := checkpointcmd.Commands(func(c *cli.Context) *checkpointcmd.Command {
		return &checkpointcmd.Command{
			Selection: p.ledger(c), In: p.In, Out: &p.out, Say: p.say(c), Warn: p.warn, Person: p.person(c),
			Shown: terminal.Is(p.Out), Hold: p.hold.Take,
			Apart: func(path string) error { return p.keepApart(c, []place{placeAt(path, "-o")}, nil) },
		}
	})
	for _, c := range commands {
		switch {
		case slices.Contains([]string{"copy", "init"}, c.Name): // which name theirs
			c.Flags = append(c.Flags, standbyFlag())
		case c.Name != "repair":
			c.Flags = append(c.Flags, checkpointFlags()...)
		}
		c.Flags = append(c.Flags, connectionFlags()...)
	}
	return &cli.Command{
		Name: "checkpoint", Usage: "look at what is known of the leads, and settle rows in doubt",
		Subcommands: commands, Action: p.help,
	}
}
