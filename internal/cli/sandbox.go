package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/internal/cli/connection"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/page"
	"leadferry/internal/shell"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
	sandboxpage "leadferry/leadapi/sandbox/web"
)

func (p *program) sandboxCommand() *cli.Command {
	addr := own.Name("addr", "listen on this loopback `ADDRESS`; port 0 takes a free one")
	addr.Value = "127.0.0.1:8080"
	return &cli.Command{
		Name: "sandbox", Usage: "a local imitation of the service, for trying out and for tests",
		Description: fmt.Sprintf(description("sandbox"), sandbox.Email, sandbox.Password, sandbox.FaultHelp,
			strings.ReplaceAll(sandbox.DirectoryHelp, "\n", "\n   ")),
		Flags: []cli.Flag{
			addr,
			own.Time("idle-close", 0, "close connections that were idle for `DURATION`"),
			own.Time("latency", 0, "delay every answer by `DURATION`"),
			own.Text("faults", "make requests go wrong as `SPEC` says, see above"),
			own.Name("directory", "read your own organizations, locators and trunk from `FILE`, see above"),
			own.Bool("read-bumps", "let an update that changes nothing move UpdatedAt, too"),
			own.Name("data", "keep the leads in `FILE`; without one they are gone at the end"),
			own.Switch("web", "no page", "show its leads, requests and faults on a page (`[=ADDRESS]`; else a "+
				"free port)"),
		},
		Action: p.sandbox,
	}
}

func (p *program) sandbox(c *cli.Context) (err error) {
	directory, err := directoryOf(c)
	if err != nil {
		return err
	}
	server, err := sandbox.New(sandbox.Options{
		Path: c.String("data"), Latency: c.Duration("latency"), Faults: c.String("faults"), Directory: directory,
		ReadBumps: c.Bool("read-bumps"),
	})
	if err != nil {
		return exit.Usage(err.Error(), "see leadferry sandbox --help")
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	listener, err := sandbox.Listen(c.String("addr"), server, c.Duration("idle-close"))
	if err != nil {
		return exit.Usage(err.Error(), "addresses are on 127.0.0.1, [::1] or localhost, and free")
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	shown, err := serveWeb(c, func(addr string) (*page.Server, error) {
		return page.Serve(addr, sandboxpage.New(server, listener.URL()).View)
	})
	if err != nil {
		return err
	}
	if shown != nil {
		defer func() { err = errors.Join(err, shown.Close()) }()
	}
	if err := p.print(exports(listener.URL(), directory)); err != nil {
		return err // nobody could use it
	}
	fmt.Fprintln(p.say(c), "the sandbox is listening; paste the lines above into another shell, end it with Ctrl-C")
	if shown == nil {
		fmt.Fprintln(p.say(c), "with --web it shows its leads on a page, to look up rows in doubt")
	} else {
		p.tellNow(slog.LevelInfo, "page: "+shown.URL()) // who waits for it has the settings
	}
	p.hold.Take() // whether or not a signal has come
	select {
	case <-p.interrupt:
	case <-c.Context.Done():
	}
	counts := server.Counts()
	for _, kind := range slices.Sorted(maps.Keys(counts)) { // how many requests of each kind were given each status
		line := kind + ":"
		for _, status := range slices.Sorted(maps.Keys(counts[kind])) {
			word := strconv.Itoa(status)
			if status == 0 {
				word = "no answer"
			}
			line += fmt.Sprintf(" %d × %s", counts[kind][status], word)
		}
		fmt.Fprintln(p.say(c), line)
	}
	return nil
}

// exports are the lines for a shell that has a client reach the sandbox. What an earlier start or another service may
// have left in that shell is taken back.
func exports(address string, d *sandbox.Directory) string {
	set := func(name, value string) string { return "export " + name + "=" + shell.Word(value) + "\n" }
	unset := func(name string) string { return "unset " + name + "\n" }
	if runtime.GOOS == "windows" && os.Getenv("SHELL") == "" { // PowerShell: Git Bash and its like set it
		set = func(name, value string) string {
			return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'\n"
		}
		unset = func(name string) string { return "$env:" + name + " = $null\n" }
	}
	lines := ""
	for _, v := range [][2]string{
		{"base-url", address},
		{"leads-url", address},
		{"trunk-id", d.TrunkID()},
		{"client-id", sandbox.ClientID},
		{"client-secret", sandbox.ClientSecret},
		{"proxy", "none"}, // a profile may have one
	} {
		lines += set(flags.Variable(v[0]), v[1])
	}
	for _, name := range []string{
		"client-secret-file", "client-secret-command", "ca-file", "client-cert",
		"client-key",
	} {
		lines += unset(flags.Variable(name))
	}
	return lines
}

// directoryOf reads the user's own brand, where one is named; else it is nil.
func directoryOf(c *cli.Context) (*sandbox.Directory, error) {
	path := c.String("directory")
	if path == "" {
		return nil, nil
	}
	d, err := sandbox.LoadDirectory(path)
	if err != nil {
		return nil, exit.Usage(err.Error(), "leadferry sandbox --help shows what such a file looks like")
	}
	return d, nil
}

// openSandbox starts the imitation inside the process.
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
	directory, err := directoryOf(c)
	if err != nil {
		return api, nil, err
	}
	data := ledger.SandboxData(checkpointPath)
	api, stop, err = serveSandbox(sandbox.Options{Path: data, Wait: c.Duration("wait"), Directory: directory})
	of := (*fs.PathError)(nil)
	switch {
	case errors.Is(err, sandbox.ErrInUse):
		err = &checkpoint.OpenError{
			Path: data, Text: "is in use by another run",
			Hint: "wait for it to end, or use --wait",
		}
	case errors.As(err, &of):
		err = exit.Usage("sandbox: "+of.Error(), disk.WayOut(err))
	case err != nil:
		err = exit.Usage(err.Error(), "--sandbox-reset begins anew")
	}
	return api, stop, err
}

// serveSandbox serves an imitation on a free port, and returns what a client needs for it.
func serveSandbox(o sandbox.Options) (api leadapi.Config, stop func() error, err error) {
	server, err := sandbox.New(o)
	if err != nil {
		return api, nil, err
	}
	listener, err := sandbox.Listen("127.0.0.1:0", server, 0)
	if err != nil {
		return api, nil, errors.Join(err, server.Close())
	}
	api = leadapi.Config{
		BaseURL: listener.URL(), LeadsURL: listener.URL(), TrunkID: o.Directory.TrunkID(),
		ClientID: sandbox.ClientID, ClientSecret: sandbox.ClientSecret,
	}
	return api, func() error { return errors.Join(listener.Close(), server.Close()) }, nil
}

// resetSandbox removes the imitation's leads and checkpoint, and nothing that belongs to a real target.
func resetSandbox(path string) error {
	db, err := bolt.Open(path, connection.SandboxTarget, bolt.Options{Wait: time.Second, Require: true})
	if err == nil {
		err = db.Close()
	}
	if err != nil && !errors.Is(err, checkpoint.ErrMissing) {
		return err
	}
	if disk.Exists(ledger.SandboxData(path)) { // what is no file of the sandbox is not removed
		data, err := sandbox.New(sandbox.Options{Path: ledger.SandboxData(path)})
		if err == nil {
			err = data.Close()
		}
		if err != nil {
			return exit.Usage(err.Error(), "end the run that uses it, or name another --checkpoint")
		}
	}
	for _, name := range append(bolt.Companions(path), path, ledger.SandboxData(path)) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
