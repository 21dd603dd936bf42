// Package explain is the catalogue of what leadferry says: every outcome, exit code, rule of a row, answer of the
// service, reason to stop and warning, with its meaning and what to do.
//
// `leadferry explain` shows them. The package does not import what says these things; tests compare both.
package explain

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/spelling"
)

// Kind is a group of entries.
type Kind struct {
	Name    string `yaml:"kind"` // what one is called: outcome, exit code
	Title   string
	Entries []Entry
}

// Entry explains one name.
type Entry struct {
	Kind  string   `yaml:"-"`
	Name  string   // as results, problems and commands write it
	Also  []string // other names, for example HTTP statuses: 408, 4xx
	Means string
	Why   string // why it happens; may be ""
	Do    string
	Next  []string // commands, in their order
	See   string   // a page that says more, by its path in the project; may be ""
	Says  []string // parts of the messages that it explains
	Like  string   // a regular expression for messages that no entry has in Says; may be ""
}

//go:embed catalogue/*.yaml
var catalogue embed.FS

// Kinds returns all entries, in order. It panics if the catalogue cannot be read, which tests would find.
var Kinds = sync.OnceValue(func() []Kind {
	files, err := fs.Glob(catalogue, "catalogue/*.yaml")
	kinds := make([]Kind, len(files))
	for i, name := range files {
		text, unread := catalogue.ReadFile(name)
		if err = errors.Join(err, unread, yaml.Load(text, &kinds[i], yaml.WithKnownFields())); err != nil {
			panic(fmt.Sprintf("%s: %v", path.Base(name), err))
		}
		for j := range kinds[i].Entries {
			kinds[i].Entries[j].Kind = kinds[i].Name
		}
	}
	return kinds
})

// Names returns the first names of all entries.
func Names() (names []string) {
	for _, k := range Kinds() {
		for _, e := range k.Entries {
			names = append(names, e.Name)
		}
	}
	return names
}

// afterWords matches a number after words that people write before exit codes and statuses.
var afterWords = spelling.Form(`^(?:(?:leadferry|exit|return|error|errorlevel|rc|code|status|http)[_:=]*)*(\d+)$`)

// Find returns the entry that a person asks for. It looks for a name, for another name (408; 4xx if 404 has no entry),
// for a piece of a pasted message, and last for a pattern that the message fits. Case, blanks and hyphens of a name do
// not matter, nor do words like "exit code", "rc" or "HTTP" before a number.
func Find(asked string) (Entry, bool) {
	asked = strings.Join(strings.Fields(asked), " ") // a summary breaks long lines
	name := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(asked))
	class := ""
	if number := afterWords().FindStringSubmatch(name); number != nil {
		if name = number[1]; len(name) == len("404") {
			class = name[:1] + "xx"
		}
	}
	for _, is := range []func(Entry) bool{
		func(e Entry) bool { return e.Name == name },
		func(e Entry) bool { return slices.Contains(e.Also, name) },
		func(e Entry) bool { return class != "" && slices.Contains(e.Also, class) },
		func(e Entry) bool { return e.speaks(asked) },
		func(e Entry) bool { return e.Like != "" && regexp.MustCompile("(?i)"+e.Like).MatchString(asked) },
	} {
		for _, k := range Kinds() {
			if i := slices.IndexFunc(k.Entries, is); i >= 0 {
				return k.Entries[i], true
			}
		}
	}
	return Entry{}, false
}

// speaks reports whether a text holds a piece of the entry's messages.
func (e Entry) speaks(text string) bool {
	return slices.ContainsFunc(e.Says, func(piece string) bool { return strings.Contains(text, piece) })
}
