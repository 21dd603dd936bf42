// Package connection finds the way to the service from flags, environment, configuration file and the client that login
// stored: addresses, account, proxies and certificates.
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

// Settings are the connection settings from flags, environment and profile.
type Settings struct {
	line     *flags.Line
	none     bool          // the command has no connection flags
	Sandbox  bool          // needs no profile and no account
	Config   flags.Setting // the configuration file; "" if there is no place for it
	Profile  flags.Setting
	Makes    bool     // the profile does not exist, and login makes it
	profiles []string // in the configuration file
}

// defaultProfile is used if no profile is named; it need not exist.
const defaultProfile = "default"

// Resolve finds the settings for a command line. After an error in the profile, only flags and environment count.
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

// Get returns the value of a setting.
func (s *Settings) Get(name string) string { return s.line.Given(name).Value }

// readProfile adds the settings of the named profile, else of the profile default. It adds none if login will make it.
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
	base := s.line.Given("base-url") // a variable may be meant for another profile
	s.Makes = s.line.Command.Name == "login" && s.Profile.Given() && s.Config.Value != "" && base.Origin == flags.ByFlag
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
	other := "profiles in it: " + cmp.Or(strings.Join(s.profiles, ", "), "none") +
		"; leadferry login makes one from --profile, --base-url, --leads-url and --trunk-id"
	return exit.Usage(fmt.Sprintf("there is no profile %q in %s", s.Profile.Value, where),
		flags.Near("", s.Profile.Value, s.profiles, other))
}

// Require returns an error unless all these settings are set.
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
	if flags.Named("mapping", s.line.Command.Flags) != nil { // the command handles rows
		hint += ", or add --sandbox to try it out without an account"
	}
	return exit.Usage(strings.Join(missing, ", ")+" given", hint)
}

// Account is an OAuth client with its secret. The secret is never shown.
type Account struct{ ID, Secret flags.Setting }

// Account finds client ID and secret. If nothing else sets them, it uses the client that login stored for this address.
// Missing parts stay empty. If asks, it runs the command that knows the secret, which may ask the user.
func (s *Settings) Account(ctx context.Context, asks bool) (Account, error) {
	secret, err := s.givenSecret(ctx, asks)
	a := Account{s.line.Given("client-id"), secret}
	if err != nil || a.ID.Value != "" && a.Secret.Value != "" {
		return a, err
	}
	var stored *config.Credentials // made by login for the profile
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

// givenSecret returns the secret from the environment, or from the file or the command that is named.
func (s *Settings) givenSecret(ctx context.Context, asks bool) (flags.Setting, error) {
	file, command := s.line.Given("client-secret-file"), s.line.Given("client-secret-command")
	given := s.line.Given("client-secret") // it has a variable, but no flag
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

// CredentialsPath returns where login stores the profile's client.
func (s *Settings) CredentialsPath() string {
	return config.CredentialsPath(s.Config.Value, s.Profile.Value)
}

// SandboxTarget is the target of --sandbox. It does not depend on the port.
var SandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// Target returns the target, as far as the settings name it.
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

// Shown returns the connection settings without secrets. It does not check whether they work.
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
			row.Value = unusable(err) // it may hold a secret
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

// unusable returns the first line of an error as the value of a setting that cannot be used.
func unusable(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "not usable: " + first
}

// noProxy means no proxy, whatever the environment says.
const noProxy = "none"

// Route says which proxy leads to an application (nil: none), and which setting decides that.
type Route struct {
	proxy *leadapi.Proxy
	Shown string // the proxy without secrets, or none
	From  string
}

// routeTo finds the way to an address. --proxy, its variable and the profile apply to every address. HTTPS_PROXY does
// not apply to addresses in NO_PROXY, nor to this machine.
func (s *Settings) routeTo(address *url.URL) (Route, error) {
	if named := s.line.Given("proxy"); named.Value != "" {
		return parseRoute(named.Value, named.From)
	}
	environment := httpproxy.FromEnvironment()
	if environment.HTTPSProxy == "" {
		return parseRoute(noProxy, "default")
	}
	picks := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: environment.NoProxy}
	if picked, _ := picks.ProxyFunc()(address); picked == nil { // a made-up proxy: ProxyFunc fails for a bad one
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

// addresses are the flags with the addresses of the two applications.
var addresses = [...]string{"base-url", "leads-url"}

// Route returns the way to a flag's application, or nothing if its address is not set or bad: the client refuses that.
func (s *Settings) Route(name string) (Route, error) {
	u, err := url.Parse(leadapi.Canonical(s.Get(name)))
	if s.Sandbox || s.Get(name) == "" || err != nil {
		return Route{}, nil
	}
	return s.routeTo(u)
}

// RouteNotes say which proxies requests use, for the beginning of a run.
func (s *Settings) RouteNotes() (notes []string) {
	for _, name := range addresses {
		if r, err := s.Route(name); err == nil && r.proxy != nil {
			notes = append(notes, fmt.Sprintf("--%s is reached over the proxy %s (%s)", name, r.Shown, r.From))
		}
	}
	return notes
}

// Reach sets how to reach the service: the proxies, the trusted certificates and the client certificate.
func (s *Settings) Reach(api *leadapi.Config) (err error) {
	for _, name := range addresses {
		if _, err := s.Route(name); err != nil {
			return err
		}
	}
	api.Proxy = func(address *url.URL) *leadapi.Proxy {
		r, _ := s.routeTo(address) // it was tried above
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

// RequestIDHeader is the flag for the header that carries request IDs.
const RequestIDHeader = "request-id-header"

// ForProfile returns the settings for a new profile, by key: no client, and no proxy with a password.
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
