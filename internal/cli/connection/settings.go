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

	"golang.org/x/net/http/httpproxy"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/external"
	"leadferry/internal/cli/flags"
	"leadferry/internal/config"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

// Settings are what the connection flags, the environment and the profile say together.
type Settings struct {
	line     *flags.Line
	none     bool          // of the command's flags is one of these
	Sandbox  bool          // which needs no profile and no account
	Config   flags.Setting // the configuration file; "" where there is no place for one
	Profile  flags.Setting
	Makes    bool     // the profile is not there, and login makes it
	profiles []string // that the configuration file has
}

// defaultProfile is used when none is named; it need not be in the file.
const defaultProfile = "default"

// Resolve finds the settings for a command line. Where the profile cannot be read, they are those of flags and
// environment.
func Resolve(line *flags.Line) (s *Settings, err error) {
	s = &Settings{line: line, none: flags.Named("profile", line.Command.Flags) == nil, Config: line.Given("config")}
	s.Sandbox = line.Bool("sandbox")
	if dir, err := os.UserConfigDir(); err == nil && !s.Config.Given() {
		s.Config = flags.Setting{Name: "config", Value: filepath.Join(dir, "leadferry", "config.yaml"), From: "default"}
	}
	if s.none {
		return s, nil
	}
	if !s.Sandbox {
		err = s.readProfile()
	}
	header := s.line.Given(RequestIDHeader)
	if bad := leadapi.CheckRequestIDHeader(header.Value); err == nil && bad != nil {
		err = fmt.Errorf("%s: %w", header.From, bad)
	}
	return s, err
}

// Get is the value of a setting.
func (s *Settings) Get(name string) string { return s.line.Given(name).Value }

// readProfile adds the settings of the profile. There are none where no profile is named and none is called default,
// and where login makes it.
func (s *Settings) readProfile() error {
	if s.Profile = s.line.Given("profile"); !s.Profile.Given() {
		s.Profile = flags.Setting{Name: "profile", Value: defaultProfile, From: "default"}
	}
	all, err := config.Load(s.Config.Value)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	s.profiles = slices.Sorted(maps.Keys(all))
	if profile, found := all[s.Profile.Value]; found {
		s.line.Profile = map[string]flags.Setting{}
		for key, value := range profile {
			name := strings.ReplaceAll(key, "_", "-")
			from := fmt.Sprintf("profile %s (%s:%d)", s.Profile.Value, s.Config.Value, value.Line)
			s.line.Profile[name] = flags.Setting{Name: name, Value: value.Text, From: from, Origin: flags.ByProfile}
		}
		return nil
	}
	base := s.line.Given("base-url") // one of the environment may be meant for another profile
	s.Makes = s.line.Command.Name == "login" && s.Profile.Given() && s.Config.Value != "" &&
		base.Origin == flags.ByFlag
	if s.Makes || s.Profile.Value == defaultProfile && !(missing && s.Config.Given()) {
		if missing && !s.Makes {
			s.Config.From += "; there is no such file"
		}
		return nil
	}
	where := cmp.Or(s.Config.Value, "the configuration file")
	if missing {
		where += ", which does not exist"
	}
	other := "its profiles are " + cmp.Or(strings.Join(s.profiles, ", "), "none") +
		"; leadferry login makes one from --profile, --base-url, --leads-url and --trunk-id"
	return exit.Usage(fmt.Sprintf("there is no profile %q in %s", s.Profile.Value, where),
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
	hint := "set the flags or their LEADFERRY_ variables"
	if len(s.profiles) > 0 && !s.Profile.Given() {
		hint += ", or name a --profile (" + strings.Join(s.profiles, ", ") + ")"
	}
	if flags.Named("mapping", s.line.Command.Flags) != nil { // it carries rows
		hint += ", or add --sandbox to try it out without an account"
	}
	return exit.Usage(strings.Join(missing, ", ")+" given", hint)
}

// Account is an OAuth client with its secret, which is never shown.
type Account struct{ ID, Secret flags.Setting }

// Account finds client ID and secret. What login stored serves where nothing else does, for the address alone that the
// client was made at. Parts that are not there stay empty. With asks the command that knows the secret is run, which
// may need a person.
func (s *Settings) Account(ctx context.Context, asks bool) (Account, error) {
	secret, err := s.givenSecret(ctx, asks)
	a := Account{s.line.Given("client-id"), secret}
	if err != nil || a.ID.Value != "" && a.Secret.Value != "" {
		return a, err
	}
	var stored *config.Credentials // that login made for the profile
	if s.Config.Value != "" {
		stored, err = config.LoadCredentials(s.CredentialsPath())
	}
	if stored == nil || err != nil || a.ID.Value != "" && a.ID.Value != stored.ClientID {
		return a, err
	}
	if base := s.Get("base-url"); base != "" && leadapi.Canonical(base) != leadapi.Canonical(stored.BaseURL) {
		return a, exit.Usage(fmt.Sprintf("the client that is stored for profile %s was made at %s, and the base URL "+
			"is another", s.Profile.Value, stored.BaseURL),
			"name the --profile that it is for, or another one, for which leadferry login makes a client")
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
	file, command := s.line.Given("client-secret-file"), s.line.Given("client-secret-command")
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

// SandboxTarget is the target of --sandbox: the same whatever port it listens on.
var SandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// Target is the service that is meant, as far as that is known.
func (s *Settings) Target() checkpoint.Target {
	switch {
	case s.Sandbox:
		return SandboxTarget
	case s.none:
		return checkpoint.Target{}
	}
	return checkpoint.Target{
		BaseURL:  leadapi.Canonical(s.Get("base-url")),
		LeadsURL: leadapi.Canonical(s.Get("leads-url")), TrunkID: s.Get("trunk-id"),
	}
}

// Shown are the connection settings as people may see them. Whether they work is another question.
func (s *Settings) Shown() []flags.Setting {
	if s.Sandbox {
		return []flags.Setting{
			{Name: "sandbox", Value: "true", From: "flag --sandbox"},
			s.line.Given("directory"),
			s.line.Given(RequestIDHeader),
		}
	}
	rows := []flags.Setting{s.Config, s.Profile}
	for _, name := range addresses {
		row := s.line.Given(name)
		if _, err := leadapi.ParseAddress(name, row.Value); err != nil && row.Value != "" {
			row.Value = unusable(err) // there may be a secret in it
		}
		rows = append(rows, row)
	}
	rows = append(rows, s.line.Given("trunk-id"))
	a, err := s.Account(context.Background(), false)
	switch {
	case err != nil:
		a.Secret.Value = unusable(err)
	case a.Secret.Value != "":
		a.Secret.Value = "set, not shown"
	}
	rows = append(rows, a.ID, a.Secret)
	for _, name := range addresses {
		way, err := s.Route(name)
		if err != nil && way.From != "" {
			way.Shown = unusable(err)
		}
		rows = append(rows, flags.Setting{Name: name + "-proxy", Value: way.Shown, From: way.From})
	}
	for _, name := range []string{"ca-file", "client-cert", "client-key", RequestIDHeader} {
		rows = append(rows, s.line.Given(name))
	}
	return rows
}

// unusable is the first line of an error, for a setting that cannot be used.
func unusable(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "not usable: " + first
}

// noProxy is the word for a proxy that means none, whatever the environment says.
const noProxy = "none"

// Route is over which proxy an application is reached, nil for none, and what says so.
type Route struct {
	proxy *leadapi.Proxy
	Shown string // the proxy without what is secret in it, or none
	From  string
}

// routeTo finds the way to an address: --proxy, its variable or the profile count for every address, HTTPS_PROXY where
// NO_PROXY does not name it, and never for this machine itself.
func (s *Settings) routeTo(address *url.URL) (Route, error) {
	if named := s.line.Given("proxy"); named.Value != "" {
		return parseRoute(named.Value, named.From)
	}
	environment := httpproxy.FromEnvironment()
	if environment.HTTPSProxy == "" {
		return parseRoute(noProxy, "default")
	}
	picks := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: environment.NoProxy}
	if picked, _ := picks.ProxyFunc()(address); picked == nil { // it fails for addresses of proxies that cannot be
		const none = "no proxy of the environment counts for this address (NO_PROXY, or this machine itself)"
		return parseRoute(noProxy, none)
	}
	return parseRoute(environment.HTTPSProxy, "environment HTTPS_PROXY")
}

func parseRoute(text, from string) (Route, error) {
	r := Route{Shown: noProxy, From: from}
	if text = strings.TrimSpace(text); strings.EqualFold(text, noProxy) {
		return r, nil
	}
	proxy, err := leadapi.ParseProxy(text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", from, err)
	}
	r.proxy, r.Shown = proxy, proxy.String()
	if proxy.HasPassword() {
		r.Shown += " with a user and a password, not shown"
	}
	return r, nil
}

// addresses are the flags of the two applications.
var addresses = [...]string{"base-url", "leads-url"}

// Route is the way to the application of a flag, none where its address is not set. What is no address is the client's
// to refuse.
func (s *Settings) Route(name string) (Route, error) {
	u, err := url.Parse(leadapi.Canonical(s.Get(name)))
	if s.Sandbox || s.Get(name) == "" || err != nil {
		return Route{}, nil
	}
	return s.routeTo(u)
}

// RouteNotes tell which proxies requests go over, for a run's beginning.
func (s *Settings) RouteNotes() (notes []string) {
	for _, name := range addresses {
		if r, err := s.Route(name); err == nil && r.proxy != nil {
			notes = append(notes, fmt.Sprintf("--%s is reached over the proxy %s (%s)", name, r.Shown, r.From))
		}
	}
	return notes
}

// Reach fills in how the service is reached: over which proxy, and which certificates are trusted and shown.
func (s *Settings) Reach(api *leadapi.Config) (err error) {
	for _, name := range addresses {
		if _, err := s.Route(name); err != nil {
			return err
		}
	}
	api.Proxy = func(address *url.URL) *leadapi.Proxy {
		r, _ := s.routeTo(address) // it has been tried
		return r.proxy
	}
	if path := s.Get("ca-file"); path != "" {
		if api.Authorities, err = config.ReadAuthorities(path); err != nil {
			return err
		}
	}
	certificate, key := s.line.Given("client-cert"), s.line.Given("client-key")
	switch {
	case certificate.Value == "" && key.Value == "":
		return nil
	case certificate.Value == "":
		return exit.Usage("there is a key for a client certificate ("+key.From+") and no certificate",
			"name it with --client-cert")
	}
	api.Certificate, err = config.ReadClientCertificate(certificate.Value, key.Value)
	return err
}

// RequestIDHeader is the flag that names the header for request IDs.
const RequestIDHeader = "request-id-header"

// ForProfile are the settings for a new profile, by key, without the client. A proxy with a password is left out:
// others may read the file.
func (s *Settings) ForProfile() map[string]string {
	values := map[string]string{}
	for _, name := range []string{
		"base-url", "leads-url", "trunk-id", "proxy", "ca-file", "client-cert", "client-key", RequestIDHeader,
	} {
		key, value := strings.ReplaceAll(name, "-", "_"), strings.TrimSpace(s.Get(name))
		if whole, err := filepath.Abs(value); config.IsPath(key) && value != "" && err == nil {
			value = whole
		}
		if key != "proxy" || !strings.Contains(value, "@") {
			values[key] = value
		}
	}
	return values
}
