package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

func (p *program) sandboxCommand() *cli.Command {
	return &cli.Command{
		Name: "sandbox", Usage: "a local imitation of the service, for trying out and for tests",
		Description: `Serves the whole interface on a loopback address until interrupted and prints
the settings to export for it.

Example:

   leadferry sandbox --addr 127.0.0.1:8080 --latency 20ms --faults '429:5%,drop-stored:1%'

A fault is NAME:P% (so many of the requests), NAME/N (every Nth) or NAME#N (the Nth
alone), for example 429, 503-retry, 500, drop, hang (not applied) and 500-stored,
drop-stored, slow, cut-body, no-id (applied); seed=N repeats the same chances.

To try out login: the account is sandbox@example.com, its password sandbox-password.
How many requests were answered how is printed at the end.

Exit codes: 0 ended by a signal; 2 the address or a flag is not right.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Value: "127.0.0.1:8080", EnvVars: []string{"LEADFERRY_ADDR"}, Usage: "loopback `ADDRESS` to listen on; port 0 takes a free one"},
			&cli.DurationFlag{Name: "latency", Usage: "added to every answer: `DURATION`"},
			&cli.StringFlag{Name: "faults", Usage: "what goes wrong how often: `SPEC`"},
			&cli.StringFlag{Name: "data", EnvVars: []string{"LEADFERRY_DATA"}, Usage: "`FILE` that keeps the leads; without one they are gone at the end"},
			&cli.DurationFlag{Name: "access-life", DefaultText: "3h", Usage: "lifetime of access tokens: `DURATION`"},
		},
		Action: p.sandbox,
	}
}

func (p *program) sandbox(c *cli.Context) error {
	server, err := sandbox.New(sandbox.Options{
		Path: c.String("data"), Latency: c.Duration("latency"), Faults: c.String("faults"), AccessLife: c.Duration("access-life"),
	})
	if err != nil {
		return usage(err.Error(), "see leadferry sandbox --help")
	}
	listener, err := sandbox.Listen(c.String("addr"), server)
	if err != nil {
		return errors.Join(usage(err.Error(), "choose another --addr on 127.0.0.1"), server.Close())
	}
	fmt.Fprintf(p.Out, `export LEADFERRY_BASE_URL=%[1]s
export LEADFERRY_LEADS_URL=%[1]s
export LEADFERRY_TRUNK_ID=%[2]s
export LEADFERRY_CLIENT_ID=%[3]s
export LEADFERRY_CLIENT_SECRET=%[4]s
`, listener.URL(), sandbox.TrunkID, sandbox.ClientID, sandbox.ClientSecret)
	fmt.Fprintln(p.say(c), "the sandbox is listening; export the lines above in another shell, end it with Ctrl-C")
	p.hold.take() // whether or not a signal has come
	select {
	case <-p.interrupt:
	case <-c.Context.Done():
	}
	err = errors.Join(listener.Close(), server.Close())
	printAnswers(p.say(c), server.Counts())
	return err
}

// directoryOf reads the user's own brand, where one is named; else it is nil.
func directoryOf(c *cli.Context) (*sandbox.Directory, error) {
	path := c.String("directory")
	if path == "" {
		return nil, nil
	}
	d, err := sandbox.LoadDirectory(path)
	if err != nil {
		return nil, usage(err.Error(), "")
	}
	return d, nil
}

// printAnswers says how many requests of each kind were given each status.
func printAnswers(w io.Writer, counts sandbox.Counts) {
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s:", kind)
		for _, status := range slices.Sorted(maps.Keys(counts[kind])) {
			word := strconv.Itoa(status)
			if status == 0 {
				word = "no answer"
			}
			fmt.Fprintf(w, " %d × %s", counts[kind][status], word)
		}
		fmt.Fprintln(w)
	}
}

// sandboxData is where --sandbox keeps its leads: beside its checkpoint.
func sandboxData(checkpointPath string) string {
	return strings.TrimSuffix(checkpointPath, ".db") + "-service.db"
}

// openSandbox starts the imitation inside the process.
func openSandbox(c *cli.Context, checkpointPath string) (api leadapi.Config, stop func() error, err error) {
	if err := makeStateDir(checkpointPath); err != nil {
		return api, nil, err
	}
	if c.Bool("sandbox-reset") {
		if err := resetSandbox(checkpointPath); err != nil {
			return api, nil, err
		}
	}
	directory, err := directoryOf(c)
	if err != nil {
		return api, nil, err
	}
	data := sandboxData(checkpointPath)
	server, err := sandbox.New(sandbox.Options{Path: data, Wait: c.Duration("wait"), Directory: directory})
	if errors.Is(err, sandbox.ErrInUse) {
		return api, nil, &checkpoint.OpenError{Path: data, Text: "is in use by another run", Hint: "wait for it to end, or use --wait"}
	}
	if err != nil {
		return api, nil, usage(err.Error(), "--sandbox-reset begins anew")
	}
	listener, err := sandbox.Listen("127.0.0.1:0", server)
	if err != nil {
		return api, nil, errors.Join(err, server.Close())
	}
	api = leadapi.Config{
		BaseURL: listener.URL(), LeadsURL: listener.URL(), TrunkID: directory.TrunkID(),
		ClientID: sandbox.ClientID, ClientSecret: sandbox.ClientSecret,
	}
	return api, func() error { return errors.Join(listener.Close(), server.Close()) }, nil
}

// resetSandbox removes the imitation's leads and checkpoint, and nothing that
// belongs to a real target.
func resetSandbox(path string) error {
	db, err := bolt.Open(path, sandboxTarget, bolt.Options{Wait: time.Second, Require: true})
	if err == nil {
		err = db.Close()
	}
	if err != nil && !errors.Is(err, checkpoint.ErrMissing) {
		return err
	}
	if _, err := os.Lstat(sandboxData(path)); err == nil { // what is no file of the sandbox is not removed
		data, err := sandbox.New(sandbox.Options{Path: sandboxData(path)})
		if err != nil {
			return usage(err.Error(), "end the run that uses it, or name another --checkpoint")
		}
		if err := data.Close(); err != nil {
			return err
		}
	}
	for _, name := range append(bolt.Companions(path), path, sandboxData(path)) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
