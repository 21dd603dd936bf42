package cli

import (
	"fmt"
	"net"
	"strconv"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	runpage "leadferry/importer/report/page"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/page"
)

// anyPort is where the live page stands that no address was given for.
const anyPort = "127.0.0.1:0"

// webFlag asks for the run's page while it goes on.
func webFlag() cli.Flag {
	return &cli.GenericFlag{
		Name: "web", Value: new(flags.OptionalWord), DefaultText: "no page", Category: files, EnvVars: []string{flags.Variable("web")},
		Usage:  "show the run's page live at an address of this machine alone (`[=ADDRESS]`, such as 127.0.0.1:8080; else a free port)",
		Action: func(c *cli.Context, _ any) error { return flags.Mislaid(c, "web", isHostPort) },
	}
}

// isHostPort reports whether a word is an address such as 127.0.0.1:8080.
func isHostPort(word string) bool {
	_, port, err := net.SplitHostPort(word)
	_, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil
}

// web is the live page of a run; nil where none is wanted.
type web struct{ page *runpage.Live }

// openWeb begins to serve the page, before anything is sent.
func openWeb(c *cli.Context, o *importer.Options) (*web, error) {
	addr := webAddress(c)
	if addr == "" {
		return nil, nil
	}
	page, err := runpage.Serve(addr, &report.Summary{Outcome: report.Running, RunID: o.RunID, Command: o.Command, Version: Version, DryRun: o.DryRun || o.Command == "validate"})
	if err != nil {
		return nil, noWeb(err)
	}
	return &web{page}, nil
}

// webAddress is where a page is to be served; "" where none is wanted.
func webAddress(c *cli.Context) string {
	addr := c.Generic("web").(*flags.OptionalWord).String()
	if wanted, err := strconv.ParseBool(addr); err == nil {
		addr = map[bool]string{true: anyPort}[wanted]
	}
	return addr
}

// noWeb says why a page cannot be served.
func noWeb(err error) error {
	return exit.Usage(fmt.Sprintf("--web cannot be served: %v", err), "it takes an address of this machine alone with a free port, for example --web=127.0.0.1:8080; without one it finds a port itself")
}

// serveWeb serves the pages of a site where --web asks for them; nil where it does not.
func serveWeb(c *cli.Context, site page.Site) (*page.Server, error) {
	addr := webAddress(c)
	if addr == "" {
		return nil, nil
	}
	server, err := page.Serve(addr, site)
	if err != nil {
		return nil, noWeb(err)
	}
	return server, nil
}

// announce tells the person where the page is, who asked for it: with --quiet, too.
func (w *web) announce(v *screen) {
	switch {
	case w == nil:
	case v.json:
		v.log.Info("page", "url", w.page.URL())
	default:
		fmt.Fprintf(&v.program.log, "page: %s\n", w.page.URL())
	}
}

// end shows how the run ended, or why it did not begin.
func (w *web) end(p *program, refused error) error {
	if w == nil {
		return nil
	}
	s := p.ending.summary.Load()
	if s == nil && refused != nil {
		why := p.reason(refused)
		e, told := why.Joined(), w.page.Shown()
		s = &report.Summary{Outcome: "stopped", StopReason: e.Text, Hint: e.Hint, RunID: told.RunID, Command: told.Command, Version: Version}
	}
	return w.page.End(s)
}
