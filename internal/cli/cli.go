// Package cli is leadferry's command line. It has the table of all commands; their flags are in package flags. A
// command turns flags into options and makes one call. From command line to call:
//
//	arguments ─▶ [flags] put in order, then parsed by urfave
//	          ─▶ [connection] flag, environment and profile, the way to the service
//	          ─▶ [inputs] the mapping and the files   ─▶ importer, which does the work
//	          ─▶ [ledger] the checkpoint, opened      ─▶ checkpointcmd, for `leadferry checkpoint`
//	          ─▶ [exit] an error as a sentence, a hint and a code
//
// import, sync, reconcile and validate: runRows (rows.go) ─▶ openInputs (Options.Inputs), connect (service.go: Client
// and Open) ─▶ conduct ─▶ importer.Run, which opens the checkpoint and reads the inputs.
//
// Also, [terminal] asks the user, [signals] decides who ends the process, and [external] runs the programs that flags
// name. Only main imports this package.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
	"leadferry/internal/cli/checkpointcmd"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/signals"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/crash"
	"leadferry/internal/machine"
	"leadferry/internal/spelling"
)

// Version is this program's release.
const Version = "0.1.0"

const userAgent = "leadferry/" + Version

// version returns the text of --version: the release, the commit if the Go tool recorded one, and Go's version.
func version() string {
	words := []string{Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				words = append(words, "commit "+s.Value)
			}
		}
	}
	return strings.Join(append(words, runtime.Version()), " ")
}

// Streams are the program's standard input, output and error.
type Streams struct{ In, Out, Err *os.File }

// program is one start of leadferry.
type program struct {
	Streams
	interrupt <-chan struct{}
	run       string // ID of this start
	args      []string
	line      *flags.Line
	settings  *connection.Settings
	mistake   error      // in the configuration: commands that need it do not begin
	json      bool       // --log-format json: standard error is read by a program
	quiet     bool       // --quiet
	level     slog.Level // --log-level
	code      int        // the exit code that the command asks for
	hold      signals.Hold
	ending    *ending      // nil: the command handles no rows
	log       terminal.Log // receives log lines
	tables    []string     // files that the mapping reads
	color     string       // the value of --color
	out       output       // standard output for commands
}

// output is standard output. It keeps the first write error until the command ends.
type output struct {
	to   io.Writer
	lost error
}

func (t *output) Write(b []byte) (int, error) {
	n, err := t.to.Write(b)
	t.lost = cmp.Or(t.lost, err)
	return n, err
}

// Run runs one command line (the package comment shows the way) and returns its exit code. The first signal closes
// interrupt, the second ends ctx. Afterwards, a goroutine of the command may still be waiting: the process must end.
func Run(ctx context.Context, interrupt <-chan struct{}, args []string, s Streams) int {
	log.SetOutput(io.Discard) // net/http logs stray answers, which may hold personal data
	run := fmt.Sprintf("%08x", rand.Uint32())
	p := &program{Streams: s, interrupt: interrupt, run: run, args: args, out: output{to: s.Out}}
	p.log.Redirect(s.Err)
	app := p.app()
	line, err := flags.Order(app, args[min(1, len(args)):])
	_ = p.level.UnmarshalText([]byte(line.Typed["log-level"])) // urfave reports a bad level
	p.line, p.color, p.json, p.quiet = line, line.Typed["color"], line.Typed["log-format"] == "json", line.Bool("quiet")
	p.ending = endingOf(line)
	p.settings, p.mistake = connection.Resolve(line)
	ended := make(chan error, 1)
	go func() {
		switch {
		case err != nil:
		case line.Bool("help"):
			err = p.help(nil)
		case line.Bool("version"):
			err = p.print("leadferry version " + version() + "\n")
		default:
			err = crash.Call(func() error { return app.RunContext(ctx, line.Args) })
		}
		if lost := p.out.lost; lost != nil && (err == nil || errors.Is(err, lost)) {
			err = exit.OutputLost(lost)
		}
		ended <- err
	}()
	if err := p.hold.Conclude(ctx, interrupt, ended, p.stopping); err != nil {
		refused := p.reason(err)
		p.fail(&refused)
		return p.finish(ctx, refused.Code, &refused)
	}
	return p.finish(ctx, p.code, nil)
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name: "leadferry", Reader: p.In, Writer: &p.out, ErrWriter: p.Err,
		Flags:                     flags.Of("global"),
		Commands:                  p.commands(),
		Action:                    p.help,
		ExitErrHandler:            func(*cli.Context, error) {}, // package exit decides instead
		DisableSliceFlagSeparator: true,
		HideHelp:                  true,
	}
	app.Usage, app.Description = pageOf(app.Name)
	p.prepare(app.Commands, "", app.Flags)
	return app
}

// commands returns the program's commands in the order of help, each with sets of the table of package flags.
func (p *program) commands() []*cli.Command {
	command := func(name, arguments string, do cli.ActionFunc, sets string) *cli.Command {
		return &cli.Command{Name: name, ArgsUsage: arguments, Action: do, Flags: flags.Of(sets)}
	}
	above := func(name string, its ...*cli.Command) *cli.Command {
		return &cli.Command{Name: name, Action: p.help, Subcommands: its}
	}
	return []*cli.Command{
		command("init", "FILE", p.runInit, "source init"),
		command("validate", "FILE...", p.runRows, "source input output validate"),
		command("import", "FILE...", p.runRows,
			"source input connection checkpoint standby fleet send creates import output"),
		command("sync", "FILE...", p.runRows,
			"source input connection checkpoint standby fleet send creates sync pull output"),
		command("reconcile", "FILE...", p.runRows,
			"source input connection checkpoint standby send reconcile reconciliation pull output"),
		command("report", "[RUN]", p.report, "connection report"),
		command("login", "", p.login, "login connection"),
		above("config",
			command("show", "", p.configShow,
				"connection checkpoint fleet input output send creates reconciliation pull"),
			command("check", "", p.configCheck, "connection config-check")),
		command("sandbox", "", p.sandbox, "sandbox"),
		command("schema", "", p.schema, ""),
		above("checkpoint", checkpointcmd.Commands(p.checkpointCommand)...),
		command("explain", "[NAME]", p.explain, ""),
		command(connectionHelp, "", p.help, "connection"),
		command("completion", strings.Join(shells, "|"), p.completion, ""),
	}
}

// checkpointCommand returns what a command of package checkpointcmd works with.
func (p *program) checkpointCommand(c *cli.Context) *checkpointcmd.Command {
	return &checkpointcmd.Command{
		Selection: p.ledger(c), In: p.In, Out: &p.out, Say: p.say, Warn: p.warn, Person: p.person(c),
		Shown: terminal.Is(p.Out), Hold: p.hold.Take,
		Apart: func(path string) error { return p.keepApart(c, []place{placeAt(path, "-o")}, nil) },
	}
}

// prepare gives every command its help page and its first step.
func (p *program) prepare(commands []*cli.Command, above string, global []cli.Flag) {
	for _, c := range commands {
		c.Before, c.HideHelp = p.begin, true
		c.Flags = append(c.Flags, global...)
		c.Usage, c.Description = pageOf(above + c.Name)
		p.prepare(c.Subcommands, above+c.Name+"-", global)
	}
}

// begin is the first step of every command.
func (p *program) begin(c *cli.Context) error {
	if p.ending != nil {
		p.ending.c.Store(c)
	}
	if len(c.Command.Subcommands) == 0 {
		p.warnOfVariables()
	}
	return p.mistake
}

// ledger returns what the command line says about the checkpoint to use.
func (p *program) ledger(c *cli.Context) ledger.Selection {
	return ledger.Selection{
		C: c, Target: p.settings.Target(), Interrupt: p.interrupt, Run: p.run,
		Machine: cmp.Or(p.settings.Get("machine"), machine.ID()),
		Unseen:  p.line.Given("checkpoint").Origin == flags.ByEnvironment,
	}
}

// person returns the user who may be asked.
func (p *program) person(c *cli.Context) terminal.Person {
	return terminal.Person{In: p.In, Err: p.Err, Interrupt: p.interrupt, Yes: c.Bool("yes")}
}

// say announces something on standard error, unless --quiet is set.
func (p *program) say(text string) {
	if !p.quiet {
		p.tell(slog.LevelInfo, "", text)
	}
}

// warn writes warnings to standard error. --quiet does not hide them.
func (p *program) warn(texts ...string) {
	for _, text := range texts {
		if text != "" {
			p.tell(slog.LevelWarn, "warning: ", text)
		}
	}
}

// tell writes a line to standard error, even with --quiet. For people, it begins with word unless the text is a hint.
func (p *program) tell(level slog.Level, word, text string) {
	shown := spelling.Escape(text)
	if strings.HasPrefix(text, "hint: ") { // a command to type is not cut
		word, shown = "", spelling.EscapeLine(text)
	}
	if p.json {
		p.logger().Log(context.Background(), level, shown)
		return
	}
	fmt.Fprintln(&p.log, word+shown)
}

// fail says why a command ended, for people or for programs.
func (p *program) fail(end *exit.Error) {
	one, ink := end.Joined(), p.inkOf(p.Err)
	switch {
	case one.Text == "": // the reader has gone
		return
	case p.json:
		p.logger().Error(spelling.Escape(one.Text), "exit_code", one.Code, "hint", spelling.EscapeLine(one.Hint))
		return
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(end.Text+"\nhint: "+end.Hint, "\nhint: "), "\n") {
		if strings.HasPrefix(line, "hint: ") {
			fmt.Fprintln(p.Err, ink.Dim(spelling.EscapeLine(line)))
		} else {
			fmt.Fprintln(p.Err, ink.Red("leadferry:"), spelling.Escape(line))
		}
	}
}

// inkOf says whether text for f is coloured.
func (p *program) inkOf(f *os.File) report.Ink { return report.Ink(terminal.Colours(f, p.color)) }

// reason returns why a command ended, safe to show: it escapes the words of the command line, so each line is our own.
func (p *program) reason(err error) exit.Error {
	end := exit.Of(err)
	for _, word := range p.args {
		if instead := spelling.Escape(word); instead != word && word != "" {
			end.Text = strings.ReplaceAll(end.Text, word, instead)
			end.Hint = strings.ReplaceAll(end.Hint, word, instead)
		}
	}
	return end
}

// ChecksFile checks a checkpoint's file if args are those of a process started for that. is reports whether they are.
func ChecksFile(args []string, out *os.File) (code int, is bool) { return bolt.CheckFile(args, out) }
