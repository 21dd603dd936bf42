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
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The keys of a profile: the connection flags with _ for -.
const (
	BaseURL             = "base_url"
	LeadsURL            = "leads_url"
	TrunkID             = "trunk_id"
	ClientID            = "client_id"
	ClientSecretFile    = "client_secret_file"
	ClientSecretCommand = "client_secret_command"
)

// Value is what a profile says of one key.
type Value struct {
	Text string // a client_secret_file is relative to the configuration file's folder no more
	Line int    // where it stands, from 1
}

// Profile is one named set of connection settings.
type Profile struct {
	Name   string
	Line   int
	Values map[string]Value // by key; a key that the profile lacks is not there
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

// Nearest is the one of names that somebody who wrote name may have meant, or "".
type Nearest func(name string, names []string) string

// maxFile bounds each file that is read here, in bytes.
const maxFile = 64 << 10

// Load reads the configuration file at path. A file that is not there is
// fs.ErrNotExist; one that cannot be used is an [*Error] or [Errors], all mistakes at
// once.
func Load(path string, nearest Nearest) (*File, error) {
	data, err := readFile(path, readable)
	if err != nil {
		return nil, err
	}
	return parse(path, data, nearest)
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

// Errors are the mistakes of one configuration file, in its order.
type Errors []*Error

// Error joins the errors, one below the other.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// cause is an error of the file system without the path, which stands before it
// already.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
