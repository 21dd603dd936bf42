package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/inputs"
	"leadferry/internal/config"
	"leadferry/leadapi"
	"leadferry/mapping"
)

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "create leads, then link ExternalID; resumable", ArgsUsage: "FILE...",
		Flags: slices.Concat(inputFlags(), connectionFlags(), checkpointFlags(), fleetFlags(), sendFlags(), []cli.Flag{
			running.Choice("changed", "count, update or ignore rows whose lead exists and whose data changed: %",
				"report", "update", "ignore"),
		}, outputFlags()),
		Action: func(c *cli.Context) error {
			o, err := p.sendOptions(c)
			if err != nil {
				return err
			}
			o.Changed = importer.ChangedRows(c.String("changed"))
			return hintIfMissing(p.send(c, o, importer.Import), func(path string) string {
				return "check the path and the target: each run prints that of its checkpoint. If it is lost: " +
					checkpoint.AdoptRuns(path, o.Flags) + " takes over the leads that run folders name. " +
					"If nothing was ever sent: import without --require-checkpoint begins a new one"
			})
		},
	}
}

// runOptions are those of every run.
func (p *program) runOptions(c *cli.Context) importer.Options {
	return importer.Options{
		Task: importer.Task{
			Command: c.Command.Name, Version: Version, RunID: p.ending.run, Log: p.logger(), Limit: c.Int("limit"),
		},
		Sending:  importer.Sending{Rate: c.Float64("rate")},
		Checking: importer.Checking{Show: c.Int("show")},
		Keeping:  importer.Keeping{OwnColumns: c.String("results-columns") == "all"},
		Hooks:    importer.Hooks{Interrupt: p.interrupt},
	}
}

// sendOptions are those of a run that sends, without what import and sync have alone.
func (p *program) sendOptions(c *cli.Context) (o importer.Options, err error) {
	o = p.runOptions(c)
	if o.Limits, err = limits(c); err == nil {
		o.ResendOn, err = resendOn(c.String("resend-on"))
	}
	o.Concurrency, o.Retries = c.Int("concurrency"), c.Int("retries")
	o.MaxWait, o.MaxDuration = c.Duration("max-wait"), c.Duration("max-duration")
	o.ResendInDoubt, o.RetryRejected = c.String("in-doubt") == "resend", c.Bool("retry-rejected")
	o.OnlyNew = c.String("attention") == "new"
	o.ReadByExternalID = c.String("read") == "external-id"
	o.CreateAlikes, o.NewKey = c.String("look-alikes") == "create", c.String("new-key")
	if o.DryRun = c.Bool("dry-run"); err == nil && c.IsSet("show") && !o.DryRun {
		err = exit.Usage("--show works with --dry-run only", "add --dry-run, or leave --show out")
	}
	o.Files = filesOf(c, o.RunID, o.DryRun)
	return o, err
}

// openInputs opens all that a run reads. It refuses outputs that would take the place of any of it, and files that are
// not what the flags ask for.
func (p *program) openInputs(c *cli.Context, o *importer.Options) (*inputs.Files, error) {
	in, err := inputs.Open(c, inputs.From{
		Stdin: p.In, Table: func(path string) { p.tables = append(p.tables, path) },
		Mapped: func(path string, m *mapping.Mapping) error { return p.refuseTarget(c, path, m.Target()) },
	}, o)
	if err != nil {
		return nil, err
	}
	err = p.keepOutputs(c, o.Files, in.Names)
	if err == nil {
		err = in.Fresh(c.Duration("max-age"))
	}
	least := c.Int("min-rows")
	if o.Command == "sync" && !c.IsSet("min-rows") { // an export that went wrong must not pass for a quiet night
		least = 1
	}
	if err == nil {
		err = in.Enough(least)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// refuseTarget refuses a run to another target than the one that the mapping names.
func (p *program) refuseTarget(c *cli.Context, path string, named mapping.Target) error {
	t := p.target().Canonical()
	want := checkpoint.Target{
		BaseURL: t.BaseURL, LeadsURL: leadapi.Canonical(named.LeadsURL),
		TrunkID: named.TrunkID,
	}.Canonical()
	differs := func(want, have string) bool { return want != "" && have != "" && want != have }
	if c.Bool("sandbox") || !differs(want.TrunkID, t.TrunkID) &&
		!differs(want.LeadsURL, leadapi.Canonical(t.LeadsURL)) {
		return nil
	}
	return exit.Usage(fmt.Sprintf("%s:%d: the mapping is for another target: it names %s, and this run goes to %s; "+
		"nothing was read",
		path, named.Line, strings.Trim(want.LeadsURL+"/"+want.TrunkID, "/"), t.LeadsURL+"/"+t.TrunkID),
		"name the profile or the addresses of the mapping's target, or use the mapping of this one")
}

// send carries out a run that sends.
func (p *program) send(c *cli.Context, o importer.Options, run runner) (err error) {
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := joinFleet(c, in, &o); err != nil {
		return err
	}
	closeService, err := p.connect(c, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeService()) }()
	return p.conduct(c, in, o, run)
}

// connect finds the checkpoint and the service that it belongs to. With --sandbox it starts the imitation, unless
// nothing will be sent.
func (p *program) connect(c *cli.Context, o *importer.Options) (closeService func() error, err error) {
	closeService = func() error { return nil }
	imitation := c.Bool("sandbox")
	if !imitation { // first: where addresses are missing, it names the profiles
		err = p.addressed()
	}
	if err == nil {
		o.Checkpoint, err = p.ledger(c).Path()
	}
	switch {
	case err != nil:
	case !imitation:
		o.Client, err = p.service(c, !o.DryRun && !o.Reconciling.None)
	case !o.DryRun:
		o.Client, closeService, err = openSandbox(c, o.Checkpoint)
	}
	if err != nil {
		return nil, err
	}
	o.Flags = p.wayWords(imitation)
	o.Target = p.target()
	m := p.ledger(c)
	o.Require, o.Open = c.Bool("require-checkpoint"), m.Opener(o)
	o.Witnesses, o.Answer, o.Machine = m.Witnesses(), c.String("new-checkpoint"), m.Machine
	o.Client.Observe, o.Client.UserAgent = trace(o.Log), userAgent
	o.Client.SingleUse = func(host string) {
		o.Log.Warn(host + " dropped a reused connection: from now on every create opens a new one (slower, safer; nothing to do)")
	}
	o.Client.RequestIDHeader = p.settings.Load().Get(connection.RequestIDHeader)
	o.Client.Concurrency, o.Client.Timeout = o.Concurrency, c.Duration("timeout")
	return closeService, nil
}

// wayWords are the flags of the command line that lead to the service, which a command that is pasted has to repeat;
// not those that may hold a password.
func (p *program) wayWords(imitation bool) (words []string) {
	for _, f := range connectionFlags() {
		name := f.Names()[0]
		value, typed := p.line.Typed(name)
		if typed && f.(cli.DocGenerationFlag).TakesValue() &&
			!slices.Contains([]string{"proxy", "client-secret-command", "directory"}, name) {
			words = append(words, "--"+name+"="+value)
		}
	}
	if s := p.line.Given("directory"); imitation && s.Value != "" {
		words = append(words, "--directory="+s.Value)
	}
	return words
}

// service is the real service and the account for it; without the account, unless anything is sent.
func (p *program) service(c *cli.Context, sends bool) (leadapi.Config, error) {
	set := p.settings.Load()
	api := leadapi.Config{BaseURL: set.Get("base-url"), LeadsURL: set.Get("leads-url"), TrunkID: set.Get("trunk-id")}
	if c.Bool("sandbox-reset") {
		return api, exit.Usage("--sandbox-reset works with --sandbox only", "a real service's leads cannot be deleted")
	}
	if _, typed := p.line.Typed("directory"); typed {
		return api, exit.Usage("--directory works with --sandbox only", "a real service knows its organizations itself")
	}
	if err := p.addressed(); err != nil {
		return api, err
	}
	if err := set.Reach(&api); err != nil || !sends {
		return api, err
	}
	a, err := p.account(c)
	switch {
	case err != nil:
		return api, err
	case a.ID.Value == "":
		return api, exit.Usage("no --client-id given",
			"leadferry login makes a client, or set LEADFERRY_CLIENT_ID and its secret")
	case a.Secret.Value == "":
		return api, exit.Usage("no client secret given",
			"set LEADFERRY_CLIENT_SECRET, --client-secret-file or --client-secret-command")
	}
	api.ClientID, api.ClientSecret = a.ID.Value, a.Secret.Value
	api.Tokens, err = tokenStore(set.Target().BaseURL, a.ID.Value, a.Secret.Value)
	return api, err
}

// account is the OAuth client of the settings, with its secret.
func (p *program) account(c *cli.Context) (connection.Account, error) {
	ask := func(command string) (string, error) { return external.Secret(c.Context, command) }
	return p.settings.Load().Account(ask)
}

// addressed says which addresses of the service are missing.
func (p *program) addressed() error {
	set := p.settings.Load()
	if missing := set.Missing("base-url", "leads-url", "trunk-id"); missing != "" {
		return exit.Usage(missing, set.ConfigHint())
	}
	return nil
}

// tokenStore keeps the client's token in the state directory. Without a place for it each run signs in anew.
func tokenStore(baseURL, clientID, secret string) (leadapi.TokenStore, error) {
	dir, err := config.StateDir()
	if err != nil {
		return nil, nil
	}
	f, err := config.OpenTokens(filepath.Join(dir, "tokens"), baseURL, clientID, secret)
	if err != nil {
		return nil, err // not a nil *TokenFile, which would be a store
	}
	return f, nil
}

// hintIfMissing gives the error of a checkpoint that is not there a hint, where it has none.
func hintIfMissing(err error, hint func(path string) string) error {
	missing := (*checkpoint.OpenError)(nil)
	if errors.Is(err, checkpoint.ErrMissing) && errors.As(err, &missing) && missing.Hint == "" {
		missing.Hint = hint(missing.Path)
	}
	return err
}

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "dry run: read, map and check every row; send nothing", ArgsUsage: "FILE...",
		Flags: slices.Concat(inputFlags(), outputFlags(), []cli.Flag{
			running.Count("show", 0, "print the first `N` requests that would be sent"),
			rateFlag("say how long the requests take at `N` a second"),
			running.Bool("strict", "also fail on repeated keys, unused columns, words without an entry, and values "+
				"left out"),
			running.Text("tolerate", "exit with 0 if at most `N|P%` rows are bad"),
		}),
		Action: p.validate,
	}
}

func (p *program) validate(c *cli.Context) (err error) {
	o := p.runOptions(c)
	// The import that follows repeats how the file is read.
	for _, name := range []string{"format", "delimiter", "encoding", "sheet", "list", "limit"} {
		if c.IsSet(name) {
			o.Flags = append(o.Flags, "--"+name+"="+fmt.Sprint(c.Value(name)))
		}
	}
	o.Files, o.Strict = filesOf(c, o.RunID, true), c.Bool("strict")
	if c.IsSet("tolerate") {
		if o.Tolerate, err = share(c, "tolerate"); err != nil {
			return err
		}
	}
	in, err := p.openInputs(c, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	return p.conduct(c, in, o, importer.Validate)
}
