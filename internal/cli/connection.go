package cli

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"leadferry/checkpoint"
	"leadferry/internal/config"
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
		&cli.StringFlag{Name: "client-id", EnvVars: []string{"LEADFERRY_CLIENT_ID"}, Usage: "OAuth client `ID`; its secret comes from LEADFERRY_CLIENT_SECRET, --client-secret-file or --client-secret-command", Category: connecting},
		&cli.StringFlag{Name: "client-secret-file", EnvVars: []string{"LEADFERRY_CLIENT_SECRET_FILE"}, Usage: "`FILE` with the OAuth secret, of yours or root alone, which others may not read", Category: connecting},
		&cli.StringFlag{Name: "client-secret-command", EnvVars: []string{"LEADFERRY_CLIENT_SECRET_COMMAND"}, Usage: "`COMMAND` whose standard output is the OAuth secret, run once without a shell", Category: connecting},
		&cli.StringFlag{Name: "profile", EnvVars: []string{"LEADFERRY_PROFILE"}, Usage: "`NAME` of a set of the above in the configuration file (default: the one named default, if any)", Category: connecting},
		&cli.StringFlag{Name: "config", EnvVars: []string{"LEADFERRY_CONFIG"}, Usage: "configuration `FILE` (default: leadferry/config.yaml in the user's configuration directory)", Category: connecting},
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
	s := &service{close: func() error { return nil }, target: targetOf(c)}
	set := settingsOf(c)
	if missing := set.missing("base-url", "leads-url", "trunk-id"); missing != "" {
		return nil, usage(missing, set.configHint())
	}
	s.client = leadapi.Config{BaseURL: set.get("base-url"), LeadsURL: set.get("leads-url"), TrunkID: set.get("trunk-id")}
	if !sends {
		return s, nil
	}
	a, err := set.account()
	switch {
	case err != nil:
		return nil, err
	case a.id.value == "":
		return nil, usage("no --client-id given", "leadferry login makes a client and stores it, or set LEADFERRY_CLIENT_ID and its secret")
	case a.secret.value == "":
		return nil, usage("no client secret given", "set LEADFERRY_CLIENT_SECRET, --client-secret-file with a file that others may not read, or --client-secret-command")
	}
	s.client.ClientID, s.client.ClientSecret = a.id.value, a.secret.value
	s.client.Tokens, err = tokenStore(s.target.BaseURL, a.id.value, a.secret.value)
	return s, err
}

// tokenStore keeps the client's token in the state directory. Without a place for it
// each run signs in anew.
func tokenStore(baseURL, clientID, secret string) (leadapi.TokenStore, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, nil
	}
	f, err := config.OpenTokens(filepath.Join(dir, "tokens"), baseURL, clientID, secret)
	if err != nil {
		return nil, err // not a nil *TokenFile, which would be a store
	}
	return f, nil
}

func targetOf(c *cli.Context) checkpoint.Target {
	if c.Bool("sandbox") {
		return sandboxTarget
	}
	s := settingsOf(c)
	return checkpoint.Target{BaseURL: leadapi.Canonical(s.get("base-url")), LeadsURL: leadapi.Canonical(s.get("leads-url")), TrunkID: s.get("trunk-id")}
}

// missing says which of the settings are not set, or nothing.
func (s *settings) missing(names ...string) string {
	var missing []string
	for _, name := range names {
		if s.get(name) == "" {
			missing = append(missing, "no --"+name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return strings.Join(missing, ", ") + " given"
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
	return filepath.Join(dir, plainName(name+"-"+t.Canonical().TrunkID)+".db"), nil
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

// anyPlace tells whether the user takes responsibility for where the checkpoint lies.
func anyPlace() bool {
	yes, _ := strconv.ParseBool(os.Getenv("LEADFERRY_ANY_FILESYSTEM"))
	return yes
}
