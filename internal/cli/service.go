package cli

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/config"
	"leadferry/internal/disk"
	"leadferry/internal/machine"
	"leadferry/internal/page"
	"leadferry/internal/shell"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
	sandboxpage "leadferry/leadapi/sandbox/web"
)

// connect finds the checkpoint and the service. With --sandbox it starts the sandbox, unless nothing will be sent.
func (p *program) connect(c *cli.Context, o *importer.Options) (closeService func() error, err error) {
	closeService = func() error { return nil }
	imitation := c.Bool("sandbox")
	if !imitation { // first, because its error about missing addresses names the profiles
		o.Client, err = p.service(c, !o.DryRun && !o.Reconciling.None)
	}
	m := p.ledger(c)
	if err == nil {
		o.Checkpoint, err = m.Path()
	}
	if err == nil && imitation && !o.DryRun {
		o.Client, closeService, err = openSandbox(c, o.Checkpoint)
	}
	if err != nil {
		return nil, err
	}
	o.Flags, o.Target = p.connectionFlags(), p.settings.Target()
	for _, name := range []string{"reopen", "check-remote", "resend-on"} { // without them, a follow-up command holds less
		if value, typed := p.line.Typed[name]; typed {
			o.Flags = append(o.Flags, "--"+name+"="+value)
		}
	}
	at := m.At(o.Checkpoint, o.Target)
	o.Open = func(require, readOnly bool) (checkpoint.Store, error) {
		return at.Open(ledger.How{ReadOnly: readOnly, Makes: !require, Used: require, Run: o.RunID, Terms: o.Terms})
	}
	o.Witnesses, o.Machine = m.Witnesses(), m.Machine
	o.Client.Observe, o.Client.UserAgent = trace(o.Log), userAgent
	o.Client.RequestIDHeader = p.settings.Get(connection.RequestIDHeader)
	o.Client.Concurrency, o.Client.Timeout = o.Concurrency, flags.Time(c, "timeout")
	return closeService, nil
}

// connectionFlags returns the typed flags for the way to the service, to paste, except those that may hold a password.
func (p *program) connectionFlags() []string {
	return p.typedFlags("connection", "proxy", "client-secret-command")
}

// typedFlags returns the flags of these sets that were typed with a value, as typed, except the given ones.
func (p *program) typedFlags(sets string, but ...string) (words []string) {
	for _, f := range flags.Of(sets) {
		name := f.Names()[0]
		value, typed := p.line.Typed[name]
		if typed && f.(cli.DocGenerationFlag).TakesValue() && !slices.Contains(but, name) {
			words = append(words, "--"+name+"="+value)
		}
	}
	return words
}

// service returns the settings of the real service, with the account if anything is sent.
func (p *program) service(c *cli.Context, sends bool) (leadapi.Config, error) {
	set := p.settings
	api := leadapi.Config{BaseURL: set.Get("base-url"), LeadsURL: set.Get("leads-url"), TrunkID: set.Get("trunk-id")}
	for _, name := range []string{"sandbox-reset", "directory"} {
		if _, typed := p.line.Typed[name]; typed {
			return api, exit.Usage("--"+name+" works with --sandbox only", "leave it out, or add --sandbox")
		}
	}
	if err := set.Require("base-url", "leads-url", "trunk-id"); err != nil {
		return api, err
	}
	err := set.Reach(&api)
	if err == nil && !sends { // a rehearsal refuses what the run would refuse
		_, err = leadapi.New(api)
	}
	if err != nil || !sends {
		return api, err
	}
	a, err := set.Account(c.Context, true)
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
	// Without a folder for tokens, each run signs in again.
	if dir, none := machine.StateDir(); none == nil {
		api.Tokens, err = config.OpenTokens(filepath.Join(dir, "tokens"), set.Target().BaseURL, api.ClientID,
			api.ClientSecret)
	}
	return api, err
}

// serveSandbox starts a sandbox at a loopback address and returns how to reach it; stop ends it.
func serveSandbox(c *cli.Context, addr string, o sandbox.Options) (s *sandbox.Server, api leadapi.Config, stop func() error,
	err error,
) {
	if path := c.String("directory"); path != "" {
		if o.Directory, err = sandbox.LoadDirectory(path); err != nil {
			return nil, api, nil, exit.Usage(err.Error(), "leadferry sandbox --help shows what such a file looks like")
		}
	}
	s, err = sandbox.New(o)
	of := (*fs.PathError)(nil)
	switch {
	case errors.Is(err, sandbox.ErrInUse):
		const hint = "wait for it to end, or use --wait"
		return nil, api, nil, &checkpoint.OpenError{Path: o.Path, Text: "is in use by another run", Hint: hint}
	case errors.As(err, &of):
		return nil, api, nil, exit.Usage("sandbox: "+of.Error(), disk.WayOut(err))
	case err != nil:
		return nil, api, nil, exit.Usage(err.Error(), "see leadferry sandbox --help")
	}
	listener, err := sandbox.Listen(addr, s, flags.Time(c, "idle-close"))
	if err != nil {
		err = exit.Usage(err.Error(), "addresses are on 127.0.0.1, [::1] or localhost, and free")
		return nil, api, nil, errors.Join(err, s.Close())
	}
	api = leadapi.Config{
		BaseURL: listener.URL(), LeadsURL: listener.URL(), TrunkID: o.Directory.TrunkID(),
		ClientID: sandbox.ClientID, ClientSecret: sandbox.ClientSecret,
	}
	return s, api, func() error { return errors.Join(listener.Close(), s.Close()) }, nil
}

// openSandbox starts the sandbox in this process.
func openSandbox(c *cli.Context, checkpointPath string) (api leadapi.Config, stop func() error, err error) {
	err = ledger.MakeFolder(checkpointPath)
	if err == nil {
		err = bolt.RefusedPlace(checkpointPath, ledger.Selection{C: c}.FileOptions())
	}
	if err == nil && c.Bool("sandbox-reset") {
		err = resetSandbox(checkpointPath)
	}
	if err != nil {
		return api, nil, err
	}
	data := ledger.SandboxData(checkpointPath)
	_, api, stop, err = serveSandbox(c, "127.0.0.1:0", sandbox.Options{Path: data, Wait: flags.Time(c, "wait")})
	return api, stop, err
}

// resetSandbox removes the sandbox's leads and checkpoint, and nothing of a real target.
func resetSandbox(path string) error {
	data := ledger.SandboxData(path)
	db, err := bolt.Open(path, connection.SandboxTarget, bolt.Options{Wait: time.Second, Require: true})
	switch {
	case err == nil:
		err = db.Close()
	case errors.Is(err, checkpoint.ErrMissing):
		err = nil
	}
	if err == nil && disk.Exists(data) { // New fails for a file that is not the sandbox's: it stays
		server, none := sandbox.New(sandbox.Options{Path: data})
		if none != nil {
			return exit.Usage(none.Error(), "end the run that uses it, or name another --checkpoint")
		}
		err = server.Close()
	}
	if err != nil {
		return err
	}
	for _, name := range append(bolt.Companions(path), path, data) {
		if kept := os.Remove(name); !errors.Is(kept, fs.ErrNotExist) {
			err = errors.Join(err, kept)
		}
	}
	return err
}

func (p *program) sandbox(c *cli.Context) (err error) {
	server, api, stop, err := serveSandbox(c, c.String("addr"), sandbox.Options{
		Path: c.String("data"), Latency: flags.Time(c, "latency"), Faults: c.String("faults"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	shown, err := serveWeb(c, func(addr string) (*page.Server, error) {
		return page.Serve(addr, func(at *url.URL) (page.View, bool) {
			return sandboxpage.View(server, api.BaseURL, at)
		})
	})
	if err != nil {
		return err
	}
	if shown != nil {
		defer func() { err = errors.Join(err, shown.Close()) }()
	}
	if err := p.print(exports(api)); err != nil {
		return err // nobody could use the sandbox
	}
	p.say("the sandbox is listening; paste the lines above into another shell of this kind, and end it with Ctrl-C")
	if shown == nil {
		p.say("with --web it shows its leads on a page, to look up rows in doubt")
	} else {
		p.tell(slog.LevelInfo, "", "page: "+shown.URL()) // last: a program that waits for it has read the settings
	}
	p.hold.Take() // if a signal has come already, the next line does not wait
	<-p.interrupt
	for _, line := range server.Counts().Lines() {
		p.say(line)
	}
	return nil
}

// exports returns shell lines that make a client use the sandbox, and undo the settings of an earlier or other service.
func exports(api leadapi.Config) (lines string) {
	powerShell := runtime.GOOS == "windows" && os.Getenv("SHELL") == "" // Git Bash and similar shells set SHELL
	for _, v := range [][2]string{
		{"base-url", api.BaseURL},
		{"leads-url", api.LeadsURL},
		{"trunk-id", api.TrunkID},
		{"client-id", api.ClientID},
		{"client-secret", api.ClientSecret},
		{"proxy", "none"}, // a profile may have one
		{"client-secret-file"},
		{"client-secret-command"},
		{"ca-file"},
		{"client-cert"},
		{"client-key"},
	} {
		switch name, value := flags.Variable(v[0]), v[1]; {
		case powerShell: // PowerShell removes a variable that is set to empty
			lines += "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'\n"
		case value == "":
			lines += "unset " + name + "\n"
		default:
			lines += "export " + name + "=" + shell.Word(value) + "\n"
		}
	}
	return lines
}
