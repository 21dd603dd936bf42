package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

func (p *program) configCommand() *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "show every effective setting and where it comes from, or check whether they work",
		Subcommands: []*cli.Command{p.configShowCommand(), p.configCheckCommand()},
		Action:      p.help,
	}
}

func (p *program) configShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "each setting, its value and its origin; secrets masked",
		Flags: append(slices.Concat(connectionFlags(), pathFlags()),
			flags.Bool("", "json", "print a JSON array of objects with name, value and from")),
		Action: p.configShow,
	}
}

func (p *program) configShow(c *cli.Context) error {
	rows := p.settings.Load().Shown()
	for _, f := range pathFlags() {
		if s := p.line.Given(f.Names()[0]); s.Name != "checkpoint" || s.Value != "" {
			rows = append(rows, s)
		}
	}
	t := p.target()
	if p.line.Given("checkpoint").Value == "" {
		rows = append(rows, checkpointSetting(t))
	}
	if text := connection.MixedRegions(t); text != "" && t.LeadsURL != "" && t.BaseURL != "" {
		p.warn(text)
	}
	if c.Bool("json") {
		return p.printJSON(rows)
	}
	w := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', 0)
	for _, s := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, report.Escape(cmp.Or(s.Value, "not set")), report.Escape(s.From))
	}
	return w.Flush()
}

// printJSON writes what is read by a program to standard output.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(&p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// checkpointSetting is the checkpoint that a run would use by itself.
func checkpointSetting(t checkpoint.Target) flags.Setting {
	s := flags.Setting{Name: "checkpoint"}
	if t.LeadsURL == "" || t.TrunkID == "" {
		return s
	}
	if path, err := ledger.Default(t); err == nil {
		s.Value, s.From = path, "default of the target"
	}
	return s
}

func (p *program) configCheckCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "whether address, proxy, TLS and sign-in work, step by step",
		Flags: append(connectionFlags(),
			flags.Time(running, "timeout", 10*time.Second, "wait up to `DURATION` for an answer, and up to 10s for a connection"),
			flags.Bool("", "json", "print a JSON array of objects with application, step, works, text, hint and took_ms")),
		Action: p.configCheck,
	}
}

// checked is a step of leadapi.Probe as --json writes it.
type checked struct {
	Application string  `json:"application"`
	Step        string  `json:"step"`
	Works       bool    `json:"works"`
	Text        string  `json:"text"`
	Hint        string  `json:"hint,omitempty"`
	TookMs      float64 `json:"took_ms"`
}

func (p *program) configCheck(c *cli.Context) (err error) {
	api, stop, err := p.checkedService(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	log, err := p.logger(c)
	if err != nil {
		return err
	}
	api.Timeout, api.UserAgent, api.Observe = c.Duration("timeout"), "leadferry/"+Version, trace(log)
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	if text := connection.MixedRegions(p.target()); text != "" && !c.Bool("sandbox") {
		p.warn(text)
	}
	all, broken, err := p.probe(c, client, &api)
	if broken > 0 && err == nil {
		err = exit.Stopped(fmt.Sprintf("the service cannot be used like this: %d of %d steps failed", broken, all),
			"leadferry config show tells where each setting comes from; --log-level debug tells of each call")
	}
	return err
}

// probe tells of each step of the way to the service, and how many there were and do not work.
func (p *program) probe(c *cli.Context, client *leadapi.Client, api *leadapi.Config) (steps, broken int, err error) {
	ways, _ := p.settings.Load().Routes() // service has tried them
	all := []checked{}
	client.Probe(c.Context, func(s leadapi.Step) {
		one := checked{"general API", s.Name, s.Works, report.Escape(s.Text), report.Escape(s.Hint), float64(s.Took.Microseconds()) / 1000}
		address, way := api.BaseURL, ways["base-url"]
		if s.LeadCreation {
			one.Application, address, way = "lead creation", api.LeadsURL, ways["leads-url"]
		}
		if s.Name == "proxy" {
			one.Text += " (" + report.Escape(way.From) + ")"
		}
		if !s.Works {
			broken++
		}
		if first := len(all) == 0 || all[len(all)-1].Application != one.Application; first && !c.Bool("json") {
			fmt.Fprintf(&p.out, "%s  %s\n", one.Application, report.Escape(leadapi.Canonical(address)))
		}
		if all = append(all, one); !c.Bool("json") {
			p.printStep(one, s.Took)
		}
	})
	if c.Bool("json") {
		err = p.printJSON(all)
	}
	return len(all), broken, err
}

func (p *program) printStep(s checked, took time.Duration) {
	word := "ok"
	if !s.Works {
		word = "FAILED"
	}
	fmt.Fprintf(&p.out, "  %-6s  %-7s  %s", word, s.Step, s.Text)
	if took > 0 {
		fmt.Fprintf(&p.out, " (%s)", took.Round(100*time.Microsecond))
	}
	fmt.Fprintln(&p.out)
	if s.Hint != "" {
		fmt.Fprintf(&p.out, "%19shint: %s\n", "", s.Hint)
	}
}

// checkedService is the service that the settings name, with the account where one is set, and without the tokens that
// runs keep: a new one is asked for. With --sandbox it is an imitation that keeps nothing.
func (p *program) checkedService(c *cli.Context) (api leadapi.Config, stop func() error, err error) {
	stop = func() error { return nil }
	if c.Bool("sandbox") {
		directory, err := directoryOf(c)
		if err != nil {
			return api, stop, err
		}
		return serveSandbox(sandbox.Options{Directory: directory})
	}
	if api, err = p.service(c, false); err != nil {
		return api, stop, err
	}
	a, err := p.settings.Load().Account(func(command string) (string, error) { return external.Secret(c.Context, command) })
	if err == nil && a.ID.Value != "" && a.Secret.Value != "" {
		api.ClientID, api.ClientSecret = a.ID.Value, a.Secret.Value
	}
	return api, stop, err
}
