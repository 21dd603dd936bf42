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
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

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
)

// Keys returns the keys of a profile.
func Keys() []string {
	return []string{BaseURL, LeadsURL, TrunkID, ClientID, ClientSecretFile, ClientSecretCommand, ProxyURL, CAFile, ClientCert, ClientKey, RequestIDHeader}
}

// pathKeys are those of them that name a file.
var pathKeys = []string{ClientSecretFile, CAFile, ClientCert, ClientKey}

// Value is what a profile says of one key.
type Value struct {
	Text string // the name of a file is relative to the configuration file's folder no more
	Line int    // where it stands, from 1
}

// Profile is one named set of connection settings.
type Profile struct {
	Name         string
	Line, Column int
	Values       map[string]Value // by key; a key that the profile lacks is not there
}

// File is a configuration file.
type File struct {
	Path     string
	Profiles []*Profile // in the order of the file
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

// Names returns the names of all profiles in the order of the file.
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
	info, err := disk.Stat(f.Path)
	if err != nil || !disk.Shared(info) {
		return nil
	}
	for _, p := range f.Profiles {
		if v := p.Values[ProxyURL]; strings.Contains(v.Text, "@") {
			return &Error{f.Path, v.Line, 1, "a proxy with a user or password stands in a file that group or others may read", narrowing("600", f.Path) + ", or set LEADFERRY_PROXY"}
		}
	}
	return nil
}

// parser reads the YAML as nodes: decoding into structs, known fields only, would lose order
// and lines, take aliases and tags, and repeat a value of the wrong shape in its errors.
type parser struct {
	file *File
	errs []error
}

func parse(path string, data []byte) (*File, error) {
	p := &parser{file: &File{Path: path}}
	const shape = "it begins with profiles:, and below it the name of each profile"
	if doc := p.document(data); doc != nil {
		p.each(doc, shape, func(key, child *yaml.Node) {
			if p.known(key, "", "profiles") {
				p.each(child, shape, p.profile)
			}
		})
	}
	if p.errs != nil {
		return nil, errors.Join(p.errs...)
	}
	return p.file, nil
}

func (p *parser) fail(n *yaml.Node, hint, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.file.Path, max(1, n.Line), max(1, n.Column), fmt.Sprintf(format, args...), hint})
}

// maxDepth is how deep a configuration file may nest: file, profiles, profile, key.
const maxDepth = 16

// document is the one document of data, or nil: an empty file is one without profiles.
// The reader's errors are told without their text, which may quote the file.
func (p *parser) document(data []byte) *yaml.Node {
	var doc, second yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err == nil {
		err = loader.Load(&doc)
	}
	fault, placed := errors.AsType[*yaml.LoadError](err)
	switch {
	case !utf8.Valid(data):
		p.fail(&yaml.Node{}, "save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)", "the configuration file is not text in UTF-8")
	case errors.Is(err, io.EOF):
	case err != nil:
		at := &yaml.Node{}
		if placed {
			at.Line, at.Column = fault.Mark.Line, fault.Mark.Column
		}
		p.fail(at, "look for a missing blank after a colon, an open quote or a tab before a key", "the configuration file is not YAML from here on")
	case !errors.Is(loader.Load(&second), io.EOF):
		p.fail(&second, "keep one document a file", "a second document follows")
	case doc.Content[0].Kind != yaml.ScalarNode || doc.Content[0].ShortTag() != "!!null":
		return doc.Content[0]
	}
	return nil
}

var profileName = spelling.Form(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

func (p *parser) profile(key, n *yaml.Node) {
	if !profileName().MatchString(key.Value) || disk.Reserved(key.Value+".json") {
		p.fail(key, "letters, digits and . _ - only, at most 64, and no device of Windows such as con", "this cannot be the name of a profile")
		return
	}
	for _, other := range p.file.Profiles {
		if strings.EqualFold(other.Name, key.Value) { // their clients would share a file where names have no case
			p.fail(key, "", "the name of this profile is that of line %d but for case", other.Line)
			return
		}
	}
	profile := &Profile{key.Value, key.Line, key.Column, map[string]Value{}}
	p.file.Profiles = append(p.file.Profiles, profile)
	p.each(n, "a profile holds base_url, leads_url, trunk_id and the like", func(key, child *yaml.Node) {
		text := strings.TrimSpace(child.Value)
		switch {
		case key.Value == "client_secret":
			p.fail(key, "put the secret into a file of mode 0600 and name it with client_secret_file, name a command with client_secret_command, or let leadferry login store it",
				"a secret has no place in the configuration file")
			return
		case !p.known(key, " in profile "+profile.Name, Keys()...):
			return
		case child.Kind != yaml.ScalarNode:
			p.fail(child, "", "%s must be a text", key.Value)
		case text == "":
			p.fail(child, "leave the key out", "%s has no value", key.Value)
		case slices.Contains(pathKeys, key.Value) && !filepath.IsAbs(text):
			text = filepath.Join(filepath.Dir(p.file.Path), text)
		}
		profile.Values[key.Value] = Value{text, key.Line}
	})
}

// known reports whether a key is one of names, and takes down that it is not.
func (p *parser) known(key *yaml.Node, where string, names ...string) bool {
	if slices.Contains(names, key.Value) {
		return true
	}
	hint := cmp.Or(spelling.Hint(key.Value, names), "the keys are "+strings.Join(names, ", "))
	if strings.ContainsAny(key.Value, "0123456789") { // as no key does, and many a secret
		p.fail(key, hint, "unknown key%s", where)
		return false
	}
	p.fail(key, hint, "unknown key %.64q%s", key.Value, where)
	return false
}

// each calls f with every key of the object at n, and takes down what a
// configuration file must not hold.
func (p *parser) each(n *yaml.Node, shape string, f func(key, child *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, shape, "keys and values are wanted here")
		return
	}
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, child := n.Content[i], n.Content[i+1]
		line, again := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			p.fail(key, "write the keys out", "a key must be a text")
		case again:
			p.fail(key, "", "key %.64q stands twice, first on line %d", key.Value, line)
			continue
		case child.Kind == yaml.AliasNode || child.Anchor != "" || child.Style&yaml.TaggedStyle != 0:
			p.fail(child, "write the value out", "anchors, aliases and tags are not allowed")
		default:
			f(key, child)
		}
		first[key.Value] = key.Line
	}
}

// StateDir is leadferry's folder in the user's state directory, or among the user's own
// application data where there is none: on Windows those of this machine, since what roams is copied
// from one machine to another, an older checkpoint over a newer one.
func StateDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LOCALAPPDATA%
		return filepath.Join(dir, "leadferry", "state"), err
	case "darwin", "ios", "plan9":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "leadferry", "state"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leadferry"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "leadferry"), err
}
