package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/terminal"
	"leadferry/leadapi/sandbox"
)

// commands are those of the program, as help lists them, each with the sets of its flags in the table of package flags.
func (p *program) commands() []*cli.Command {
	command := func(name, arguments, usage string, do cli.ActionFunc, sets string) *cli.Command {
		return &cli.Command{Name: name, ArgsUsage: arguments, Usage: usage, Action: do, Flags: flags.Of(sets)}
	}
	above := func(name, usage string, its ...*cli.Command) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Action: p.help, Subcommands: its}
	}
	imitation := command("sandbox", "", "a local imitation of the service, for trying out and for tests", p.sandbox,
		"sandbox")
	imitation.Description = fmt.Sprintf(description("sandbox"), sandbox.Email, sandbox.Password, sandbox.FaultHelp,
		strings.ReplaceAll(sandbox.DirectoryHelp, "\n", "\n   "))
	reconcile := command("reconcile", "FILE...", "compare file, checkpoint and service, lead by lead; change nothing",
		p.carry(importer.Reconcile, reconcileOptions),
		"source input connection checkpoint standby send reconcile reconciliation pull output")
	makes := flags.Marked("*")
	reconcile.Flags = slices.DeleteFunc(reconcile.Flags,
		func(f cli.Flag) bool { return slices.Contains(makes, f.Names()[0]) })
	show := command("show", "", "each setting, its value and its origin; secrets masked", p.configShow, "connection")
	show.Flags = slices.Concat(show.Flags, pathFlags(), flags.Of("config-show"))
	return []*cli.Command{
		command("init", "FILE", "guess a mapping from a file's header and first rows", p.runInit, "source init"),
		command("validate", "FILE...", "dry run: read, map and check every row; send nothing",
			p.carry(importer.Validate, validateOptions), "source input output validate"),
		command("import", "FILE...", "create leads, then link ExternalID; resumable", p.carry(importer.Import, nil),
			"source input connection checkpoint standby fleet send import output"),
		command("sync", "FILE...", "send what changed in Status, ExternalID and Content of known leads",
			p.carry(importer.Sync, syncOptions),
			"source input connection checkpoint standby fleet send sync pull output"),
		reconcile,
		command("report", "[RUN]", "the page of a finished run: whether it worked, what needs you", p.report,
			"connection report"),
		command("login", "", "exchange e-mail and password for an OAuth client, stored for later runs", p.login,
			"login connection"),
		above("config", "show every effective setting and where it comes from, or check whether they work", show,
			command("check", "", "whether address, proxy, TLS and sign-in work, step by step", p.configCheck,
				"connection config-check")),
		imitation,
		command("schema", "", "print the JSON Schema of the mapping file, for editors", p.schema, ""),
		above("checkpoint", "look at what is known of the leads, and settle rows in doubt",
			checkpointcmd.Commands(p.checkpointCommand)...),
		command("explain", "[NAME]", "an outcome, exit code, rule or message: what it means, what to do", p.explain, ""),
		command("completion", strings.Join(shells, "|"), "print what makes a shell complete command lines", p.completion,
			""),
	}
}

// pathFlags are the flags of runs that the environment may set as well.
func pathFlags() []cli.Flag {
	all := flags.Of("checkpoint fleet input output send reconciliation pull")
	return slices.DeleteFunc(all, func(f cli.Flag) bool { return len(f.(cli.DocGenerationFlag).GetEnvVars()) == 0 })
}

// checkpointCommand is what a command of package checkpointcmd works with.
func (p *program) checkpointCommand(c *cli.Context) *checkpointcmd.Command {
	return &checkpointcmd.Command{
		Selection: p.ledger(c), In: p.In, Out: &p.out, Say: p.say(c), Warn: p.warn, Person: p.person(c),
		Shown: terminal.Is(p.Out), Hold: p.hold.Take,
		Apart: func(path string) error { return p.keepApart(c, []place{placeAt(path, "-o")}, nil) },
	}
}
