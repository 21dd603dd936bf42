package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

func (p *program) configShow(c *cli.Context) error {
	t := p.target()
	rows := p.settings.Load().Shown()
	for _, f := range pathFlags() {
		s := p.line.Given(f.Names()[0])
		if s.Name == "checkpoint" && s.Value == "" && t.LeadsURL != "" && t.TrunkID != "" {
			if path, err := ledger.Default(t); err == nil {
				s.Value, s.From = path, "default of the target"
			}
		}
		rows = append(rows, s)
	}
	p.warn(connection.MixedRegions(t))
	if t.LeadsURL != "" && t.TrunkID != "" {
		line := fmt.Sprintf("target: {trunk_id: %s, leads_url: %q}", t.TrunkID, t.LeadsURL)
		rows = append(rows, flags.Setting{
			Name: "mapping", Value: line,
			From: "write it into mappings that are for this target alone",
		})
	}
	if c.Bool("json") {
		return p.printJSON(rows)
	}
	w, unset := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', 0), 0
	for _, s := range rows {
		if s.Value == "" && !c.Bool("all") {
			unset++
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, report.Escape(cmp.Or(s.Value, "not set")), report.Escape(s.From))
	}
	if err := w.Flush(); err != nil || unset == 0 {
		return err
	}
	return p.print("\n" + english.Plural(unset, "setting is", "settings are") + " not set: --all lists them.\n")
}

// printJSON writes what is read by a program to standard output.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(&p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
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
	api.Timeout, api.UserAgent, api.Observe = c.Duration("timeout"), userAgent, trace(p.logger())
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	p.warn(connection.MixedRegions(p.target()))
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
	all, application := []checked{}, ""
	client.Probe(c.Context, func(s leadapi.Step) {
		took := float64(s.Took.Microseconds()) / 1000
		one := checked{"general API", s.Name, s.Works, report.Escape(s.Text), report.Escape(s.Hint), took}
		address, way := api.BaseURL, ways["base-url"]
		if s.LeadCreation {
			one.Application, address, way = "lead creation", api.LeadsURL, ways["leads-url"]
		}
		if s.Name == "proxy" {
			one.Text += " (" + report.Escape(way.From) + ")"
		}
		word := "ok"
		if !s.Works {
			word = "FAILED"
			broken++
		}
		if all = append(all, one); c.Bool("json") {
			return
		}
		if one.Application != application {
			application = one.Application
			fmt.Fprintf(&p.out, "%s  %s\n", application, report.Escape(leadapi.Canonical(address)))
		}
		fmt.Fprintf(&p.out, "  %-6s  %-7s  %s (%s)\n", word, s.Name, one.Text, s.Took.Round(100*time.Microsecond))
		if one.Hint != "" {
			fmt.Fprintf(&p.out, "%19shint: %s\n", "", one.Hint)
		}
	})
	if c.Bool("json") {
		err = p.printJSON(all)
	}
	return len(all), broken, err
}

// checkedService is the service that the settings name, with the account where one is set, and without the tokens that
// runs keep: a new one is asked for. With --sandbox it is an imitation that keeps nothing.
func (p *program) checkedService(c *cli.Context) (api leadapi.Config, stop func() error, err error) {
	if c.Bool("sandbox") {
		directory, err := directoryOf(c)
		if err != nil {
			return api, nil, err
		}
		return serveSandbox(sandbox.Options{Directory: directory})
	}
	if api, err = p.service(c, false); err != nil {
		return api, nil, err
	}
	a, err := p.settings.Load().Account(c.Context, true)
	if err == nil && a.ID.Value != "" && a.Secret.Value != "" {
		api.ClientID, api.ClientSecret = a.ID.Value, a.Secret.Value
	}
	return api, func() error { return nil }, err
}
