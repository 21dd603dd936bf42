// Package config keeps what leadferry knows of its user between runs: the configuration file with its profiles, the
// OAuth clients that login made, and their last tokens. Only the command line calls it. Secrets and tokens are in files
// of mode 0600 in folders of mode 0700. They are never written through a symbolic link, or in part. The package refuses
// a file that another user may have written, and a secret that others may read. No error holds a value of a file.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// keys are the keys of a profile: the connection flags with _ for -.
var keys = []string{
	"base_url", "leads_url", "trunk_id", "client_id", "client_secret_file", "client_secret_command", "proxy", "ca_file",
	"client_cert", "client_key", "request_id_header", "machine",
}

// IsPath reports whether a key of a profile names a file.
func IsPath(key string) bool {
	return slices.Contains([]string{"client_secret_file", "ca_file", "client_cert", "client_key"}, key)
}

// Value is what a profile says of one key.
type Value struct {
	Text string // a file's name includes the configuration file's folder
	Line int    // from 1
}

// Profile is one named set of connection settings, by key.
type Profile map[string]Value

func fault(file, text, hint string) error { return faultAt(file, 0, 0, text, hint) }

func faultAt(file string, line, column int, text, hint string) error {
	return errors.New(spelling.Sentence(file, line, column, text, hint))
}

// Load reads the profiles of a configuration file by name. Its error has all mistakes, or is fs.ErrNotExist.
func Load(path string) (map[string]Profile, error) {
	data, err := readFile(path, readable)
	if err != nil {
		return nil, err
	}
	profiles, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	info, unseen := os.Stat(path)
	for _, p := range profiles {
		if v := p["proxy"]; strings.Contains(v.Text, "@") && unseen == nil && disk.Shared(info) {
			return nil, faultAt(path, v.Line, 1, "a proxy with a user or password is in a file that group or others "+
				"may read", chmod("600", path)+", or set LEADFERRY_PROXY")
		}
	}
	return profiles, nil
}

const (
	notName    = "%.64q cannot be the name of a profile"
	nameRule   = "letters, digits and . _ - only, at most 64"
	secretHint = "put the secret into a file of mode 0600 and name it with client_secret_file, name a command with " +
		"client_secret_command, or let leadferry login store it"
)

// holdsMore matches a file that holds more than comments.
var holdsMore = spelling.Form(`(?m)^[ \t]*[^# \t\r\n]`)

var profileName = spelling.Form(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

func parse(path string, data []byte) (map[string]Profile, error) {
	var file struct {
		Profiles map[string]map[string]yaml.Node
	}
	var err error
	if holdsMore().Match(data) {
		err = yaml.Load(data, &file, yaml.WithKnownFields())
	}
	if err != nil || !utf8.Valid(data) {
		return nil, notYAML(path, err)
	}
	profiles := map[string]Profile{}
	for _, name := range slices.Sorted(maps.Keys(file.Profiles)) {
		if !profileName().MatchString(name) {
			err = errors.Join(err, faultAt(path, 1, 1, fmt.Sprintf(notName, name), nameRule))
		}
		for other := range profiles { // their clients would have one file where names have no case
			if strings.EqualFold(name, other) {
				text := fmt.Sprintf("the profiles %s and %s differ in capitals only", other, name)
				err = errors.Join(err, faultAt(path, 1, 1, text, "give one of them another name"))
			}
		}
		profiles[name] = Profile{}
		values := file.Profiles[name]
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value := values[key]
			text, hint := mistakeIn(key, &value)
			if text != "" {
				err = errors.Join(err, faultAt(path, value.Line, value.Column, text+" in profile "+name, hint))
			}
			text = strings.TrimSpace(value.Value)
			if IsPath(key) && !filepath.IsAbs(text) {
				text = filepath.Join(filepath.Dir(path), text)
			}
			profiles[name][key] = Value{text, value.Line}
		}
	}
	return profiles, err
}

// notYAML says where a file is wrong. It leaves out the parser's text, which may quote the file.
func notYAML(path string, err error) error {
	var at yaml.Mark
	if first, is := errors.AsType[*yaml.LoadError](err); is {
		at = first.Mark
	}
	return faultAt(path, max(1, at.Line), max(1, at.Column),
		"this is not a configuration file",
		"it begins with profiles:, below it the name of each profile, below that "+strings.Join(keys, ", "))
}

// mistakeIn says what is wrong with a key of a profile and its value, and what to do; "": nothing is wrong.
func mistakeIn(key string, value *yaml.Node) (text, hint string) {
	switch {
	case key == "client_secret":
		return "a secret has no place", secretHint
	case !slices.Contains(keys, key):
		if strings.ContainsAny(key, "0123456789") { // digits: the key may be a secret
			key = "…"
		}
		return fmt.Sprintf("unknown key %.64q", key),
			cmp.Or(spelling.Hint(key, keys), "the keys are "+strings.Join(keys, ", "))
	case value.Kind != yaml.ScalarNode || strings.TrimSpace(value.Value) == "":
		return key + " must be a text", "write a text, or leave the key out"
	}
	return "", ""
}

// AddProfile adds a profile durably at the end of the configuration file. If there is no file, it makes one. Empty
// values are left out. Without write it changes nothing, and only finds out whether it could.
func AddProfile(path, name string, values map[string]string, write bool) error {
	if !profileName().MatchString(name) {
		return fault(path, fmt.Sprintf(notName, name), nameRule)
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	lines, _ := yaml.Dump(map[string]any{"profiles": map[string]any{name: values}}, yaml.WithIndent(2)) // no error
	byHand := "add it by hand:\n" + string(lines)
	real, err := filepath.EvalSymlinks(path)
	if err != nil { // it is not there
		real = path
	}
	old, err := readFile(real, readable)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, err := parse(path, old)
	if err != nil {
		return err
	}
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		old = append(old, '\n')
	}
	if bytes.Contains(old, []byte("profiles:")) {
		lines = bytes.TrimPrefix(lines, []byte("profiles:\n"))
	}
	text := append(old, lines...)
	if after, err := parse(path, text); err != nil || len(after) != len(before)+1 {
		return fault(path, "the profile cannot be added without changing what is in the file", byHand)
	}
	if !write {
		return nil
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(real); err == nil {
		mode = info.Mode().Perm()
	}
	if err = disk.MakeFolders(filepath.Dir(real)); err == nil {
		_, err = disk.Replace(real, mode, text)
	}
	if err != nil {
		return fault(path, "the profile cannot be added: "+cause(err), byHand)
	}
	return nil
}
