// Package connection is the way to the service, as flags, environment, configuration file and the client that login
// stored say together: its addresses, the account, proxies and certificates.
package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/flags"
	"leadferry/internal/config"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

// Settings are what the connection flags, the environment and the profile say together. They are resolved before a
// command begins, so that a mistake in the configuration is found before anything is read.
type Settings struct {
	line       *flags.Line
	Sandbox    bool
	Config     flags.Setting // the configuration file; "" where there is no place for one
	Profile    flags.Setting
	profiles   []string // that the configuration file has
	Makes      bool     // the profile is not there, and login makes it
	connection map[string]flags.Setting
}

// defaultProfile is used when none is named; it need not be in the file.
const defaultProfile = "default"

// Get is the value of a setting.
func (s *Settings) Get(name string) string { return s.connection[name].Value }

// Setting is one with its origin.
func (s *Settings) Setting(name string) flags.Setting { return s.connection[name] }

// Resolve looks each setting up: flag, environment, profile, in this order. The sandbox needs none of them.
func Resolve(line *flags.Line, sandbox bool) (*Settings, error) {
	s := Begin(line)
	if s.Sandbox = sandbox; sandbox {
		return s, nil
	}
	profile, err := s.readProfile()
	if err != nil {
		return nil, err
	}
	for _, key := range config.Keys() {
		name := flagOf(key)
		v := line.Given(name)
		if value, ok := profile[key]; ok && !v.Given() {
			from := fmt.Sprintf("profile %s (%s:%d)", s.Profile.Value, s.Config.Value, value.Line)
			v = flags.Setting{Name: name, Value: value.Text, From: from, Origin: flags.ByProfile}
		}
		s.connection[name] = v
	}
	return s, nil
}

// flagOf is the flag for a key of a profile.
func flagOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

// Begin are the settings as far as they need no profile and name no target: where the configuration file is, and what
// the sandbox takes.
func Begin(line *flags.Line) *Settings {
	s := &Settings{line: line, connection: map[string]flags.Setting{}, Config: line.Given("config")}
	for _, name := range []string{"ca-file", RequestIDHeader} {
		s.connection[name] = line.Given(name)
	}
	if dir, err := os.UserConfigDir(); err == nil && !s.Config.Given() {
		s.Config = flags.Setting{Name: "config", Value: filepath.Join(dir, "leadferry", "config.yaml"), From: "default"}
	}
	return s
}

// readProfile reads the configuration file and gives the profile in it. It is empty where none is named and there is
// none called default, and where login makes it.
func (s *Settings) readProfile() (config.Profile, error) {
	if s.Profile = s.line.Given("profile"); !s.Profile.Given() {
		s.Profile = flags.Setting{Name: "profile", Value: defaultProfile, From: "default"}
	}
	all, err := config.Load(s.Config.Value)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	s.profiles = slices.Sorted(maps.Keys(all))
	if p, found := all[s.Profile.Value]; found {
		return p, nil
	}
	base := s.line.Given("base-url") // one of the environment may be meant for another profile
	s.Makes = s.line.Command.Name == "login" && s.Profile.Given() && s.Config.Value != "" &&
		base.Origin == flags.ByFlag
	if s.Makes || s.Profile.Value == defaultProfile && !(missing && s.Config.Given()) {
		if missing && !s.Makes {
			s.Config.From += "; there is no such file"
		}
		return nil, nil
	}
	where := cmp.Or(s.Config.Value, "the configuration file")
	if missing {
		where += ", which does not exist"
	}
	other := "its profiles are " + cmp.Or(strings.Join(s.profiles, ", "), "none") +
		"; leadferry login makes one from --profile, --base-url, --leads-url and --trunk-id"
	return nil, exit.Usage(fmt.Sprintf("there is no profile %q in %s", s.Profile.Value, where),
		flags.Near("", s.Profile.Value, s.profiles, other))
}

// Require refuses settings some of which are not set.
func (s *Settings) Require(names ...string) error {
	var missing []string
	for _, name := range names {
		if s.Get(name) == "" {
			missing = append(missing, "no --"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	hint := []string{"set the flags or their LEADFERRY_ variables"}
	if len(s.profiles) > 0 && !s.Profile.Given() {
		hint = append(hint, "name a --profile ("+strings.Join(s.profiles, ", ")+")")
	}
	if flags.Named("mapping", s.line.Command.Flags) != nil { // it carries rows
		hint = append(hint, "add --sandbox to try it out without an account")
	}
	return exit.Usage(strings.Join(missing, ", ")+" given", strings.Join(hint, ", or "))
}

// Account is an OAuth client with its secret, which is never shown.
type Account struct{ ID, Secret flags.Setting }

// Account finds client ID and secret. What login stored serves where nothing else does, for the address alone that the
// client was made at. Parts that are not there stay empty. With asks the command that knows the secret is run, which
// may need a person.
func (s *Settings) Account(ctx context.Context, asks bool) (Account, error) {
	secret, err := s.givenSecret(ctx, asks)
	a := Account{s.connection["client-id"], secret}
	if err != nil || a.ID.Value != "" && a.Secret.Value != "" {
		return a, err
	}
	stored, err := s.Stored()
	if stored == nil || err != nil || a.ID.Value != "" && a.ID.Value != stored.ClientID {
		return a, err
	}
	if base := s.Get("base-url"); base != "" && leadapi.Canonical(base) != leadapi.Canonical(stored.BaseURL) {
		return a, exit.Usage(fmt.Sprintf("the client that is stored for profile %s was made at %s, and the base URL "+
			"is another", s.Profile.Value, stored.BaseURL),
			"name the --profile that it is for, or run leadferry login for this one")
	}
	from := "stored by login (" + s.CredentialsPath() + ")"
	if a.ID.Value == "" {
		a.ID = flags.Setting{Name: "client-id", Value: stored.ClientID, From: from}
	}
	if a.Secret.Value == "" {
		a.Secret = flags.Setting{Name: "client-secret", Value: stored.ClientSecret, From: from}
	}
	return a, nil
}

// givenSecret is the secret of the environment, or of the file or the command that a flag, the environment or the
// profile names.
func (s *Settings) givenSecret(ctx context.Context, asks bool) (flags.Setting, error) {
	file, command := s.connection["client-secret-file"], s.connection["client-secret-command"]
	given := s.line.Given("client-secret") // which is no flag, but has a variable
	secret, err := flags.Setting{Name: given.Name}, error(nil)
	switch {
	case given.Given() && !file.Given() && !command.Given():
		return given, nil
	case file.Value != "" && command.Value != "" && file.Origin == command.Origin:
		return secret, exit.Usage(fmt.Sprintf("both a file (%s) and a command (%s) are named for the client secret",
			file.From, command.From), "take one of them out")
	case command.Value != "" && command.Origin > file.Origin:
		secret.From, secret.Origin = "the output of a command, "+command.From, command.Origin
		if secret.Value = "not asked for"; asks {
			secret.Value, err = external.Secret(ctx, command.Value)
		}
	case file.Value != "":
		secret.From, secret.Origin = file.Value+", "+file.From, file.Origin
		if secret.Value, err = config.ReadSecret(file.Value); errors.Is(err, fs.ErrNotExist) {
			secret.From = file.From
			err = exit.Usage("the client secret's file does not exist; the name is not shown, since it may be the "+
				"secret itself", "write the secret into a file that others may not read, and name that one: "+file.From)
		}
	}
	return secret, err
}

// CredentialsPath is where login stores the profile's client.
func (s *Settings) CredentialsPath() string {
	return config.CredentialsPath(s.Config.Value, s.Profile.Value)
}

// Stored is the client that login made for the profile, or nil.
func (s *Settings) Stored() (*config.Credentials, error) {
	if s.Config.Value == "" {
		return nil, nil
	}
	return config.LoadCredentials(s.CredentialsPath())
}

// SandboxTarget is the target of --sandbox: the same whatever port it listens on.
var SandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// Target is the service that is meant, as far as that is known.
func (s *Settings) Target() checkpoint.Target {
	if s.Sandbox {
		return SandboxTarget
	}
	return checkpoint.Target{
		BaseURL:  leadapi.Canonical(s.Get("base-url")),
		LeadsURL: leadapi.Canonical(s.Get("leads-url")), TrunkID: s.Get("trunk-id"),
	}
}

// MixedRegions says when the two addresses belong to different registered domains.
func MixedRegions(t checkpoint.Target) string {
	base, leads := registered(t.BaseURL), registered(t.LeadsURL)
	if base == leads || base == "" || leads == "" {
		return ""
	}
	return fmt.Sprintf("the base URL (%s) and the leads URL (%s) belong to different domains: is one of the US and "+
		"one of the EU?", base, leads)
}

// registered is "" for what is no address: it is refused later, and may hold a password.
func registered(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(u.Hostname()); err == nil {
		return d
	}
	return u.Hostname()
}

// Shown are the connection settings as people may see them. Whether they work is another question.
func (s *Settings) Shown() []flags.Setting {
	if s.Sandbox {
		return []flags.Setting{
			{Name: "sandbox", Value: "true", From: "flag --sandbox"},
			s.line.Given("directory"),
			s.connection[RequestIDHeader],
		}
	}
	rows := []flags.Setting{s.Config, s.Profile}
	for _, name := range []string{"base-url", "leads-url", "trunk-id"} {
		row := s.connection[name]
		row.Value = masked(row.Value)
		rows = append(rows, row)
	}
	a, err := s.Account(context.Background(), false)
	switch {
	case err != nil:
		a.Secret.Value = unusable(err)
	case a.Secret.Value != "":
		a.Secret.Value = "set, not shown"
	}
	rows = append(rows, a.ID, a.Secret)
	ways, err := s.Routes()
	for _, name := range addresses {
		way := ways[name]
		if err != nil && way.From != "" {
			way.Shown = unusable(err)
		}
		rows = append(rows, flags.Setting{Name: name + "-proxy", Value: way.Shown, From: way.From})
	}
	for _, name := range []string{"ca-file", "client-cert", "client-key", RequestIDHeader} {
		rows = append(rows, s.connection[name])
	}
	return rows
}

// unusable is the first line of an error, for a setting that cannot be used.
func unusable(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "not usable: " + first
}

// masked is an address without what may be a secret in it. Such an address is refused when it is used.
func masked(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "not an address, not shown"
	case u.User == nil && u.RawQuery == "" && u.Fragment == "":
		return address
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return "not usable: " + shown.String() + " with a user, a query or a fragment, not shown"
}
