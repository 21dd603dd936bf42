// Package config keeps what leadferry knows of its user between runs: the
// configuration file with its profiles, the OAuth clients that login stored, and the
// tokens that they were given last.
//
// The command line is its only caller; it decides which of flag, environment,
// profile and stored client counts. It promises:
//
//   - Secrets and tokens stand in files of mode 0600 in folders of mode 0700, are
//     never written through a symbolic link and never half: a file is whole under a
//     temporary name before it takes its own.
//   - What another user may have written is refused, not read, and so is a secret that
//     others may read.
//   - No error holds a value of a file, only its name, the line and the rule.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// The keys of a profile: the connection flags with _ for -, see [Keys].
const (
	BaseURL             = "base_url"
	LeadsURL            = "leads_url"
	TrunkID             = "trunk_id"
	ClientID            = "client_id"
	ClientSecretFile    = "client_secret_file"
	ClientSecretCommand = "client_secret_command"
	ProxyURL            = "proxy"
	CAFile              = "ca_file"
	RequestIDHeader     = "request_id_header"
	ClientCert          = "client_cert"
	ClientKey           = "client_key"
	Machine             = "machine"
)

// Keys returns the keys of a profile.
func Keys() []string {
	return []string{
		BaseURL, LeadsURL, TrunkID, ClientID, ClientSecretFile, ClientSecretCommand, ProxyURL, CAFile, ClientCert, ClientKey,
		RequestIDHeader, Machine,
	}
}

// pathKeys are those of them that name a file.
var pathKeys = []string{ClientSecretFile, CAFile, ClientCert, ClientKey}

// Value is what a profile says of one key.
type Value struct {
	Text string // a file's name no longer depends on the configuration file's folder
	Line int    // from 1
}

// Profile is one named set of connection settings.
type Profile struct {
	Name   string
	Values map[string]Value // by key; a key that the profile lacks is not there
}

// File is a configuration file.
type File struct {
	Path     string
	Profiles []*Profile // in the order of their names
}

// Profile returns the profile of the name, or nil.
func (f *File) Profile(name string) *Profile {
	for _, p := range f.Profiles {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Names returns the names of all profiles.
func (f *File) Names() []string {
	var names []string
	for _, p := range f.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Error is what is wrong with a file: where, a sentence, and what to do.
type Error struct {
	File         string
	Line, Column int // from 1; 0: the file as a whole
	Text, Hint   string
}

// Error gives file, line, column and text, and the hint on a line of its own.
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	s += ": " + e.Text
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// Load reads the configuration file at path. A file that is not there is
// fs.ErrNotExist; one that cannot be used is an [*Error] or several, joined: all mistakes
// at once.
func Load(path string) (*File, error) {
	data, err := readFile(path, readable)
	if err != nil {
		return nil, err
	}
	f, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	return f, f.checkProxies()
}

// checkProxies refuses a proxy with a user or password in a file that others may read.
func (f *File) checkProxies() error {
	info, err := os.Stat(f.Path)
	if err != nil || !disk.Shared(info) {
		return nil
	}
	for _, p := range f.Profiles {
		if v := p.Values[ProxyURL]; strings.Contains(v.Text, "@") {
			return &Error{
				f.Path, v.Line, 1, "a proxy with a user or password stands in a file that group or others may read",
				narrowing("600", f.Path) + ", or set LEADFERRY_PROXY",
			}
		}
	}
	return nil
}

// parser takes down all mistakes of a file at once.
type parser struct {
	file *File
	errs []error
}

var profileName = spelling.Form(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

func parse(path string, data []byte) (*File, error) {
	p := &parser{file: &File{Path: path}}
	var file struct {
		Profiles map[string]map[string]yaml.Node
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithKnownFields())
	if err == nil {
		err = loader.Load(&file)
	}
	if errors.Is(err, io.EOF) {
		err = nil // nothing in it
	} else if err == nil && !errors.Is(loader.Load(&yaml.Node{}), io.EOF) {
		err = errors.New("a second document follows")
	}
	if err == nil && !utf8.Valid(data) {
		err = errors.New("not UTF-8")
	}
	if err != nil { // without its text, which may quote the file
		fault, at := new(yaml.LoadError), &yaml.Node{}
		if all, several := errors.AsType[*yaml.LoadErrors](err); several {
			fault = all.Errors[0]
		} else if one, single := errors.AsType[*yaml.LoadError](err); single {
			fault = one
		}
		at.Line, at.Column = fault.Mark.Line, fault.Mark.Column
		p.fail(at, "it begins with profiles:, below it the name of each profile, below that "+strings.Join(Keys(), ", "),
			"this is not a configuration file in YAML and UTF-8")
	}
	for _, name := range slices.Sorted(maps.Keys(file.Profiles)) {
		p.profile(name, file.Profiles[name])
	}
	if p.errs != nil {
		return nil, errors.Join(p.errs...)
	}
	return p.file, nil
}

func (p *parser) fail(n *yaml.Node, hint, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.file.Path, max(1, n.Line), max(1, n.Column), fmt.Sprintf(format, args...), hint})
}

func (p *parser) profile(name string, values map[string]yaml.Node) {
	profile := &Profile{name, map[string]Value{}}
	inOrder := func(a, b string) int { return cmp.Or(values[a].Line-values[b].Line, values[a].Column-values[b].Column) }
	for _, key := range slices.SortedFunc(maps.Keys(values), inOrder) {
		value := values[key]
		text := strings.TrimSpace(value.Value)
		switch {
		case key == "client_secret":
			p.fail(&value, "put the secret into a file of mode 0600 and name it with client_secret_file, "+
				"name a command with client_secret_command, or let leadferry login store it",
				"a secret has no place in the configuration file")
		case !slices.Contains(Keys(), key):
			if strings.ContainsAny(key, "0123456789") { // as in many a secret, and in no key
				key = "…"
			}
			hint := cmp.Or(spelling.Hint(key, Keys()), "the keys are "+strings.Join(Keys(), ", "))
			p.fail(&value, hint, "unknown key %.64q in profile %s", key, name)
		case value.Kind != yaml.ScalarNode || text == "":
			p.fail(&value, "write a text, or leave the key out", "%s must be a text", key)
		case slices.Contains(pathKeys, key) && !filepath.IsAbs(text):
			text = filepath.Join(filepath.Dir(p.file.Path), text)
		}
		profile.Values[key] = Value{text, value.Line}
	}
	if !profileName().MatchString(name) || disk.Reserved(name+".json") {
		p.fail(&yaml.Node{}, "letters, digits and . _ - only, at most 64, and no device of Windows such as con",
			"%.64q cannot be the name of a profile", name)
	}
	for _, other := range p.file.Profiles {
		if strings.EqualFold(other.Name, name) { // their clients would share a file where names have no case
			p.fail(&yaml.Node{}, "rename one of them", "the profiles %s and %s differ in case only", other.Name, name)
		}
	}
	p.file.Profiles = append(p.file.Profiles, profile)
}

// StateDir is leadferry's folder in the user's state directory, or among the user's own
// application data where there is none: on Windows those of this machine, since what roams is copied
// from one machine to another, an older checkpoint over a newer one. XDG_STATE_HOME counts on every system.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LOCALAPPDATA%
		return filepath.Join(dir, "leadferry", "state"), err
	case "darwin", "ios", "plan9":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "leadferry", "state"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "leadferry"), err
}
