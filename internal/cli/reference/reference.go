// Package reference is the command line as plain tables: commands, their flags, and what
// may stand for a value. Screens of help, manual pages and completion are made from the
// same ones, so that none of them knows a flag that another lacks.
//
// internal/cli fills the tables from the flags that it parses. Nothing here parses, reads
// files or runs anything.
package reference

import (
	"slices"
	"strings"
)

// Command is a command, or the program itself, with what stands below it.
type Command struct {
	Path        []string // the words that call it, the program's name first
	Summary     string   // what it does, in half a line
	Description string   // lines of at most 80 columns: paragraphs, examples, exit codes
	Arguments   string   // what it takes besides flags: FILE..., KEY; "": nothing
	Values      Values   // what its arguments may be
	Flags       []Flag
	Commands    []Command
}

// Flag is one flag of a command.
type Flag struct {
	Names    []string // without dashes, the long one first
	Usage    string   // what it does
	Argument string   // how its value is called: FILE, own|all; "": it is a switch
	Category string   // the part of the help where it stands
	Variable string   // the environment variable that stands for it; "": none
	Default  string   // "": none that says anything
	Repeats  bool     // it may be given more than once
	Values   Values
}

// Values is what may stand in one place of a command line.
type Values struct {
	Words    []string
	Kind     Kind
	Suffixes []string // of files that fit best, with their dots; nil: any
	// Look finds words that are not known beforehand. given tells the value of a flag that
	// stands on the command line.
	Look func(given func(flag string) string) []string
}

// Kind says whether names of files may stand in a place, too.
type Kind string

// The kinds of values.
const (
	Words   Kind = "words"
	Files   Kind = "files"
	Folders Kind = "folders"
)

// Name is the command as a person types it.
func (c *Command) Name() string { return strings.Join(c.Path, " ") }

// Word is the last of the words that call the command.
func (c *Command) Word() string { return c.Path[len(c.Path)-1] }

// Find returns the command of that word right below this one, or nil.
func (c *Command) Find(word string) *Command {
	i := slices.IndexFunc(c.Commands, func(sub Command) bool { return sub.Word() == word })
	if i < 0 {
		return nil
	}
	return &c.Commands[i]
}

// Flag returns the flag of that name, or nil.
func (c *Command) Flag(name string) *Flag {
	i := slices.IndexFunc(c.Flags, func(f Flag) bool { return slices.Contains(f.Names, name) })
	if i < 0 {
		return nil
	}
	return &c.Flags[i]
}

// Each calls f with the command and with everything below it.
func (c *Command) Each(f func(*Command)) {
	f(c)
	for i := range c.Commands {
		c.Commands[i].Each(f)
	}
}
