// Package explain is the catalogue of what leadferry says: every outcome, exit code, rule of a row, answer of the
// service, reason to stop and warning, with its meaning and what to do.
//
// `leadferry explain` shows them. The package imports none of what says these things: its tests compare all.
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

// Kind is what some entries have in common.
type Kind struct {
	Name    string `yaml:"kind"` // what one is called: outcome, exit code
	Title   string
	About   string // where people meet them
	Entries []Entry
}

// Entry explains one name.
type Entry struct {
	Kind  string   `yaml:"-"`
	Name  string   // as results, problems and commands write it
	Also  []string // other names, as statuses of HTTP: 408, 4xx
	Means string
	Why   string // how that comes about; may be ""
	Do    string
	Next  []string // commands, in their order
	See   string   // a page of docs that says more, from the project's folder; may be ""
	Says  []string // pieces of the messages that it explains
	Like  string   // a regular expression for the messages of an area that no other entry explains; may be ""
}

//go:embed catalogue/*.yaml
var catalogue embed.FS

// Kinds returns all entries, in order. A catalogue that cannot be read is a mistake of ours, which tests find.
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

// afterWords fits a number, behind words that people put before exit codes and statuses.
var afterWords = spelling.Form(`^(?:(?:leadferry|exit|return|error|errorlevel|rc|code|status|http)[_:=]*)*(\d+)$`)

// Find returns the entry that is meant: by its name, by another of its names (408; 4xx for any 4xx that has no entry of
// its own), or by a pasted message: the entry of this message, else the first of an area whose pattern it fits. Case,
// blanks and hyphens do not matter, nor do words like "exit code", "rc" or "HTTP" before a number.
func Find(asked string) (Entry, bool) {
	asked = strings.Join(strings.Fields(asked), " ") // a summary breaks its lines
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
