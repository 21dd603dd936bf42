// Package flags is the command line: it is taken apart, so that flags stand before and behind file names, and
// what a flag's value is, it or its environment variable says.
package flags

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// ConnectionTopic is what `leadferry help` takes for the flags that lead to the service,
// which are the same for every command.
const ConnectionTopic = "connection"

// Line is a command line taken apart, argument by argument. The flag parser
// stops at the first file name without a word, so that `import f.csv --dry-run` would
// be a live run, and knows --help and --version in some places only.
type Line struct {
	Path    []string     // program and command, by the words that name them
	Command *cli.Command // the program itself, until one is named
	Help    bool         // is wanted
	All     bool         // with rare flags
	Topic   bool         // help is wanted on [ConnectionTopic]
	Files   []string     // everything that is no flag and no command

	// Of a line that is still being typed:
	Lost    bool   // a command is none
	Rest    bool   // -- stands in it: what follows are files
	Awaited string // the flag at its end, whose value is missing

	program     *cli.App
	global, own []typed // flags of the program, and of the command
	version     bool
}

// typed is a flag as it stands on the command line.
type typed struct {
	cli.Flag
	name  string // the one of its names that stands there
	value string
	words []string // the one or two arguments that it takes up
}

// Parse takes a command line apart, of which the program's name is not a part. After
// an error, the first of which it returns, it goes on: how to log and what to do at the
// end is known all the same.
func Parse(app *cli.App, args []string) (*Line, error) {
	l := &Line{program: app, Path: []string{app.Name}, Command: &cli.Command{Subcommands: app.Commands, ArgsUsage: "COMMAND"}}
	var first error
	for len(args) > 0 {
		n, err := l.take(args)
		first, args = cmp.Or(first, err), args[n:]
	}
	return l, cmp.Or(first, l.check())
}

// take reads the next argument and returns how many it takes up. What follows `--` is
// no flag, whatever it looks like.
func (l *Line) take(args []string) (n int, err error) {
	switch a := args[0]; {
	case a == "--":
		l.Rest = true
		for _, word := range args[1:] {
			err = cmp.Or(err, l.takeWord(word))
		}
		return len(args), err
	case a == "-" || a == "" || a[0] != '-':
		if name := l.withLongDash(a); name != "" {
			return 1, exit.Usage("the dash before "+name+" is no hyphen: word processors make such dashes", "type "+strings.Repeat("-", min(len(name), 2))+name)
		}
		return 1, l.takeWord(a)
	case disk.Exists(a):
		return 1, looksLikeFlag(a)
	}
	return l.takeFlag(args)
}

// withLongDash is the flag that is meant by an argument with another dash before its name; "" where none is.
func (l *Line) withLongDash(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "–—-"), "=")
	if strings.Trim(arg, "–—") == arg || Named(name, l.known()) == nil || disk.Exists(arg) {
		return ""
	}
	return name
}

// looksLikeFlag refuses an argument that begins with - and is the name of a file: a
// pattern such as *.csv brings them without anybody having written them.
func looksLikeFlag(arg string) error {
	return exit.Usage("there is a file called "+arg+", so it cannot be told whether the file or a flag is meant",
		"write ./"+arg+" for the file; for the flag, rename the file or work in another folder")
}

func (l *Line) takeWord(word string) error {
	commands := l.Command.Subcommands
	switch {
	case word == "-" && disk.Exists(word):
		return exit.Usage("there is a file called -, so it cannot be told whether the file or standard input is meant", "write ./- for the file, or rename it")
	case len(commands) == 0:
		l.Files = append(l.Files, word)
		return nil
	case word == "help":
		l.Help = true
		return nil
	case word == ConnectionTopic && l.Help && len(l.Path) == 1:
		l.Topic = true
		return nil
	}
	var names []string
	var below string // a command of that name below one of these
	for _, c := range commands {
		if c.HasName(word) {
			l.Command, l.Path = c, append(l.Path, word)
			return nil
		}
		names = append(names, c.Name)
		if slices.ContainsFunc(c.Subcommands, func(sub *cli.Command) bool { return sub.HasName(word) }) {
			below = c.Name + " " + word
		}
	}
	l.Lost = true
	hint := Near("", word, names, "see "+l.name()+" --help")
	switch {
	case below != "":
		hint = "did you mean leadferry " + below + "?"
	case len(l.Path) == 1:
		hint = cmp.Or(instead(word), hint)
	}
	return exit.Usage("there is no command "+strconv.Quote(word), hint)
}

// takeFlag reads a flag and its value. Before the command is known, flags of all
// commands are.
func (l *Line) takeFlag(args []string) (n int, err error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(args[0][1:], "-"), "=")
	switch name {
	case "help", "h":
		l.Help = true
		return 1, nil
	case "all":
		if l.Help {
			l.All = true
			return 1, nil
		}
	case "version", "v":
		l.version = true
		return 1, nil
	}
	f := Named(name, l.known())
	if f == nil {
		return 1, l.unknownFlag(args[0])
	}
	n = 1
	switch isSwitch := standsAlone(f); {
	case joined:
	case isSwitch:
		value = "true"
	case len(args) > 1 && args[1] != "-" && strings.HasPrefix(args[1], "-") && disk.Exists(args[1]):
		return 1, looksLikeFlag(args[1])
	case len(args) == 1:
		l.Awaited = f.Names()[0]
		fallthrough
	case l.swallows(args[1]):
		return 1, exit.Usage("flag "+args[0]+" needs a value", "see "+l.name()+" --help")
	default:
		n, value = 2, args[1]
	}
	into := &l.own
	if Named(name, l.program.Flags) != nil {
		into = &l.global
	}
	*into = append(*into, typed{f, name, value, args[:n]})
	return n, wrongValue(f, value)
}

// standsAlone reports whether a flag needs no value.
func standsAlone(f cli.Flag) bool {
	switch f.(type) {
	case *cli.BoolFlag, *cli.GenericFlag:
		return true
	}
	return false
}

// swallows reports whether what stands where a value belongs is a flag: in a script,
// the value may be a variable that nobody set.
func (l *Line) swallows(value string) bool {
	name, long := strings.CutPrefix(value, "--")
	name, _, _ = strings.Cut(name, "=")
	return long && (name == "" || name == "help" || name == "version" || Named(name, l.known()) != nil)
}

// wrongValue checks a flag's value by the flag's kind.
func wrongValue(f cli.Flag, value string) (err error) {
	name, hint := "--"+f.Names()[0], ""
	switch f.(type) {
	case *cli.BoolFlag:
		_, err = strconv.ParseBool(value)
		hint = "leave the value out"
	case *cli.IntFlag:
		_, err = strconv.Atoi(value)
		hint = "it takes a whole number, for example " + name + " 10"
	case *cli.Uint64Flag:
		_, err = strconv.ParseUint(value, 10, 64)
		hint = "it takes a whole number that is not negative"
	case *cli.Float64Flag:
		_, err = strconv.ParseFloat(value, 64)
		hint = "it takes a number, for example " + name + " 4 or 0.5"
	case *cli.DurationFlag:
		_, err = time.ParseDuration(value)
		hint = "it takes a time in s, m or h, for example " + name + " 30s, 15m or 2h"
	}
	if err != nil { // the value may be a secret that was meant for another flag
		return exit.Usage("the value of "+name+" cannot be read", hint)
	}
	if value == "" && slices.Contains([]string{"checkpoint", "fleet", "shard", "out", "results", "rejects", "problems", "reconciliation", "pull", "summary", "metrics", "output", "created-by", "state"}, f.Names()[0]) {
		return exit.Usage(name+" is given without a name", "is a variable not set? Leave the flag out to use the default")
	}
	return nil
}

// check finds what is wrong with the line as a whole, unless only help is wanted.
func (l *Line) check() error {
	if slices.Equal(l.Files, []string{"help"}) && !strings.HasPrefix(l.Command.ArgsUsage, "KEY") && !disk.Exists("help") {
		l.Help = true
	}
	switch {
	case l.Help || l.version:
		return nil
	case len(l.own) > 0 && len(l.Command.Subcommands) > 0:
		return exit.Usage("no command given", "see "+l.name()+" --help")
	}
	for _, f := range l.own {
		main := f.Names()[0]
		if Named(f.name, l.Command.Flags) == nil {
			return l.unknownFlag(f.words[0])
		}
		if main != f.name && slices.ContainsFunc(l.own, func(other typed) bool { return other.name == main }) {
			return exit.Usage("-"+f.name+" and --"+main+" are one flag", "give it once")
		}
		if err := l.mislaid(&f); err != nil {
			return err
		}
	}
	if l.Command.ArgsUsage == "" && len(l.Files) > 0 {
		return exit.Usage(strings.Join(l.Path[1:], " ")+" takes no file names", cmp.Or(instead(l.Path[1]), "see "+l.name()+" --help"))
	}
	return nil
}

// mislaid refuses a file name that may be meant as the word of a switch: that stands behind = only.
func (l *Line) mislaid(f *typed) error {
	if g, is := f.Flag.(*cli.GenericFlag); is {
		for _, word := range l.Files {
			if g.Value.(*OptionalWord).fits(word) && !disk.Exists(word) {
				return exit.Usage(word+" behind --"+f.name+" is taken for a file, which is not there", "write --"+f.name+"="+word)
			}
		}
	}
	return nil
}

// Ordered gives the arguments in the order that the parser expects: flags of the program,
// the command, its flags, `--` and file names.
func (l *Line) Ordered() []string {
	switch {
	case l.Help:
		return append(slices.Clone(l.Path), "--help")
	case l.version:
		return []string{l.Path[0], "--version"}
	}
	out := []string{l.Path[0]}
	for _, f := range l.global {
		out = append(out, f.words...)
	}
	out = append(out, l.Path[1:]...)
	for _, f := range l.own {
		out = append(out, f.words...)
	}
	if len(l.Files) > 0 {
		out = append(append(out, "--"), l.Files...)
	}
	return out
}

// Typed is the value that a flag has on the command line, the last one of several.
func (l *Line) Typed(name string) (value string, found bool) {
	for _, f := range slices.Concat(l.global, l.own) {
		if f.Names()[0] == name {
			value, found = f.value, true
		}
	}
	return value, found
}

// name is the command so far, as a person types it.
func (l *Line) name() string { return strings.Join(l.Path, " ") }

// known are the flags that may stand here: those of the program, of the command, and
// of what may still be named below it.
func (l *Line) known() []cli.Flag {
	return slices.Concat(l.Command.Flags, l.program.Flags, flagsOf(l.Command.Subcommands))
}

func flagsOf(commands []*cli.Command) (flags []cli.Flag) {
	for _, c := range commands {
		flags = slices.Concat(flags, c.Flags, flagsOf(c.Subcommands))
	}
	return flags
}

// Named is the flag of a name among several, or nil.
func Named(name string, flags []cli.Flag) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// unknownFlag refuses a flag that nobody knows, by what was typed.
func (l *Line) unknownFlag(typed string) error {
	typed, _, _ = strings.Cut(typed, "=")
	name := strings.TrimPrefix(typed[1:], "-")
	var others, names []string
	for _, c := range l.program.Commands {
		if Named(name, flagsOf([]*cli.Command{c})) != nil {
			others = append(others, c.Name)
		}
	}
	if len(others) > 0 {
		return exit.Usage("there is no flag "+typed+" here", "it is one of leadferry "+strings.Join(others, ", "))
	}
	for _, f := range l.known() {
		if len(name) > 1 { // any letter is near to any other
			names = append(names, f.Names()[0])
		}
	}
	otherwise := "see " + l.name() + " --help; a name that begins with - stands behind --"
	hint := cmp.Or(instead(name), l.called(name), Near("--", name, names, ""))
	if letter, rest := utf8.DecodeRuneInString(name); hint == "" && len(name) > rest && !strings.HasPrefix(typed, "--") {
		if Named(string(letter), l.known()) != nil {
			otherwise = "a value stands apart from its flag: -" + string(letter) + " VALUE"
		} else {
			typed = "-" + string(letter) + "…" // as other programs take passwords
		}
	}
	return exit.Usage("there is no flag "+typed, cmp.Or(hint, otherwise))
}

// called names the flag that may stand here which other programs call so; "" where there is none.
func (l *Line) called(name string) string {
	ours := map[string]string{
		"n": "dry-run", "simulate": "dry-run", "y": "yes", "force": "yes", "q": "quiet", "silent": "quiet",
		"map": "mapping", "mapping-file": "mapping", "parallel": "concurrency", "workers": "concurrency", "separator": "delimiter",
	}[name]
	if ours == "" || Named(ours, l.known()) == nil {
		return ""
	}
	return "it is called --" + ours + " here"
}

// instead is what to write in the place of a word or a flag that people try and that is none here, or behind a command that
// takes no such word. It repeats nothing: a word behind login may be the password.
func instead(word string) string {
	switch word {
	case "leadferry":
		return "leave one leadferry out"
	case "version":
		return "write leadferry --version"
	case "checkpoint":
		return "the checkpoint is named with --checkpoint"
	case "config":
		return "the profile is named with --profile"
	case "login":
		return "the account is named with --email; its password is asked for, or comes from LEADFERRY_PASSWORD"
	case "password":
		return "it would show in the list of processes: it is asked for, or comes from LEADFERRY_PASSWORD"
	case "client-secret":
		return "it would show in the list of processes: set LEADFERRY_CLIENT_SECRET, --client-secret-file or --client-secret-command"
	case "file", "input":
		return "files stand without a flag"
	case "verbose", "debug":
		return "write --log-level debug"
	}
	return ""
}

// Near asks whether the name that is nearest is meant; where none is near, it gives
// other.
func Near(prefix, name string, names []string, other string) string {
	if n := spelling.Nearest(name, names); n != "" {
		return "did you mean " + prefix + n + "?"
	}
	return other
}
