package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/page"
	"leadferry/internal/shell"
	"leadferry/leadapi/sandbox"
	sandboxpage "leadferry/leadapi/sandbox/web"
)

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
