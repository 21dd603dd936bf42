package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"leadferry/internal/disk"
	"leadferry/internal/spelling"
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
	return p.add(func(target string, mode fs.FileMode, text []byte) error {
		d, err := newDraft(target, mode, text)
		if err != nil {
			return err
		}
		return d.discard()
	})
}

// Add adds the profile durably, making the file where there is none. It goes on from
// what the file holds by now. Its error is an [*Error] or several, joined.
func (p NewProfile) Add() error { return p.add(replace) }

// add hands the new text of the file behind links to write, with who may read it.
func (p NewProfile) add(write func(target string, mode fs.FileMode, text []byte) error) error {
	target, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		target = p.Path
	}
	mode := fs.FileMode(0o600)
	old, err := readFile(target, readable)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := disk.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	text, err := p.added(old)
	if err != nil {
		return err
	}
	err = disk.MakeFolders(filepath.Dir(target))
	if err == nil {
		err = write(target, mode, text)
	}
	if err != nil {
		return &Error{File: p.Path, Text: "the profile cannot be added: " + cause(err), Hint: "make room or mend the folder, or name another --config"}
	}
	return nil
}

// Lines are the profile as it would stand in a file without others.
func (p NewProfile) Lines() string { return "profiles:\n" + p.block("  ", "\n") }

// added is the text of the file with the profile in it. What is not plain enough to be
// added to is refused.
func (p NewProfile) added(old []byte) ([]byte, error) {
	if !profileName().MatchString(p.Name) {
		return nil, &Error{File: p.Path, Text: fmt.Sprintf("%q cannot be the name of a profile", p.Name), Hint: "letters, digits and . _ - only, at most 64"}
	}
	before, err := parse(p.Path, old)
	if err != nil {
		return nil, err
	}
	text := []byte(p.insert(string(old), before))
	after, err := parse(p.Path, text)
	if err != nil || !p.follows(before, after) {
		return nil, &Error{File: p.Path, Text: "the profile cannot be added without changing what stands here", Hint: "add it by hand:\n" + p.Lines()}
	}
	return text, nil
}

// follows reports whether the profile is all that after has besides before.
func (p NewProfile) follows(before, after *File) bool {
	n := len(before.Profiles)
	if len(after.Profiles) != n+1 {
		return false
	}
	same := func(a, b *Profile) bool { return reflect.DeepEqual(a, b) }
	added := after.Profiles[n]
	return slices.EqualFunc(before.Profiles, after.Profiles[:n], same) && added.Name == p.Name &&
		len(added.Values) == len(p.keys()) && !slices.ContainsFunc(p.keys(), func(key string) bool { return added.Values[key].Text != p.Values[key] })
}

// insert puts the profile behind the others: profiles: is the file's only key, so that
// is its end.
func (p NewProfile) insert(old string, before *File) string {
	end := "\n"
	if strings.Contains(old, "\r\n") {
		end = "\r\n"
	}
	if old != "" && !strings.HasSuffix(old, "\n") {
		old += end
	}
	if len(before.Profiles) > 0 {
		return old + p.block(strings.Repeat(" ", before.Profiles[0].Column-1), end)
	}
	added := "profiles:" + end + p.block("  ", end)
	if noProfiles().MatchString(old) {
		return noProfiles().ReplaceAllLiteralString(old, added)
	}
	return old + added
}

// noProfiles is a list of profiles with nothing in it.
var noProfiles = spelling.Form(`(?m)^profiles:[ \t]*\{[ \t]*\}[ \t]*\r?\n`)

func (p NewProfile) keys() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Values)), func(key string) bool { return p.Values[key] == "" })
}

// block is the profile in lines that begin with indent.
func (p NewProfile) block(indent, end string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s:%s", indent, scalar(p.Name), end)
	for _, key := range p.keys() {
		fmt.Fprintf(&b, "%s  %s: %s%s", indent, key, scalar(p.Values[key]), end)
	}
	return b.String()
}

// plain are texts that need no quotes.
var plain = spelling.Form(`^[A-Za-z0-9][A-Za-z0-9._~/:-]*[A-Za-z0-9/]$`)

func scalar(text string) string {
	if plain().MatchString(text) {
		return text
	}
	return strconv.Quote(text) // which YAML reads as Go does
}
