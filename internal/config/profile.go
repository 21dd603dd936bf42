package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/disk"
)

// NewProfile is a profile that the configuration file at Path is to get. What stands in
// the file stays as it is, comments too.
type NewProfile struct {
	Path   string
	Name   string
	Values map[string]string // by key; empty ones are left out
}

// Check finds what speaks against adding the profile, and changes nothing but that the
// file's folder is made. Its error is an [*Error] or several, joined.
func (p NewProfile) Check() error {
	return p.add(func(target string, _ fs.FileMode, _ []byte) (string, error) { return "", tryToReplace(target) })
}

// Add adds the profile durably, making the file where there is none. It goes on from
// what the file holds by now. Its error is an [*Error] or several, joined.
func (p NewProfile) Add() error { return p.add(replace) }

// add hands the new text of the file behind links to write, with who may read it.
func (p NewProfile) add(write func(target string, mode fs.FileMode, text []byte) (left string, err error)) error {
	target, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		target = p.Path
	}
	mode := fs.FileMode(0o600)
	old, err := readFile(target, readable)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	text, err := p.added(old)
	if err != nil {
		return err
	}
	err = disk.MakeFolders(filepath.Dir(target))
	if err == nil {
		_, err = write(target, mode, text)
	}
	if err != nil {
		return &Error{File: p.Path, Text: "the profile cannot be added: " + cause(err), Hint: "make room or mend the folder, or name another --config"}
	}
	return nil
}

// Lines are the profile as it would stand in a file without others.
func (p NewProfile) Lines() string {
	values := maps.Clone(p.Values)
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	text, err := yaml.Dump(map[string]any{"profiles": map[string]any{p.Name: values}}, yaml.WithIndent(2))
	if err != nil {
		panic(err) // it is texts
	}
	return string(text)
}

// added is the text of the file with the profile behind the others: profiles: is the file's only key, so that is its end.
// A file to which nothing can be added like this is refused.
func (p NewProfile) added(old []byte) ([]byte, error) {
	if !profileName().MatchString(p.Name) {
		text := fmt.Sprintf("%.64q cannot be the name of a profile", p.Name)
		return nil, &Error{File: p.Path, Text: text, Hint: "letters, digits and . _ - only, at most 64"}
	}
	before, err := parse(p.Path, old)
	if err != nil {
		return nil, err
	}
	text, lines := string(old), p.Lines()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if strings.Contains(text, "profiles:") {
		lines = strings.TrimPrefix(lines, "profiles:\n")
	}
	after, err := parse(p.Path, []byte(text+lines))
	if err != nil || len(after.Profiles) != len(before.Profiles)+1 || after.Profile(p.Name) == nil {
		hint := "add it by hand:\n" + p.Lines()
		return nil, &Error{File: p.Path, Text: "the profile cannot be added without changing what is in the file", Hint: hint}
	}
	return []byte(text + lines), nil
}
