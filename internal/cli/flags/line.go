// Package flags is the command line: flags may stand before and behind file names, and what a flag's value is, it or its
// environment variable says.
package flags

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// ConnectionTopic is what `leadferry help` takes for the flags that lead to the service, which are the same for every
// command.
const ConnectionTopic = "connection"

// Line is a command line in the order in which urfave parses it. It stops at the first file name without a word, so that
// `import f.csv --dry-run` would be a live run, and knows --help and --version in some places only.
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
	global, own []string          // arguments that are flags of the program, and of the command, with their values
	typed       []string          // the flags of the command, as they were typed
	values      map[string]string // of flags, by their long names
	version     bool
}

// Parse puts a command line in order, of which the program's name is not a part. After an error, the first of which it
// returns, it goes on: how to log and what to do at the end is known all the same.
func Parse(app *cli.App, args []string) (l *Line, err error) {
	l = &Line{
		program: app, Path: []string{app.Name}, Command: &cli.Command{Subcommands: app.Commands, ArgsUsage: "COMMAND"}, values: map[string]string{},
	}
	for len(args) > 0 {
		taken, fault := 1, error(nil)
		switch a := args[0]; {
		case a == "--" && !l.Rest:
			l.Rest = true
		case l.Rest || a == "-" || a == "" || a[0] != '-':
			fault = l.word(a)
		default:
			taken, fault = l.flag(args)
		}
		args, err = args[taken:], cmp.Or(err, fault)
	}
	return l, cmp.Or(err, l.check())
}

// word takes a word that is no flag: a command, or a file behind the last of them.
func (l *Line) word(word string) error {
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
	hint := ""
	for _, c := range commands {
		if c.HasName(word) {
			l.Command, l.Path = c, append(l.Path, word)
			return nil
		}
		names = append(names, c.Name)
		if slices.ContainsFunc(c.Subcommands, func(sub *cli.Command) bool { return sub.HasName(word) }) {
			hint = "did you mean leadferry " + c.Name + " " + word + "?"
		}
	}
	l.Lost = true
	return exit.Usage("there is no command "+strconv.Quote(word), cmp.Or(hint, Near("", word, names, "see "+l.name()+" --help")))
}

// flag takes a flag, with its value where that is an argument of its own, and returns how many arguments these are.
func (l *Line) flag(args []string) (taken int, err error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(args[0][1:], "-"), "=")
	f := Named(name, l.known())
	switch {
	case disk.Exists(args[0]):
		return 1, fileOrFlag(args[0])
	case name == "help" || name == "h":
		l.Help = true
		return 1, nil
	case name == "version" || name == "v":
		l.version = true
		return 1, nil
	case name == "all" && l.Help:
		l.All = true
		return 1, nil
	case f == nil:
		return 1, l.unknown(args[0])
	}
	taken = 1
	long := f.Names()[0]
	_, isSwitch := f.(*cli.BoolFlag)
	if _, takesWord := f.(*cli.GenericFlag); !joined && !isSwitch && !takesWord {
		if len(args) == 1 {
			l.Awaited = long
		} else if len(args[1]) > 1 && args[1][0] == '-' && disk.Exists(args[1]) {
			return 1, fileOrFlag(args[1])
		}
		if len(args) == 1 || len(args[1]) > 1 && args[1][0] == '-' && (args[1][1] < '0' || args[1][1] > '9') { // in a script, a variable that nobody set
			return 1, exit.Usage("flag "+args[0]+" needs a value", "see "+l.name()+" --help; a value that begins with - is joined to it: "+args[0]+"=VALUE")
		}
		taken, value = 2, args[1]
	}
	l.values[long] = cmp.Or(value, map[bool]string{true: "true"}[isSwitch])
	if Named(name, l.program.Flags) != nil {
		l.global = append(l.global, args[:taken]...)
	} else {
		l.own, l.typed = append(l.own, args[:taken]...), append(l.typed, args[0])
	}
	if value == "" && (joined || taken == 2) && long != "proxy" && long != "namespace" { // which say themselves what it means
		return taken, exit.Usage("--"+long+" is given without a value", "is a variable not set? Leave the flag out to use the default")
	}
	return taken, nil
}

// fileOrFlag refuses the name of a file that begins with -: a pattern such as * brings it without anybody having written it.
func fileOrFlag(arg string) error {
	return exit.Usage("there is a file called "+arg+", so it cannot be told whether the file or a flag is meant",
		"write ./"+arg+" for the file; for the flag, rename the file or work in another folder")
}

// check finds what is wrong with the line as a whole, unless only help is wanted.
func (l *Line) check() error {
	if slices.Equal(l.Files, []string{"help"}) && !strings.HasPrefix(l.Command.ArgsUsage, "KEY") && !disk.Exists("help") {
		l.Help = true
	}
	if l.Help || l.version {
		return nil
	}
	for _, arg := range l.typed {
		if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); Named(name, l.Command.Flags) == nil {
			return l.unknown(arg)
		}
	}
	if l.Command.ArgsUsage == "" && len(l.Files) > 0 { // which may be a password
		return exit.Usage(strings.Join(l.Path[1:], " ")+" takes no file names", "see "+l.name()+" --help")
	}
	return nil
}

// Ordered gives the arguments in the order that the parser expects: flags of the program, the command, its flags, `--`
// and file names.
func (l *Line) Ordered() []string {
	switch {
	case l.Help:
		return append(slices.Clone(l.Path), "--help")
	case l.version:
		return []string{l.Path[0], "--version"}
	}
	out := slices.Concat(l.Path[:1], l.global, l.Path[1:], l.own)
	if len(l.Files) > 0 {
		out = append(append(out, "--"), l.Files...)
	}
	return out
}

// Typed is the value that a flag has on the command line, the last one of several.
func (l *Line) Typed(name string) (value string, found bool) {
	value, found = l.values[name]
	return value, found
}

// name is the command so far, as a person types it.
func (l *Line) name() string { return strings.Join(l.Path, " ") }

// known are the flags that may stand here: those of the program, of the command, and of what may still be named below it.
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

// unknown refuses a flag that nobody knows here. Of letters joined to one dash, as other programs take passwords, it
// shows the first.
func (l *Line) unknown(typed string) error {
	typed, _, _ = strings.Cut(typed, "=")
	name := strings.TrimPrefix(typed[1:], "-")
	var others, names []string
	for _, c := range l.program.Commands {
		if Named(name, flagsOf([]*cli.Command{c})) != nil {
			others = append(others, c.Name)
		}
	}
	for _, f := range l.known() {
		names = append(names, f.Names()[0])
	}
	switch hint := Near("--", name, names, ""); {
	case len(others) > 0:
		return exit.Usage("there is no flag "+typed+" here", "it is one of leadferry "+strings.Join(others, ", "))
	case name == "password" || name == "client-secret":
		return exit.Usage("there is no flag "+typed, "it would show in the list of processes: see "+l.name()+" --help")
	case hint == "" && !strings.HasPrefix(typed, "--") && len(typed) > 2:
		return exit.Usage("there is no flag "+typed[:2]+"…", "a value stands apart from its flag: "+typed[:2]+" VALUE")
	default:
		return exit.Usage("there is no flag "+typed, cmp.Or(hint, "see "+l.name()+" --help; a name that begins with - stands behind --"))
	}
}

// Near asks whether the name that is nearest is meant; where none is near, it gives other.
func Near(prefix, name string, names []string, other string) string {
	if n := spelling.Nearest(name, names); n != "" && len(name) > 1 { // any letter is near to any other
		return "did you mean " + prefix + n + "?"
	}
	return other
}
