// Package reference is the command line as plain tables: commands, their flags, and what
// may stand for a value. Screens of help, manual pages and completion are made from the
// same ones, so that none of them knows a flag that another lacks.
//
// internal/cli fills the tables from the flags that it parses. Nothing here parses, reads
// files or runs anything.
package reference

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"leadferry/internal/spelling"
)

// Command is a command, or the program itself, with what stands below it.
type Command struct {
	Path        []string // the words that call it, the program's name first
	Summary     string   // what it does, in half a line
	Description string   // lines of at most 80 columns: paragraphs, examples, exit codes
	Arguments   string   // what it takes besides flags: FILE..., KEY; "": nothing
	Words       []string // that its first argument may be; nil: any
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
	Rare     bool     // most people never need it: help shows it where all flags are asked for
	Words    []string // that its value may be; nil: any
}

// Name is the command as a person types it.
func (c *Command) Name() string { return strings.Join(c.Path, " ") }

// Word is the last of the words that call the command.
func (c *Command) Word() string { return c.Path[len(c.Path)-1] }

// NamesFiles reports whether arguments, or the value of a flag, as the tables call them are files.
func NamesFiles(argument string) bool {
	return strings.Contains(argument, "FILE") || argument == "DIR" || argument == "[RUN]"
}

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

// Width is how many columns a screen of help takes, so that it fits every terminal and
// can be quoted.
const Width = 80

// Elsewhere names a category of flags that many commands share, and what shows it.
type Elsewhere struct{ Category, Topic string }

// manyFlags are more than a reader takes in: only then are rare ones left out.
const manyFlags = 30

// Help is the screen of help of a command of the program, with its rare flags where all are wanted. Flags of the category
// that stands elsewhere are not listed.
func Help(program, c *Command, shared Elsewhere, all bool) string {
	h := &screen{}
	h.paragraph(c.Name() + " - " + c.Summary)
	h.heading("USAGE:")
	h.line("   %s", usageLine(c))
	h.line("")
	h.text(c.Description)
	if len(c.Commands) > 0 {
		h.heading("COMMANDS:")
		for _, sub := range c.Commands {
			h.entry("   ", sub.Word(), sub.Summary, 15)
		}
	}
	elsewhere, listed, hidden := false, c.Flags, 0
	if !all && len(c.Flags) > manyFlags {
		listed = slices.DeleteFunc(slices.Clone(c.Flags), func(f Flag) bool { return f.Rare })
		hidden = len(c.Flags) - len(listed)
	}
	for _, category := range categories(listed) {
		if category == shared.Category {
			elsewhere = true
			continue
		}
		h.flags(category, listed)
	}
	if hidden > 0 {
		h.heading("RARE FLAGS:")
		h.line("   %d more: %s help %s --all", hidden, program.Word(), strings.Join(c.Path[1:], " "))
	}
	if elsewhere {
		h.heading(strings.ToUpper(shared.Category) + ":")
		h.line("   Address, account, proxy and --sandbox: %s help %s", program.Word(), shared.Topic)
	}
	switch {
	case c != program:
		h.line("")
		var names []string
		for _, f := range program.Flags {
			names = append(names, "--"+f.Names[0])
		}
		h.paragraph("Flags of every command: " + strings.Join(append(names, "--help"), ", "))
	case len(c.Commands) > 0:
		h.line("")
		h.paragraph(fmt.Sprintf("%s COMMAND --help shows the flags of a command, an example and its exit codes; %s help %s the flags for the way to the service.",
			program.Word(), program.Word(), shared.Topic))
	}
	return h.b.String()
}

// Topic is a screen that shows the flags of one category alone.
func Topic(title, description, category string, flags []Flag) string {
	h := &screen{}
	h.line("%s", title)
	h.line("")
	h.text(description)
	h.flags(category, flags)
	return h.b.String()
}

// Page is a screen of text: a title, then paragraphs and lines that stand as they are.
func Page(title, text string) string {
	h := &screen{}
	h.paragraph(title)
	h.line("")
	h.text(text)
	return h.b.String()
}

// List is a part of a screen: names, and what each means.
type List struct {
	Title string
	Items [][2]string
}

// Lists is a screen of names and what they mean.
func Lists(title string, lists []List) string {
	h := &screen{}
	h.paragraph(title)
	for _, l := range lists {
		h.heading(strings.ToUpper(l.Title) + ":")
		for _, i := range l.Items {
			h.entry("   ", i[0], i[1], 24)
		}
	}
	return h.b.String()
}

func usageLine(c *Command) string {
	s := c.Name()
	if len(c.Flags) > 0 {
		s += " [FLAGS]"
	}
	if len(c.Commands) > 0 {
		return s + " COMMAND"
	}
	return strings.TrimSpace(s + " " + c.Arguments)
}

// categories are those of the flags, in the order in which they come.
func categories(flags []Flag) (all []string) {
	for _, f := range flags {
		if !slices.Contains(all, f.Category) {
			all = append(all, f.Category)
		}
	}
	return all
}

// Spelling is the flag with its other names and what its value is called.
func (f *Flag) Spelling() string {
	var names []string
	for _, n := range f.Names {
		names = append(names, strings.TrimSpace(Dashed(n)+" "+f.Argument))
	}
	return strings.Join(names, ", ")
}

// Dashed is the name of a flag as it is typed: one letter behind one dash.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// About is what the flag does, with what holds without it and its variable.
func (f *Flag) About() string {
	s := f.Usage
	if f.Default != "" {
		s += " (default: " + f.Default + ")"
	}
	if f.Variable != "" {
		s += " [$" + f.Variable + "]"
	}
	return s
}

// screen is a text that keeps to the width.
type screen struct{ b strings.Builder }

func (h *screen) line(format string, args ...any) { fmt.Fprintf(&h.b, format+"\n", args...) }

func (h *screen) heading(text string) { h.line("\n%s", text) }

func (h *screen) flags(category string, flags []Flag) {
	title := "FLAGS"
	if category != "" {
		title = strings.ToUpper(category)
	}
	h.heading(title + ":")
	for _, f := range flags {
		if f.Category == category {
			h.entry("   ", f.Spelling(), f.About(), 30)
		}
	}
}

// entry is a name and, from a column on, what it means.
func (h *screen) entry(indent, name, about string, column int) {
	first := indent + name
	if utf8.RuneCountInString(first)+2 > column {
		h.line("%s", first)
		first = ""
	}
	for i, line := range wrap(about, Width-column) {
		if i > 0 {
			first = ""
		}
		h.line("%s%s%s", first, strings.Repeat(" ", column-utf8.RuneCountInString(first)), line)
	}
}

// text takes lines over: those at the margin as paragraphs, others as they stand, but that
// long ones of a list go on below their last column.
func (h *screen) text(text string) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			h.paragraph(strings.Join(paragraph, " "))
		}
		paragraph = nil
	}
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		switch line = strings.TrimRight(line, " \n"); {
		case line != "" && line[0] != ' ':
			paragraph = append(paragraph, line)
			continue
		case utf8.RuneCountInString(line) > Width && strings.LastIndex(line, "   ") > 0:
			flush()
			at := strings.LastIndex(line, "   ") + len("   ")
			h.entry("", strings.TrimRight(line[:at], " "), line[at:], at)
		default:
			flush()
			h.line("%s", line)
		}
	}
	flush()
}

// number is an exit code at the beginning of what it means: a line must not end with it.
var number = spelling.Form(`([;:] \d{1,3}) `)

func (h *screen) paragraph(text string) {
	const glue = "\x00"
	for _, line := range wrap(number().ReplaceAllString(text, "$1"+glue), Width) {
		h.line("%s", strings.ReplaceAll(line, glue, " "))
	}
}

// Wrap breaks the lines of a text between words, so that none takes more columns than width,
// but for words that are longer.
func Wrap(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrap(line, width)...)
	}
	return strings.Join(lines, "\n")
}

// wrap parts a text at its blanks into lines of so many characters. A longer word has a
// line of its own.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
