package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer/report"
)

func (p *program) configCommand() *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "show every effective setting and where it comes from, or check whether they work",
		Description: `The configuration file names the connection settings of one or more profiles, so
that US and EU stand side by side:

   profiles:
     us:
       base_url: https://api.us.example.com
       leads_url: https://leads.us.example.com
       trunk_id: 3f2a...
     eu:
       base_url: https://api.eu.example.com
       leads_url: https://leads.eu.example.com
       trunk_id: 77c0...

Further keys: client_id, and client_secret_file or client_secret_command, for a client
that login did not store; proxy, ca_file, client_cert, client_key and request_id_header,
for the way to the service. Names of files are relative to the configuration file's
folder. A proxy's password stands in a file that nobody else may read, or in
LEADFERRY_PROXY. A flag beats the environment, which beats the profile. Without
--profile the one called default is used, if there is one.

Example:

   leadferry config show --profile eu
   leadferry config check --profile eu

Exit codes: 0 done; 2 usage error, or a mistake in the configuration file;
3 the check found what does not work.`,
		Subcommands: []*cli.Command{p.configShowCommand(), p.configCheckCommand()},
		Action:      p.showHelp,
	}
}

func (p *program) configShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "each setting, its value and its origin; secrets masked",
		Description: `Takes the flags of a run that name connections and paths, so that a command line
can be tried out.

Example:

   leadferry config show --profile eu
   leadferry config show --json |
      jq -r '.[] | select(.name == "checkpoint").value'

Exit codes: 0 done; 2 usage error, or a mistake in the configuration file.`,
		Flags: append(slices.Concat(connectionFlags(), pathFlags()),
			boolFlag("", "json", "a JSON array of objects with name, value and from")),
		Action: p.configShow,
	}
}

func (p *program) configShow(c *cli.Context) error {
	rows := p.settings.Load().shown()
	for _, f := range pathFlags() {
		if s := p.line.given(f.Names()[0]); s.Name != "checkpoint" || s.Value != "" {
			rows = append(rows, s)
		}
	}
	t := p.target()
	if p.line.given("checkpoint").Value == "" {
		rows = append(rows, checkpointSetting(t))
	}
	if text := mixedRegions(t); text != "" && t.LeadsURL != "" && t.BaseURL != "" {
		fmt.Fprintf(p.say(c), "warning: %s\n", text)
	}
	if c.Bool("json") {
		enc := json.NewEncoder(p.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, s := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, report.Escape(cmp.Or(s.Value, "not set")), report.Escape(s.From))
	}
	return w.Flush()
}

// checkpointSetting is the checkpoint that a run would use by itself.
func checkpointSetting(t checkpoint.Target) setting {
	s := setting{Name: "checkpoint"}
	if t.LeadsURL == "" || t.TrunkID == "" {
		return s
	}
	if path, err := defaultCheckpoint(t); err == nil {
		s.Value, s.From = path, "default of the target"
	}
	return s
}

// shown are the connection settings as people may see them.
func (s *settings) shown() []setting {
	if s.sandbox {
		return []setting{{Name: "sandbox", Value: "true", From: "flag --sandbox"}, s.line.given("directory"), s.shownRequestIDHeader()}
	}
	rows := []setting{s.config, s.profile}
	for _, name := range []string{"base-url", "leads-url", "trunk-id"} {
		row := s.connection[name]
		row.Value = masked(row.Value)
		rows = append(rows, row)
	}
	a, err := s.account(func(string) (string, error) { return "not asked for", nil }) // a command may need a person
	secret := a.secret
	switch {
	case err != nil:
		secret = setting{Name: "client-secret", Value: unusable(err), From: secret.From}
	case secret.Value != "":
		secret.Value = "set, not shown"
	}
	secret.Name = "client-secret"
	return append(append(rows, a.id, secret, s.tokens(a)), s.shownNetwork()...)
}

// tokens is the folder of the tokens that later runs sign in with.
func (s *settings) tokens(a account) setting {
	dir, err := stateDir()
	if err != nil || a.secret.Value == "" {
		return setting{Name: "token-cache"}
	}
	return setting{Name: "token-cache", Value: filepath.Join(dir, "tokens"), From: "default"}
}

// masked is an address without what may be a secret in it. Such an address is
// refused when it is used.
func masked(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return "not an address, not shown"
	}
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return address
	}
	return "not usable: " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String() + " with a user, a query or a fragment, not shown"
}
