package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/config"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
)

func (p *program) login(c *cli.Context) error {
	set := p.settings
	switch {
	case set.Sandbox:
		return exit.Usage("the sandbox needs no login", "try login with leadferry sandbox, in another shell")
	case c.String("email") == "":
		return exit.Usage("no --email given", "the address of the service account, as in the management console")
	case set.Config.Value == "":
		return exit.Usage("your configuration directory is not known: the client has no place",
			"name a file with --config")
	}
	if err := set.Require("base-url"); err != nil {
		return err
	}
	if !p.hold.Take() {
		return exit.ErrInterrupted
	}
	if set.Makes {
		if err := config.AddProfile(set.Config.Value, set.Profile.Value, set.ForProfile(), false); err != nil {
			return err
		}
	}
	base := set.Get("base-url") // login needs no more; New checks the rest, which the profile will hold
	api := leadapi.Config{
		BaseURL: base, LeadsURL: cmp.Or(set.Get("leads-url"), base), TrunkID: cmp.Or(set.Get("trunk-id"), "any"),
		Timeout: flags.Time(c, "timeout"), UserAgent: userAgent, Observe: trace(p.logger()),
	}
	if err := set.Reach(&api); err != nil {
		return err
	}
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := p.newClient(c, client); err != nil {
		return err
	}
	if set.Makes {
		if err := config.AddProfile(set.Config.Value, set.Profile.Value, set.ForProfile(), true); err != nil {
			return exit.Stopped("the client is stored, but not its profile: "+err.Error(), "")
		}
		fmt.Fprintf(&p.out, "made       profile %s in %s\n", set.Profile.Value, spelling.Escape(set.Config.Value))
	}
	t := set.Target()
	p.warn(leadapi.MixedRegions(t.BaseURL, t.LeadsURL))
	p.say("leadferry config check --profile " + set.Profile.Value + " tries it")
	return nil
}

// newClient makes a client and stores it: nobody else has its secret. A second client for a profile needs --new-client.
func (p *program) newClient(c *cli.Context, client *leadapi.Client) error {
	set := p.settings
	place, err := config.Reserve(set.CredentialsPath())
	if err != nil {
		return err
	}
	defer place.Close() // what was kept is already durable
	if has, err := set.Account(c.Context, false); !c.Bool("new-client") && (err != nil || has.ID.Value != "") {
		const hint = "clients cannot be deleted here; add --new-client to make another one"
		return cmp.Or(err, exit.Usage(fmt.Sprintf("profile %s has a client already: %s, %s", set.Profile.Value,
			spelling.Escape(has.ID.Value), has.ID.From), hint))
	}
	made, err := p.makeClient(c, client)
	if err != nil {
		return err
	}
	left, err := config.Credentials{
		BaseURL: set.Target().BaseURL, ClientID: made.ID, ClientSecret: made.Secret,
		CreatedAt: time.Now().UTC().Truncate(time.Second),
	}.Keep(set.CredentialsPath())
	if err != nil {
		where, hint := "it could not be stored and its secret is lost", "it stays on the service unused; correct the "+
			"place and make another with --new-client"
		if left != "" {
			where, hint = "it is in "+left, "keep that file: it alone holds the secret; move it to "+
				set.CredentialsPath()
		}
		return exit.Stopped(fmt.Sprintf("client %s was made: %s: %v", spelling.Escape(made.ID), where, err), hint)
	}
	fmt.Fprintf(&p.out, "client ID  %s\nprofile    %s\nstored in  %s\n", spelling.Escape(made.ID), set.Profile.Value,
		set.CredentialsPath())
	return nil
}

// makeClient sends the two requests of a login. It does not repeat the second one, which may have made a client.
func (p *program) makeClient(c *cli.Context, client *leadapi.Client) (*leadapi.OAuthClient, error) {
	email := c.String("email")
	at := p.settings.Target().BaseURL
	password, err := p.password(c, fmt.Sprintf("Password of %s at %s: ", spelling.Escape(email), at))
	if err != nil {
		return nil, err
	}
	token, err := client.Login(c.Context, email, password)
	select {
	case <-p.interrupt:
		return nil, exit.Interrupted("interrupted: no client was made")
	default:
	}
	if err != nil {
		fault := new(leadapi.Error)
		errors.As(err, &fault)
		text, hint := "the login failed: ", cmp.Or(fault.Hint, "try again")
		if fault.Status/100 == 4 {
			text, hint = "the service refused the login: ",
				"check the e-mail address, the password, and that the account belongs to this base URL"
		}
		return nil, exit.Stopped(text+err.Error()+"; no client was made", hint)
	}
	made, err := client.CreateOAuthClient(c.Context, token)
	if err == nil {
		return made, nil
	}
	text, hint := "a client may have been made, but its secret did not arrive: "+err.Error(),
		"not tried again: clients cannot be deleted here; look for it in the management console, then run login again"
	if fault, ok := errors.AsType[*leadapi.Error](err); ok && fault.Applied == leadapi.No {
		text = "no client was made: " + fault.Error()
		hint = cmp.Or(fault.Hint, "check the account's memberships, and try again")
	}
	if c.Context.Err() != nil {
		return nil, exit.Interrupted(text)
	}
	return nil, exit.Stopped(text, hint)
}

// maxPassword is the most bytes of a password.
const maxPassword = 4096

// password reads the password from the environment, a terminal without echo, or standard input. No error holds it.
func (p *program) password(c *cli.Context, prompt string) (text string, err error) {
	if text = os.Getenv("LEADFERRY_PASSWORD"); text == "" {
		text, err = p.person(c).Secret(prompt, maxPassword)
	}
	const hint = "type it, set LEADFERRY_PASSWORD, or pipe it alone into standard input"
	switch {
	case errors.Is(err, exit.ErrInterrupted):
		return "", err
	case err != nil:
		return "", exit.Usage(fmt.Sprintf("the password cannot be read: %v", err), hint)
	case text == "" || len(text) > maxPassword || !utf8.ValidString(text):
		return "", exit.Usage("no password given, or one that is too long or no text in UTF-8", hint)
	}
	return text, nil
}

func (p *program) configShow(c *cli.Context) error {
	t := p.settings.Target()
	rows := p.settings.Shown()
	for _, f := range c.Command.Flags {
		if len(f.(cli.DocGenerationFlag).GetEnvVars()) == 0 || f.(cli.CategorizableFlag).GetCategory() == connecting {
			continue
		}
		s := p.line.Given(f.Names()[0])
		if s.Name == "checkpoint" && s.Value == "" && t.LeadsURL != "" && t.TrunkID != "" {
			if path, err := ledger.Default(t); err == nil {
				s.Value, s.From = path, "default of the target"
			}
		}
		rows = append(rows, s)
	}
	p.warn(leadapi.MixedRegions(t.BaseURL, t.LeadsURL))
	w := tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', 0)
	for _, s := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, spelling.Escape(cmp.Or(s.Value, "not set")), spelling.Escape(s.From))
	}
	return w.Flush()
}

func (p *program) configCheck(c *cli.Context) error {
	if c.Bool("sandbox") {
		return exit.Usage("the sandbox is in this process, so there is no way to it", "leave --sandbox out")
	}
	set := p.settings
	api, err := p.service(c, false) // false: asks for a new token, and ignores those that runs keep
	if err != nil {
		return err
	}
	a, err := set.Account(c.Context, true)
	if err != nil {
		return err
	}
	if a.ID.Value != "" && a.Secret.Value != "" {
		api.ClientID, api.ClientSecret = a.ID.Value, a.Secret.Value
	}
	api.Timeout, api.UserAgent, api.Observe = flags.Time(c, "timeout"), userAgent, trace(p.logger())
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	p.warn(leadapi.MixedRegions(api.BaseURL, api.LeadsURL))
	if all, broken := p.probe(c.Context, client, &api); broken > 0 {
		return exit.Stopped(fmt.Sprintf("the service cannot be used like this: %d of %d steps failed", broken, all),
			"leadferry config show says where each setting comes from; --log-level debug logs each call")
	}
	return nil
}

// probe prints each step of the way to the service. It returns how many steps there are, and how many do not work.
func (p *program) probe(ctx context.Context, client *leadapi.Client, api *leadapi.Config) (steps, broken int) {
	shown := ""
	client.Probe(ctx, func(s leadapi.Step) {
		application, address, flag := "general API", api.BaseURL, "base-url"
		if s.LeadCreation {
			application, address, flag = "lead creation", api.LeadsURL, "leads-url"
		}
		if shown != application {
			shown = application
			fmt.Fprintf(&p.out, "%s  %s\n", application, spelling.Escape(leadapi.Canonical(address)))
		}
		word := "ok"
		if steps++; !s.Works {
			word = "FAILED"
			broken++
		}
		if s.Name == "proxy" {
			way, _ := p.settings.Route(flag) // no error: Reach tried it before
			s.Text += " (" + way.From + ")"
		}
		fmt.Fprintf(&p.out, "  %-6s  %-7s  %s (%s)\n", word, s.Name, spelling.Escape(s.Text),
			s.Took.Round(100*time.Microsecond))
		if s.Hint != "" {
			fmt.Fprintf(&p.out, "%19shint: %s\n", "", spelling.Escape(s.Hint))
		}
	})
	return steps, broken
}
