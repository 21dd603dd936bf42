// Package complete answers what may stand at the end of a command line that is still being
// typed, and holds the scripts by which bash, zsh, fish and PowerShell ask.
//
// A half-typed command may be `checkpoint forget KEY`, so it promises: the answer comes from
// the tables of package reference alone. No command begins, nothing is written, and neither
// the program nor a script evaluates what was typed; the scripts only hand it over, and run
// the leadferry of the PATH for it, whatever program the line names.
package complete

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/internal/cli/reference"
)

// Word is the first argument by which scripts ask. What follows are the words of the line up
// to the cursor, without the program's name. The last of them, which may be empty, has a dot
// behind it: some shells drop empty arguments.
const Word = "__complete"

// Answer is what may stand where the cursor is.
type Answer struct {
	Values []Value
	Files  bool // names of files may stand there, too
}

// Value is one word that may stand there, whole, and what it means.
type Value struct{ Word, About string }

// Write prints the answer as the scripts read it: a line that says files or words, then a line a word, with a tab before
// what it means.
func (a Answer) Write(w io.Writer) error {
	b := []byte(map[bool]string{true: "files\n", false: "words\n"}[a.Files])
	for _, v := range a.Values {
		if !strings.ContainsFunc(v.Word, unicode.IsControl) {
			b = fmt.Appendf(b, "%s\t%s\n", v.Word, short(v.About))
		}
	}
	_, err := w.Write(b)
	return err
}

// longest is how many characters of an explanation have room beside a word.
const longest = 64

// short is the beginning of an explanation.
func short(about string) string {
	about, _, _ = strings.Cut(about, "\n")
	about, _, _ = strings.Cut(about, "; ")
	if utf8.RuneCountInString(about) <= longest {
		return about
	}
	cut := string([]rune(about)[:longest])
	return strings.TrimRight(cut[:strings.LastIndexByte(cut, ' ')+1], " ,:") + " ..."
}

// Line is a command line up to the word at the cursor, taken apart.
type Line struct {
	Program, Command *reference.Command
	Given            func(flag string) (value string, found bool) // by its long name
	Awaited          string                                       // the flag before the cursor, whose value is still to come; "": none
	OnlyFiles        bool                                         // behind --
	Arguments        int
}

// flag finds a flag of the command, of the program, or, before its command is named, of any.
func (l *Line) flag(name string) (found *reference.Flag) {
	if found = l.Program.Flag(name); found == nil {
		l.Command.Each(func(c *reference.Command) {
			if found == nil {
				found = c.Flag(name)
			}
		})
	}
	return found
}

// Complete finds what may stand in place of the word that was begun.
func (l *Line) Complete(begun string) Answer {
	name, _, joined := strings.Cut(begun, "=")
	switch c := l.Command; {
	case l.Awaited != "":
		f := l.flag(l.Awaited)
		return values(f.Words, reference.NamesFiles(f.Argument), "", begun)
	case !l.OnlyFiles && strings.HasPrefix(begun, "-") && joined:
		if f := l.flag(strings.TrimLeft(name, "-")); f != nil {
			return values(f.Words, reference.NamesFiles(f.Argument), name+"=", begun)
		}
		return Answer{}
	case !l.OnlyFiles && strings.HasPrefix(begun, "-"):
		return Answer{Values: l.flags(begun)}
	case len(c.Commands) > 0:
		return Answer{Values: commands(c, begun)}
	case l.Arguments > 0 && !strings.Contains(c.Arguments, "...") && l.Arguments >= len(strings.Fields(c.Arguments)):
		return Answer{}
	}
	return values(l.Command.Words, reference.NamesFiles(l.Command.Arguments), "", begun)
}

func commands(c *reference.Command, begun string) (found []Value) {
	for _, sub := range c.Commands {
		if strings.HasPrefix(sub.Word(), begun) {
			found = append(found, Value{sub.Word(), sub.Summary})
		}
	}
	return found
}

// flags are those that may still be given here, by their long names, and where no more than
// one dash was typed by their letters.
func (l *Line) flags(begun string) (found []Value) {
	all := slices.Concat(l.Command.Flags, []reference.Flag{{Names: []string{"help", "h"}, Usage: "show help"}})
	if l.Command != l.Program {
		all = append(all, l.Program.Flags...)
	} else {
		all = append(all, reference.Flag{Names: []string{"version", "v"}, Usage: "print the version"})
	}
	for _, f := range all {
		if _, twice := l.Given(f.Names[0]); twice && !f.Repeats {
			continue
		}
		for _, name := range f.Names {
			if word := reference.Dashed(name); strings.HasPrefix(word, begun) {
				found = append(found, Value{word, f.Usage})
			}
		}
	}
	return found
}

// values are the words that may stand in a place, each behind what of the word at the cursor comes before it.
func values(words []string, files bool, before, begun string) (a Answer) {
	a.Files = files
	for _, w := range words {
		if strings.HasPrefix(before+w, begun) {
			a.Values = append(a.Values, Value{Word: before + w})
		}
	}
	return a
}

//go:embed scripts
var scripts embed.FS

// Shells are those that there is a script for.
func Shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// Script returns the script of one of [Shells], nil for others.
func Script(shell string) []byte {
	text, _ := scripts.ReadFile("scripts/leadferry." + shell)
	return text
}
