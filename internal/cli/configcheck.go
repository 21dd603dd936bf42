package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer/report"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

func (p *program) configCheckCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "whether address, proxy, TLS and sign-in work, step by step",
		Description: `Goes the way of a run to both applications of the service, and says of each step
whether it works: the name is looked up, the connection made, over the proxy where there
is one, the certificate looked at. Then it has the general API give the OAuth client a
token, and lead creation answer a GET without token. It can make nothing.

Example:

   leadferry config check --profile eu

Exit codes: 0 everything works; 2 usage error, or a setting that cannot be used;
3 a step does not work; 130 interrupted.`,
		Flags: append(connectionFlags(),
			timeFlag(running, "timeout", 10*time.Second, "for one answer: `DURATION`; the way to it takes 10s at most"),
			boolFlag("", "json", "a JSON array of objects with application, step, works, text, hint and took_ms")),
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
	api.Timeout, api.UserAgent, api.Trace = c.Duration("timeout"), "leadferry/"+Version, trace(log)
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	if text := mixedRegions(p.target()); text != "" && !c.Bool("sandbox") {
		fmt.Fprintf(p.say(c), "warning: %s\n", text)
	}
	ways, _ := p.settings.Load().routes() // service has tried them
	all, application, broken := []checked{}, "", 0
	client.Probe(c.Context, func(s leadapi.Step) {
		one := checked{"general API", s.Name, s.Works, report.Escape(s.Text), report.Escape(s.Hint), float64(s.Took.Microseconds()) / 1000}
		address, way := api.BaseURL, ways["base-url"]
		if s.LeadCreation {
			one.Application, address, way = "lead creation", api.LeadsURL, ways["leads-url"]
		}
		if s.Name == "proxy" {
			one.Text += " (" + report.Escape(way.from) + ")"
		}
		if !s.Works {
			broken++
		}
		all = append(all, one)
		if c.Bool("json") {
			return
		}
		if one.Application != application {
			application = one.Application
			fmt.Fprintf(p.Out, "%s  %s\n", application, report.Escape(leadapi.Canonical(address)))
		}
		p.printStep(one, s.Took)
	})
	if c.Bool("json") {
		enc := json.NewEncoder(p.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(all)
	}
	if broken > 0 && err == nil {
		err = stopped(fmt.Sprintf("the service cannot be used like this: %d of %d steps failed", broken, len(all)),
			"leadferry config show tells where each setting comes from; --log-level debug tells of each call")
	}
	return err
}

func (p *program) printStep(s checked, took time.Duration) {
	word := "ok"
	if !s.Works {
		word = "FAILED"
	}
	fmt.Fprintf(p.Out, "  %-6s  %-7s  %s", word, s.Step, s.Text)
	if took > 0 {
		fmt.Fprintf(p.Out, " (%s)", took.Round(100*time.Microsecond))
	}
	fmt.Fprintln(p.Out)
	if s.Hint != "" {
		fmt.Fprintf(p.Out, "%19shint: %s\n", "", s.Hint)
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
	a, err := p.settings.Load().account(func(command string) (string, error) { return secretOf(c.Context, command) })
	if err == nil && a.id.Value != "" && a.secret.Value != "" {
		api.ClientID, api.ClientSecret = a.id.Value, a.secret.Value
	}
	return api, stop, err
}
