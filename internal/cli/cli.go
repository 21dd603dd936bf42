// Package cli is leadferry's command line: one file a command, each of which turns
// flags into options and makes one call, and one table that turns errors into
// sentences and exit codes.
//
// It is the outermost room: it knows every other one and none knows it.
package cli

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"leadferry/importer/report"
)

// Version is the release that this program is.
const Version = "0.1.0"

// Streams are the program's three.
type Streams struct{ In, Out, Err *os.File }

// program is one start of leadferry.
type program struct {
	Streams
	interrupt  <-chan struct{}
	args       []string
	jsonErrors bool // --log-format json
	code       int  // what the command that ran asks for
	hold       hold
	ending     atomic.Pointer[ending]
	refusal    atomic.Pointer[refusal]
	log        logOut // where log lines go
}

// logOut is standard error, or a progress bar that keeps log lines above itself.
type logOut struct {
	mu sync.Mutex
	to io.Writer
}

func (l *logOut) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

func (l *logOut) redirect(to io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// escaping writes lines of JSON with nothing in them that a terminal obeys.
type escaping struct{ to io.Writer }

func (e escaping) Write(line []byte) (int, error) {
	if _, err := e.to.Write(report.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Run runs one command line and returns its exit code. interrupt is closed by the
// first signal; ctx ends with the second. A command that waits for what does not come
// may still wait then: the process has to end.
func Run(ctx context.Context, interrupt <-chan struct{}, args []string, s Streams) int {
	log.SetOutput(io.Discard) // net/http quotes stray answers there, and they may quote people
	p := &program{Streams: s, interrupt: interrupt, args: args, jsonErrors: wantsJSON(args)}
	p.log.redirect(s.Err)
	ended := make(chan int, 1)
	go func() {
		ended <- p.perform(func() error {
			app := p.app()
			ordered, err := reorder(app, args)
			if err != nil {
				return err
			}
			app.Metadata = map[string]any{lineArgs: ordered}
			return app.RunContext(ctx, ordered)
		})
	}()
	return p.finish(ctx, p.conclusion(ctx, ended))
}

func (p *program) app() *cli.App {
	commands := []*cli.Command{
		p.initCommand(), p.validateCommand(), p.importCommand(), p.syncCommand(), p.loginCommand(), p.configCommand(),
		p.sandboxCommand(), p.schemaCommand(), p.checkpointCommand(),
	}
	settleFirst(commands)
	p.watch(commands)
	app := &cli.App{
		Name:    "leadferry",
		Usage:   "carry leads from spreadsheets into a lead-management service, once each",
		Version: Version + " " + runtime.Version(),
		Description: `A first try needs no account and no network:

   leadferry validate -m samples/leads.yaml samples/leads.csv
   leadferry import --sandbox -m samples/leads.yaml samples/leads.csv

Exit codes: 0 no row needs attention; 1 some rows do; 2 usage, mapping or input
error, nothing was sent; 3 stopped early, resumable; 4 checkpoint locked, missing
or damaged; 5 rows in doubt, a person has to look; 130 interrupted, resumable.`,
		Reader: p.In, Writer: p.Out, ErrWriter: p.Err,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiet", Usage: "say nothing while all goes well"},
			&cli.BoolFlag{Name: "no-progress", Usage: "no progress bar and no progress lines"},
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "`LEVEL`: debug, info, warn or error"},
			&cli.StringFlag{Name: "log-format", Value: "text", Usage: "`FORMAT`: text or json"},
		},
		Commands:                  commands,
		Action:                    func(c *cli.Context) error { return cli.ShowAppHelp(c) },
		ExitErrHandler:            func(*cli.Context, error) {}, // the table in errors.go decides
		OnUsageError:              usageError,
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
	}
	inherit(commands, app.Flags)
	return app
}

// terminal reports whether f is one that a person looks at.
func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// width is how many columns f shows: 80 where it is no terminal.
func width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// logger writes to standard error as --log-level and --log-format say.
func (p *program) logger(c *cli.Context) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return nil, usage("--log-level: no such level", "use debug, info, warn or error")
	}
	o := &slog.HandlerOptions{Level: level}
	switch c.String("log-format") {
	case "text":
		return slog.New(slog.NewTextHandler(&p.log, o)), nil
	case "json":
		return p.attributed(slog.New(slog.NewJSONHandler(escaping{&p.log}, o))), nil
	}
	return nil, usage("--log-format: no such format", "use text or json")
}

// say is where announcements for people go: standard error, or nowhere with --quiet.
func (p *program) say(c *cli.Context) io.Writer {
	if c.Bool("quiet") {
		return io.Discard
	}
	return p.Err
}
