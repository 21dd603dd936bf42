package flags

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
)

// Variable is the environment variable of a flag that has one.
func Variable(flag string) string {
	return "LEADFERRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Name is a flag for a name, a path or an address, which has a variable.
func Name(category, name, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, EnvVars: []string{Variable(name)}, Usage: usage, Category: category}
}

// Text is a flag for a text without a variable.
func Text(category, name, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Usage: usage, Category: category}
}

// Bool is a switch.
func Bool(category, name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, Category: category}
}

// Choice is a flag that takes one of a few words, the first of them by itself. % in its
// usage is the place of the words.
func Choice(category, name, about string, words ...string) *cli.StringFlag {
	return &cli.StringFlag{
		Name: name, Value: words[0], Usage: strings.Replace(about, "%", "`"+strings.Join(words, "|")+"`", 1), Category: category,
		Action: func(c *cli.Context, word string) error {
			if slices.Contains(words, word) {
				return nil
			}
			return exit.Usage("--"+name+" takes "+strings.Join(words, " or "), "see "+CommandName(c)+" --help")
		},
	}
}

// OptionalWord is the value of a switch that also takes a word, behind =.
type OptionalWord struct{ word string }

func (v *OptionalWord) String() string { return v.word }

// Set takes any word: what it may be is the flag's business.
func (v *OptionalWord) Set(text string) error {
	v.word = text
	return nil
}

// IsBoolFlag lets the flag stand without a value.
func (*OptionalWord) IsBoolFlag() bool { return true }

// Switch is one that also takes a word. without says what holds when it is not given.
func Switch(category, name, without, usage string) *cli.GenericFlag {
	return &cli.GenericFlag{Name: name, Value: &OptionalWord{}, DefaultText: without, Usage: usage, Category: category}
}

// Count is a flag for a number that is not negative.
func Count(category, name string, value int, text string) *cli.IntFlag {
	return &cli.IntFlag{Name: name, Value: value, Base: 10, Usage: text, Category: category, Action: func(_ *cli.Context, n int) error {
		if n < 0 {
			return exit.Usage("--"+name+" must not be negative", "0 means no limit, or none")
		}
		return nil
	}}
}

// Time is a flag for a time that is not negative.
func Time(category, name string, value time.Duration, text string) *cli.DurationFlag {
	shown := strings.Replace(value.String(), "m0s", "m", 1) // minutes need no seconds
	if value == 0 {
		shown = "none"
	}
	return &cli.DurationFlag{Name: name, Value: value, DefaultText: shown, Usage: text, Category: category, Action: func(_ *cli.Context, d time.Duration) error {
		if d < 0 {
			return exit.Usage("--"+name+" must not be negative", "for example 30s or 15m")
		}
		return nil
	}}
}

// CommandName is the command as a person types it.
func CommandName(c *cli.Context) string { return cmp.Or(c.Command.HelpName, c.App.Name) }

// MaybeContents reports whether what should name a file may be what belongs into it: nothing of that name is there, and it
// has neither a folder that is there nor an ending. A profile's files are in its folder.
func MaybeContents(file, folder string) bool {
	word := strings.TrimPrefix(file, folder+string(filepath.Separator))
	return word != "" && !disk.Exists(file) && !looksLikePath(word)
}

// looksLikePath reports whether a word ends as names of files do, or begins with a folder that is there.
func looksLikePath(word string) bool {
	ending := strings.TrimPrefix(filepath.Ext(word), ".")
	if n := len(ending); n > 0 && n <= 5 && (ending == strings.ToLower(ending) || ending == strings.ToUpper(ending)) {
		return true
	}
	i := strings.IndexAny(word[1:], `/\`)
	return i >= 0 && disk.Exists(word[:i+1])
}

// Setting is one effective value and where it comes from.
type Setting struct {
	Name   string `json:"name"`  // of the flag
	Value  string `json:"value"` // "": not set
	From   string `json:"from"`  // in words; "" where it is not set
	Origin Origin `json:"-"`
}

// Origin is where a setting comes from: a flag beats the environment, which beats the
// profile.
type Origin uint8

// The origins, each before those above it.
const (
	ByNobody Origin = iota
	ByProfile
	ByEnvironment
	ByFlag
)

// Given reports whether the setting is one of the command line or the environment.
func (s *Setting) Given() bool { return s.Origin >= ByEnvironment }

// Given is a setting as the flag or environment have it. An empty variable is as none, an
// empty flag is a flag.
func (l *Line) Given(name string) Setting {
	if value, found := l.Typed(name); found {
		return Setting{name, value, "flag --" + name, ByFlag}
	}
	variable := Variable(name)
	if value := os.Getenv(variable); value != "" {
		return Setting{name, value, "environment " + variable, ByEnvironment}
	}
	return Setting{Name: name}
}
