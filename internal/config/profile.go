package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// NewProfile is a profile that the configuration file at Path is to get. What stands in
// the file stays as it is, comments too.
type NewProfile struct {
	Path   string
	Name   string
	Values map[string]string // by key; empty ones are left out
	Nearest
}

// Check finds what speaks against adding the profile, and changes nothing but that the
// file's folder is made. Its error is an [*Error] or [Errors].
func (p NewProfile) Check() error {
	target, old, mode, err := p.current()
	if err != nil {
		return err
	}
	if _, err := p.added(old); err != nil {
		return err
	}
	f, err := p.draft(target, mode)
	if err == nil {
		err = discard(f)
	}
	return p.fault(err)
}

// Add adds the profile durably, making the file where there is none. It goes on from
// what the file holds by now. Its error is an [*Error] or [Errors].
func (p NewProfile) Add() error {
	target, old, mode, err := p.current()
	if err != nil {
		return err
	}
	text, err := p.added(old)
	if err != nil {
		return err
	}
	f, err := p.draft(target, mode)
	if err != nil {
		return p.fault(err)
	}
	if err := fill(f, text); err != nil {
		return p.fault(errors.Join(err, discard(f)))
	}
	err = errors.Join(f.Close(), os.Rename(f.Name(), target))
	if err != nil {
		return p.fault(errors.Join(err, os.Remove(f.Name())))
	}
	return p.fault(syncDir(filepath.Dir(target)))
}

// Lines are the profile as it would stand in a file without others.
func (p NewProfile) Lines() string { return "profiles:\n" + p.block("  ", "\n") }

// current is the file behind links, with what it holds and who may read it.
func (p NewProfile) current() (target string, old []byte, mode fs.FileMode, err error) {
	if target, err = filepath.EvalSymlinks(p.Path); err != nil {
		target = p.Path
	}
	old, err = readFile(target, readable)
	if errors.Is(err, fs.ErrNotExist) {
		return target, nil, 0o600, nil
	}
	if err != nil {
		return "", nil, 0, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", nil, 0, p.fault(err)
	}
	return target, old, info.Mode().Perm(), nil
}

func (p NewProfile) draft(target string, mode fs.FileMode) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return nil, err
	}
	f, err := draft(target)
	if err == nil && mode != 0o600 {
		err = f.Chmod(mode)
	}
	return f, err
}

func (p NewProfile) fault(err error) error {
	if err == nil {
		return nil
	}
	return &Error{File: p.Path, Text: "the profile cannot be added: " + cause(err), Hint: "make room or mend the folder, or name another --config"}
}

// added is the text of the file with the profile in it. What is not plain enough to be
// added to is refused.
func (p NewProfile) added(old []byte) ([]byte, error) {
	if !profileName.MatchString(p.Name) {
		return nil, &Error{File: p.Path, Text: fmt.Sprintf("%q cannot be the name of a profile", p.Name), Hint: "letters, digits and . _ - only, at most 64"}
	}
	before, err := parse(p.Path, old, p.Nearest)
	if err != nil {
		return nil, err
	}
	text := p.insert(old)
	after, err := parse(p.Path, text, p.Nearest)
	if err != nil || !p.follows(before, after) {
		return nil, &Error{File: p.Path, Text: "the profile cannot be added without changing what stands here", Hint: "add it by hand:\n" + p.Lines()}
	}
	return text, nil
}

// follows reports whether the profile is all that after has besides before.
func (p NewProfile) follows(before, after *File) bool {
	n := len(before.Profiles)
	if len(after.Profiles) != n+1 || after.Profiles[n].Name != p.Name || len(after.Profiles[n].Values) != len(p.keys()) {
		return false
	}
	for _, key := range p.keys() {
		if after.Profiles[n].Values[key].Text != p.Values[key] {
			return false
		}
	}
	return slices.EqualFunc(before.Profiles, after.Profiles[:n], func(a, b *Profile) bool {
		return a.Name == b.Name && maps.EqualFunc(a.Values, b.Values, func(v, w Value) bool { return v.Text == w.Text })
	})
}

// insert puts the profile behind the others: profiles: is the file's only key, so that
// is its end.
func (p NewProfile) insert(old []byte) []byte {
	end := "\n"
	if bytes.Contains(old, []byte("\r\n")) {
		end = "\r\n"
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += end
	}
	indent, found := p.indent(old)
	switch {
	case !found:
		return []byte(text + "profiles:" + end + p.block("  ", end))
	case indent == "":
		return []byte(emptyProfiles.ReplaceAllLiteralString(text, "profiles:"+end+p.block("  ", end)))
	}
	return []byte(text + p.block(indent, end))
}

// emptyProfiles is a list of profiles with nothing in it.
var emptyProfiles = regexp.MustCompile(`(?m)^profiles:[ \t]*\{[ \t]*\}[ \t]*\r?\n`)

// indent is the white space before the names of profiles, "" where there are none under
// profiles: yet; found is false where that key is not there either.
func (p NewProfile) indent(old []byte) (indent string, found bool) {
	var doc yaml.Node
	if yaml.Unmarshal(old, &doc) != nil || len(doc.Content) == 0 || len(doc.Content[0].Content) < 2 {
		return "", false
	}
	profiles := doc.Content[0].Content[1]
	if len(profiles.Content) == 0 {
		return "", true
	}
	return strings.Repeat(" ", max(0, profiles.Content[0].Column-1)), true
}

func (p NewProfile) keys() []string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Values)), func(key string) bool { return p.Values[key] == "" })
	return keys
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
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/:-]*[A-Za-z0-9/]$`)

func scalar(text string) string {
	if plain.MatchString(text) {
		return text
	}
	quoted, _ := json.Marshal(text) // a text always can be
	return string(quoted)
}
