package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/config"
	"leadferry/leadapi"
	"leadferry/mapping"
)

func (p *program) loginCommand() *cli.Command {
	return &cli.Command{
		Name: "login", Usage: "exchange e-mail and password for an OAuth client, stored for later runs",
		Description: `Signs a service account in once, makes an OAuth client for it and stores the
client's ID and secret beside the configuration file, readable by you alone. Later
runs with the same profile sign in by themselves. A profile that is not there yet is
made, with the configuration file where that is missing, from the addresses given; what
stands in the file stays as it is. The password is asked for without
echo, or comes from LEADFERRY_PASSWORD or the first line of standard input.

Clients cannot be deleted here, so one is made once a profile; and a request that
may have made one is never repeated.

Example:

   leadferry login --email importer@example.com --profile eu \
      --base-url https://api.eu.example.com --leads-url https://leads.eu.example.com --trunk-id 3f2a...
   leadferry import --profile eu -m leads.yaml leads.csv

Exit codes: 0 the client is stored and its sign-in works; 2 usage or configuration
error, or a place that cannot be written: nothing was sent; 3 the service refused or
could not be reached, or the client could not be stored; 130 interrupted.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "email", EnvVars: []string{"LEADFERRY_EMAIL"}, Usage: "the service account's `E-MAIL` address"},
			&cli.BoolFlag{Name: "new-client", Usage: "make another client though the profile has one; the old one stays on the service"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "for one request: `DURATION`"},
		}, connectionFlags()),
		Action: p.login,
	}
}

func (p *program) login(c *cli.Context) error {
	set := settingsOf(c)
	if err := p.mayLogIn(c, set); err != nil {
		return err
	}
	if !p.hold.take() {
		return errInterrupted
	}
	profile := set.newProfile()
	if set.makes {
		if err := profile.Check(); err != nil {
			return err
		}
	}
	base := leadapi.Canonical(set.get("base-url"))
	log, err := p.logger(c)
	if err != nil {
		return err
	}
	api := leadapi.Config{BaseURL: base, Timeout: c.Duration("timeout"), UserAgent: "leadferry/" + Version, Trace: trace(log)}
	client, err := leadapi.New(api)
	if err != nil {
		return err
	}
	defer client.Close()
	place, err := config.Reserve(set.credentialsPath())
	if err != nil {
		return err
	}
	defer place.Close() // what was kept is durable already
	// Another login may have ended since the first look.
	if err := p.onlyClient(c, set); err != nil {
		return err
	}
	ctx, release := p.untilInterrupted(c.Context)
	defer release()
	made, err := p.makeClient(c, ctx, client)
	if made == nil {
		return err
	}
	stored := config.Credentials{BaseURL: base, ClientID: made.ID, ClientSecret: made.Secret, CreatedAt: time.Now().UTC().Truncate(time.Second)}
	if err := place.Keep(stored); err != nil {
		return p.unstored(made.ID, err)
	}
	fmt.Fprintf(p.Out, "client ID  %s\nprofile    %s\nstored in  %s\n", report.Escape(made.ID), set.profile.value, set.credentialsPath())
	if set.makes {
		if err := profile.Add(); err != nil {
			return p.refuse(importer.CodeStopped, "the client is stored, but not its profile: "+err.Error(), "add it by hand:\n"+profile.Lines())
		}
		fmt.Fprintf(p.Out, "made       profile %s in %s\n", set.profile.value, report.Escape(set.config.value))
	}
	p.noteMissing(c, set)
	p.warnHidden(c, set)
	api.ClientID, api.ClientSecret = made.ID, made.Secret
	return p.proveSignIn(c, ctx, api)
}

// mayLogIn finds what speaks against a login before the password is asked for.
func (p *program) mayLogIn(c *cli.Context, set *settings) error {
	switch {
	case set.sandbox:
		return usage("the sandbox needs no login", "leave --sandbox out, or try login with a service of leadferry sandbox")
	case c.String("email") == "":
		return usage("no --email given", "the address of the service account, as in the management console")
	case set.config.value == "":
		return usage("the user's configuration directory is not known, so the client could not be stored", "name a file in the wanted folder with --config")
	}
	if missing := set.missing("base-url"); missing != "" {
		return usage(missing, "set it, LEADFERRY_BASE_URL or base_url in a profile")
	}
	if err := checkTarget(set); err != nil {
		return err
	}
	// The folder of tokens is needed once the client is made, which cannot be taken back.
	if _, err := tokenStore(set.get("base-url"), "client", "secret"); err != nil {
		return err
	}
	return p.onlyClient(c, set)
}

// checkTarget refuses what a profile could not be used with. Login itself needs the base
// URL alone.
func checkTarget(set *settings) error {
	t := leadapi.Config{BaseURL: set.get("base-url"), LeadsURL: set.get("leads-url"), TrunkID: set.get("trunk-id")}
	if t.LeadsURL != "" || t.TrunkID != "" {
		t.LeadsURL, t.TrunkID = cmp.Or(t.LeadsURL, t.BaseURL), cmp.Or(t.TrunkID, "any")
	}
	client, err := leadapi.New(t)
	if err == nil {
		client.Close()
	}
	return err
}

// newProfile is the profile with the addresses that were given.
func (s *settings) newProfile() config.NewProfile {
	p := config.NewProfile{Path: s.config.value, Name: s.profile.value, Values: map[string]string{}, Nearest: mapping.Nearest}
	for _, name := range []string{"base-url", "leads-url", "trunk-id"} {
		p.Values[profileKeys[name]] = strings.TrimSpace(s.get(name))
	}
	return p
}

// noteMissing says what an import with the profile will ask for, and warns of addresses
// that do not belong together.
func (p *program) noteMissing(c *cli.Context, set *settings) {
	if missing := set.missing("leads-url", "trunk-id"); missing != "" && set.profile.given {
		fmt.Fprintf(p.say(c), "note: %s yet: an import needs them too, as flags or as leads_url and trunk_id under %s in %s\n",
			missing, set.profile.value, report.Escape(set.config.value))
	}
	if text := mixedRegions(targetOf(c)); text != "" && set.get("leads-url") != "" {
		fmt.Fprintf(p.say(c), "warning: %s\n", text)
	}
}

// onlyClient refuses to make a second client for a profile, unless that is asked for.
func (p *program) onlyClient(c *cli.Context, set *settings) error {
	has := set.connection["client-id"]
	if has.value == "" {
		stored, err := set.stored()
		if err != nil && !c.Bool("new-client") {
			return err
		}
		if stored != nil {
			has.value, has.from = stored.ClientID, "stored by login ("+set.credentialsPath()+")"
		}
	}
	if has.value == "" || c.Bool("new-client") {
		return nil
	}
	return usage(fmt.Sprintf("profile %s has a client already: %s, %s", set.profile.value, report.Escape(has.value), has.from),
		"clients cannot be deleted here; add --new-client to make another one all the same")
}

// warnHidden says what later runs would use instead of the client that was stored.
func (p *program) warnHidden(c *cli.Context, set *settings) {
	hiding := []setting{set.connection["client-id"], set.connection["client-secret-file"], set.connection["client-secret-command"]}
	if os.Getenv(secretVariable) != "" {
		hiding = append(hiding, setting{value: "set", from: "environment " + secretVariable})
	}
	for _, s := range hiding {
		if s.value != "" {
			fmt.Fprintf(p.say(c), "warning: %s counts before the client that was stored now; take it out to use that one\n", s.from)
		}
	}
}

// makeClient makes the two requests of a login. Where it made no client, it has said
// why or returns an error.
func (p *program) makeClient(c *cli.Context, ctx context.Context, client *leadapi.Client) (*leadapi.OAuthClient, error) {
	email := c.String("email")
	password, err := p.password(ctx, fmt.Sprintf("Password of %s at %s: ", report.Escape(email), host(settingsOf(c).get("base-url"))))
	if errors.Is(err, context.Canceled) {
		return nil, p.refuse(importer.CodeInterrupted, "interrupted: nothing was sent", "")
	}
	if err != nil {
		return nil, err
	}
	token, err := client.Login(ctx, email, password)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	switch fault, ok := errors.AsType[*leadapi.Error](err); {
	case err == nil:
	case ctx.Err() != nil:
		return nil, p.refuse(importer.CodeInterrupted, "interrupted: no client was made", "")
	case ok && fault.Status >= 400 && fault.Status < 500:
		return nil, p.refuse(importer.CodeStopped, "the service refused the login: "+fault.Error(), "check the e-mail address, the password, and that the account belongs to this base URL; no client was made")
	default:
		return nil, p.refuse(importer.CodeStopped, "the login failed: "+err.Error(), "no client was made; try again")
	}
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(&p.log, "waiting for the answer: it may hold the only copy of a secret (Ctrl-C again stops at once)")
	})()
	made, err := client.CreateOAuthClient(c.Context, token)
	if err != nil {
		return nil, p.unmade(c, err)
	}
	return made, nil
}

// unmade says what became of the request for a client. It is not repeated where it
// may have made one.
func (p *program) unmade(c *cli.Context, err error) error {
	code := importer.CodeStopped
	if c.Context.Err() != nil {
		code = importer.CodeInterrupted
	}
	if fault, ok := errors.AsType[*leadapi.Error](err); ok && fault.Applied == leadapi.No {
		return p.refuse(code, "no client was made: "+fault.Error(), "check the account's memberships, and try again")
	}
	return p.refuse(code, "a client may have been made, but its secret did not arrive and is not shown again: "+err.Error(),
		"not tried again, since clients cannot be deleted here; look for it in the management console, then run login once more")
}

// unstored says where the secret of a client is that could not be stored.
func (p *program) unstored(id string, err error) error {
	text, hint := fmt.Sprintf("client %s was made: %v", report.Escape(id), err), "it stays on the service unused; mend the place and make another with --new-client"
	if kept, ok := errors.AsType[*config.KeepError](err); ok && kept.Left != "" {
		hint = "keep that file: it alone holds the secret; move it to where it belongs"
	}
	return p.refuse(importer.CodeStopped, text, hint)
}

// proveSignIn gets the new client's first token, which later runs find in its place.
func (p *program) proveSignIn(c *cli.Context, ctx context.Context, api leadapi.Config) error {
	untried := func() error {
		return p.refuse(importer.CodeInterrupted, "interrupted: the client is stored, but was not tried", "")
	}
	select {
	case <-p.interrupt: // ctx may not have heard of it yet
		return untried()
	default:
	}
	var err error
	if api.Tokens, err = tokenStore(api.BaseURL, api.ClientID, api.ClientSecret); err != nil {
		return p.refuse(importer.CodeStopped, "the client is stored, but was not tried: "+err.Error(), "")
	}
	client, err := leadapi.New(api)
	if err == nil {
		defer client.Close()
		err = client.SignIn(ctx)
	}
	switch {
	case err == nil:
		fmt.Fprintln(p.say(c), "signed in: the client works")
		return nil
	case ctx.Err() != nil:
		return untried()
	}
	return p.refuse(importer.CodeStopped, "the client is stored, but signing in with it failed: "+err.Error(), "try an import; log in again only if that is refused too")
}

// refuse ends a command that sent something with its own exit code.
func (p *program) refuse(code int, text, hint string) error {
	p.tell(code, text, hint)
	p.code = code
	return nil
}

// untilInterrupted is a context that ends with the first signal; the second ends ctx.
func (p *program) untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.interrupt:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the service"
	}
	return u.Host
}
