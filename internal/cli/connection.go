package cli

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

// connectionFlags name the service. The secret has no flag: it would show in the
// process list.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "base-url", EnvVars: []string{"LEADFERRY_BASE_URL"}, Usage: "general API, without /v3: `URL`", Category: connecting},
		&cli.StringFlag{Name: "leads-url", EnvVars: []string{"LEADFERRY_LEADS_URL"}, Usage: "lead creation application, without /v1: `URL`", Category: connecting},
		&cli.StringFlag{Name: "trunk-id", EnvVars: []string{"LEADFERRY_TRUNK_ID"}, Usage: "the brand's trunk organization: `ID`", Category: connecting},
		&cli.StringFlag{Name: "client-id", EnvVars: []string{"LEADFERRY_CLIENT_ID"}, Usage: "OAuth client `ID`; its secret comes from LEADFERRY_CLIENT_SECRET or --client-secret-file", Category: connecting},
		&cli.StringFlag{Name: "client-secret-file", EnvVars: []string{"LEADFERRY_CLIENT_SECRET_FILE"}, Usage: "`FILE` with the OAuth secret, readable by its owner alone", Category: connecting},
		&cli.BoolFlag{Name: "sandbox", Usage: "use the built-in imitation service: no account, no network", Category: connecting},
		&cli.BoolFlag{Name: "sandbox-reset", Usage: "with --sandbox: forget its leads and its checkpoint first", Category: connecting},
	}
}

const connecting = "Connection"

// sandboxTarget is the target of --sandbox: the same whatever port it listens on.
var sandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// service is where a command's requests go.
type service struct {
	client leadapi.Config
	target checkpoint.Target
	close  func() error
}

// connect reads the connection flags. With --sandbox it starts the imitation,
// unless nothing will be sent.
func connect(c *cli.Context, checkpointPath string, sends bool) (*service, error) {
	if c.Bool("sandbox") {
		return connectSandbox(c, checkpointPath, sends)
	}
	if c.Bool("sandbox-reset") {
		return nil, usage("--sandbox-reset works with --sandbox only", "a real service's leads cannot be deleted")
	}
	s := &service{close: func() error { return nil }}
	s.client = leadapi.Config{
		BaseURL: c.String("base-url"), LeadsURL: c.String("leads-url"), TrunkID: c.String("trunk-id"), ClientID: c.String("client-id"),
	}
	s.target = targetOf(c)
	if missing := missingSettings(c, sends); len(missing) > 0 {
		return nil, usage("no "+strings.Join(missing, ", no ")+" given",
			"set the flags or their LEADFERRY_ variables, or add --sandbox to try it out without an account")
	}
	if !sends {
		return s, nil
	}
	secret, err := clientSecret(c)
	s.client.ClientSecret = secret
	return s, err
}

func targetOf(c *cli.Context) checkpoint.Target {
	if c.Bool("sandbox") {
		return sandboxTarget
	}
	trim := func(s string) string { return strings.TrimRight(s, "/") }
	return checkpoint.Target{BaseURL: trim(c.String("base-url")), LeadsURL: trim(c.String("leads-url")), TrunkID: c.String("trunk-id")}
}

func missingSettings(c *cli.Context, sends bool) []string {
	names := []string{"base-url", "leads-url", "trunk-id"}
	if sends {
		names = append(names, "client-id")
	}
	var missing []string
	for _, name := range names {
		if c.String(name) == "" {
			missing = append(missing, "--"+name)
		}
	}
	return missing
}

// maxSecret bounds the secret's file, in bytes.
const maxSecret = 4096

// clientSecret is the OAuth secret from the environment or its file.
func clientSecret(c *cli.Context) (string, error) {
	path := c.String("client-secret-file")
	if path == "" {
		if s := os.Getenv("LEADFERRY_CLIENT_SECRET"); s != "" {
			return s, nil
		}
		return "", usage("no client secret given", "set LEADFERRY_CLIENT_SECRET, or --client-secret-file with a file that only you may read")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", usage(fmt.Sprintf("the client secret's file cannot be read: %v", err), "check --client-secret-file")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", usage(path+": group or others may read the client secret, or it is no regular file", "chmod 600 "+path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	secret := strings.TrimSpace(string(b))
	if err != nil || secret == "" || len(b) > maxSecret {
		return "", usage(path+": no client secret in it", "the file holds the secret and nothing else")
	}
	return secret, nil
}

// defaultCheckpoint is the one place where a target's checkpoint lies, whatever
// folder the program was started in.
func defaultCheckpoint(t checkpoint.Target) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", usage(fmt.Sprintf("the state directory is not known: %v", err), "name a file with --checkpoint")
	}
	if t == sandboxTarget {
		return filepath.Join(dir, "sandbox.db"), nil
	}
	u, err := url.Parse(t.LeadsURL)
	if err != nil || u.Hostname() == "" {
		return "", usage("--leads-url is not an address", "it looks like https://leads.example.com")
	}
	name := u.Hostname()
	if u.Port() != "" {
		name += "_" + u.Port()
	}
	return filepath.Join(dir, plainName(name+"-"+t.TrunkID)+".db"), nil
}

// plainName keeps what may stand in a file name on every system.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, s)
}

// mixedRegions says when the two addresses belong to different registered domains.
func mixedRegions(t checkpoint.Target) string {
	if t == sandboxTarget {
		return ""
	}
	base, leads := registered(t.BaseURL), registered(t.LeadsURL)
	if base == leads {
		return ""
	}
	return fmt.Sprintf("the base URL (%s) and the leads URL (%s) belong to different domains: is one of the US and one of the EU?", base, leads)
}

func registered(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err == nil {
		return d
	}
	return u.Hostname()
}
