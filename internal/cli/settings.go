package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/config"
	"leadferry/leadapi"
	"leadferry/leadapi/sandbox"
)

// settings are what the connection flags, the environment and the profile say
// together. They are resolved before a command begins, so that a mistake in the
// configuration is told before anything is read.
type settings struct {
	line       *flags.Line
	sandbox    bool
	config     flags.Setting // the configuration file; "" where there is no place for one
	profile    flags.Setting
	profiles   []string // that the configuration file has
	makes      bool     // the profile is not there, and login makes it
	connection map[string]flags.Setting
}

// defaultProfile is used when none is named; it need not stand in the file.
const defaultProfile = "default"

func (s *settings) get(name string) string { return s.connection[name].Value }

// settle looks each setting up: flag, environment, profile, in this order. The
// sandbox needs none of them.
func (p *program) settle(c *cli.Context) (*settings, error) {
	s := &settings{line: p.line, sandbox: c.Bool("sandbox"), connection: map[string]flags.Setting{}}
	if s.sandbox {
		return s, nil
	}
	profile, err := s.readProfile()
	if err != nil {
		return nil, err
	}
	for _, key := range config.Keys() {
		name := strings.ReplaceAll(key, "_", "-")
		v := p.line.Given(name)
		if value, ok := profile.Values[key]; ok && !v.Given() {
			v = flags.Setting{Name: name, Value: value.Text, From: fmt.Sprintf("profile %s (%s:%d)", profile.Name, s.config.Value, value.Line), Origin: flags.ByProfile}
		}
		s.connection[name] = v
	}
	return s, nil
}

// findConfig finds the configuration file's place.
func (s *settings) findConfig() {
	if s.config = s.line.Given("config"); s.config.Given() {
		return
	}
	if dir, err := os.UserConfigDir(); err == nil {
		s.config = flags.Setting{Name: "config", Value: filepath.Join(dir, "leadferry", "config.yaml"), From: "default"}
	}
}

// readProfile finds the configuration file and the profile in it; the profile is
// empty where none is named and there is none called default.
func (s *settings) readProfile() (*config.Profile, error) {
	s.findConfig()
	s.profile = s.line.Given("profile")
	if !s.profile.Given() {
		s.profile = flags.Setting{Name: "profile", Value: defaultProfile, From: "default"}
	}
	none := &config.Profile{Name: s.profile.Value}
	var file *config.File
	err := fs.ErrNotExist
	if s.config.Value != "" {
		file, err = config.Load(s.config.Value)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.mayMake():
		return none, nil
	case errors.Is(err, fs.ErrNotExist) && !s.config.Given() && none.Name == defaultProfile:
		s.config.From += "; there is no such file"
		return none, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.Usage(cmp.Or(s.config.Value, "the configuration file")+": there is no such file",
			"write one, or name another with --config; see leadferry config --help; leadferry login makes one from --profile, --base-url, --leads-url and --trunk-id")
	case err != nil:
		return nil, err
	}
	s.profiles = file.Names()
	if p := file.Profile(none.Name); p != nil {
		return p, nil
	}
	if s.mayMake() || none.Name == defaultProfile {
		return none, nil
	}
	return nil, exit.Usage(fmt.Sprintf("there is no profile %q in %s", none.Name, s.config.Value), profileHint(none.Name, s.profiles))
}

// mayMake notes that login makes the profile, where one is named and its address is given
// as a flag: an address of the environment may be meant for another profile.
func (s *settings) mayMake() bool {
	base := s.line.Given("base-url")
	s.makes = s.line.Command.Name == "login" && s.profile.Given() && s.config.Value != "" && base.Value != "" && base.Origin == flags.ByFlag
	return s.makes
}

func profileHint(name string, names []string) string {
	other := "its profiles are " + strings.Join(names, ", ")
	if len(names) == 0 {
		other = "the file has no profiles"
	}
	other += "; leadferry login makes one from --profile, --base-url, --leads-url and --trunk-id"
	return flags.Near("", name, names, other)
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

// configHint helps where a setting is missing.
func (s *settings) configHint() string {
	hint := "set the flags or their LEADFERRY_ variables, "
	if len(s.profiles) > 0 && !s.profile.Given() {
		hint += "name a --profile (" + strings.Join(s.profiles, ", ") + "), "
	}
	return hint + "or add --sandbox to try it out without an account"
}

// account is an OAuth client with its secret, which is never shown.
type account struct{ id, secret flags.Setting }

// secretVariable is the one source of the secret that has no flag.
const secretVariable = "LEADFERRY_CLIENT_SECRET"

// account finds client ID and secret. What login stored serves where nothing else
// does, for the address alone that the client was made at. Parts that are not there
// stay empty. ask runs the command that knows the secret.
func (s *settings) account(ask func(command string) (secret string, err error)) (account, error) {
	secret, err := s.givenSecret(ask)
	a := account{s.connection["client-id"], secret}
	if err != nil || a.id.Value != "" && a.secret.Value != "" {
		return a, err
	}
	stored, err := s.stored()
	if stored == nil || err != nil || a.id.Value != "" && a.id.Value != stored.ClientID {
		return a, err
	}
	if base := s.get("base-url"); base != "" && leadapi.Canonical(base) != leadapi.Canonical(stored.BaseURL) {
		return a, exit.Usage(fmt.Sprintf("the client that is stored for profile %s was made at %s, and the base URL is another", s.profile.Value, stored.BaseURL),
			"name the --profile that it is for, or run leadferry login for this one")
	}
	from := "stored by login (" + s.credentialsPath() + ")"
	if a.id.Value == "" {
		a.id = flags.Setting{Name: "client-id", Value: stored.ClientID, From: from}
	}
	if a.secret.Value == "" {
		a.secret = flags.Setting{Name: "client-secret", Value: stored.ClientSecret, From: from}
	}
	return a, nil
}

// givenSecret is the secret of the environment, or of the file or the command that a
// flag, the environment or the profile names.
func (s *settings) givenSecret(ask func(string) (string, error)) (flags.Setting, error) {
	file, command := s.connection["client-secret-file"], s.connection["client-secret-command"]
	if value := os.Getenv(secretVariable); value != "" && !file.Given() && !command.Given() {
		return flags.Setting{Name: "client-secret", Value: value, From: "environment " + secretVariable, Origin: flags.ByEnvironment}, nil
	}
	switch {
	case file.Value != "" && command.Value != "" && file.Origin == command.Origin:
		return flags.Setting{Name: "client-secret"}, exit.Usage(fmt.Sprintf("both a file (%s) and a command (%s) are named for the client secret", file.From, command.From), "take one of them out")
	case command.Value != "" && command.Origin > file.Origin:
		value, err := ask(command.Value)
		return flags.Setting{Name: "client-secret", Value: value, From: "the output of a command, " + command.From, Origin: command.Origin}, err
	case file.Value != "":
		value, err := config.ReadSecret(file.Value)
		return flags.Setting{Name: "client-secret", Value: value, From: file.Value + ", " + file.From, Origin: file.Origin}, err
	}
	return flags.Setting{Name: "client-secret"}, nil
}

func (s *settings) credentialsPath() string {
	return config.CredentialsPath(s.config.Value, s.profile.Value)
}

// stored is the client that login made for the profile, or nil.
func (s *settings) stored() (*config.Credentials, error) {
	if s.config.Value == "" {
		return nil, nil
	}
	return config.LoadCredentials(s.credentialsPath())
}

// maxSecret is how many bytes a command may write for a secret.
const maxSecret = 64 << 10

// secretOf runs the command whose standard output is the client secret. What it writes
// is shown nowhere, whatever becomes of it.
func secretOf(ctx context.Context, text string) (string, error) {
	const flag = "client-secret-command"
	c, err := commandOf(flag, text)
	if err != nil {
		return "", err
	}
	var out bounded
	if err := c.run(ctx, &out, nil); err != nil {
		return "", exit.Usage("--"+flag+": "+err.Error(), "run it by hand: its output, which is not shown here, must be the secret and nothing else")
	}
	secret := strings.TrimSpace(out.String())
	if secret == "" || out.Len() > maxSecret || strings.ContainsFunc(secret, unicode.IsControl) {
		return "", exit.Usage("--"+flag+": what the command wrote is no secret", "it must write the secret on one line, and nothing else")
	}
	return secret, nil
}

// bounded keeps little more than a secret may have.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len() <= maxSecret {
		b.Buffer.Write(p[:min(len(p), maxSecret+1)])
	}
	return len(p), nil
}

// sandboxTarget is the target of --sandbox: the same whatever port it listens on.
var sandboxTarget = checkpoint.Target{BaseURL: "sandbox", LeadsURL: "sandbox", TrunkID: sandbox.TrunkID}

// target is the service that is meant, as far as that is known.
func (s *settings) target() checkpoint.Target {
	if s.sandbox {
		return sandboxTarget
	}
	return checkpoint.Target{BaseURL: leadapi.Canonical(s.get("base-url")), LeadsURL: leadapi.Canonical(s.get("leads-url")), TrunkID: s.get("trunk-id")}
}

// target is the one of the command's settings; nothing, where it has none.
func (p *program) target() checkpoint.Target {
	if s := p.settings.Load(); s != nil {
		return s.target()
	}
	return checkpoint.Target{}
}

// mixedRegions says when the two addresses belong to different registered domains.
func mixedRegions(t checkpoint.Target) string {
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
