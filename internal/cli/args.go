package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// commandLine is a command line taken apart, argument by argument. The flag parser
// stops at the first file name without a word, so that `import f.csv --dry-run` would
// be a live run, and knows --help and --version in some places only.
type commandLine struct {
	app           *cli.App
	path          []string     // the words that name the command
	command       *cli.Command // nil until one is named
	global        []string     // flags of the program, with their values
	own           []string     // flags of the command, with their values
	flags         []string     // the same, their names alone
	files         []string     // everything else
	help, version bool
}

// reorder gives the arguments in the order that the parser expects: flags of the
// program, the command, its flags, `--` and file names.
func reorder(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	l := &commandLine{app: app}
	for rest := args[1:]; len(rest) > 0; {
		n, err := l.take(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return l.ordered(args[0])
}

// take reads the next argument and returns how many it takes up. What follows `--` is
// no flag, whatever it looks like.
func (l *commandLine) take(args []string) (int, error) {
	switch a := args[0]; {
	case a == "--":
		for _, word := range args[1:] {
			if err := l.takeWord(word); err != nil {
				return 0, err
			}
		}
		return len(args), nil
	case a != "-" && isThere(a):
		return 0, looksLikeFlag(a)
	case isFlag(a):
		return l.takeFlag(args)
	default:
		return 1, l.takeWord(a)
	}
}

// isThere reports whether an argument that begins with - is the name of a file: a
// pattern such as *.csv brings them without anybody having written them.
func isThere(arg string) bool {
	return strings.HasPrefix(arg, "-") && exists(arg)
}

func looksLikeFlag(arg string) error {
	return usage("there is a file called "+arg+", so it cannot be told whether the file or a flag is meant",
		"write ./"+arg+" for the file; for the flag, rename the file or work in another folder")
}

func isFlag(a string) bool { return len(a) > 1 && a[0] == '-' }

func (l *commandLine) takeWord(word string) error {
	commands := l.below()
	switch {
	case word == "-" && isThere(word):
		return usage("there is a file called -, so it cannot be told whether the file or standard input is meant", "write ./- for the file, or rename it")
	case len(commands) == 0:
		l.files = append(l.files, word)
		return nil
	case word == "help":
		l.help = true
		return nil
	}
	c := find(commands, word)
	if c == nil {
		return unknownCommand(commands, l.name(), word)
	}
	l.command, l.path = c, append(l.path, word)
	return nil
}

// takeFlag reads a flag and its value. Before the command is known, flags of all
// commands are.
func (l *commandLine) takeFlag(args []string) (int, error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(args[0][1:], "-"), "=")
	switch name {
	case "help", "h":
		l.help = true
		return 1, nil
	case "version", "v":
		l.version = true
		return 1, nil
	}
	f := flagNamed(name, l.known())
	if f == nil {
		return 0, l.unknownFlag(name)
	}
	n := 1
	if takesValue(f) && !joined {
		if len(args) > 1 && args[1] != "-" && isThere(args[1]) {
			return 0, looksLikeFlag(args[1])
		}
		if len(args) == 1 || l.swallows(args[1]) {
			return 0, usage("flag "+args[0]+" needs a value", "see "+l.name()+" --help")
		}
		n, value = 2, args[1]
	}
	if err := plausible(f, value, joined); err != nil {
		return 0, err
	}
	if flagNamed(name, l.app.Flags) != nil {
		l.global = append(l.global, args[:n]...)
	} else {
		l.own, l.flags = append(l.own, args[:n]...), append(l.flags, name)
	}
	return n, nil
}

// swallows reports whether what stands where a value belongs is a flag: in a script,
// the value may be a variable that nobody set.
func (l *commandLine) swallows(value string) bool {
	name, long := strings.CutPrefix(value, "--")
	name, _, _ = strings.Cut(name, "=")
	return long && (name == "" || flagNamed(name, l.known()) != nil || name == "help" || name == "version")
}

// plausible checks what a flag's value must be by its kind.
func plausible(f cli.Flag, value string, joined bool) error {
	name := "--" + f.Names()[0]
	var err error
	hint := ""
	switch f.(type) {
	case *cli.BoolFlag:
		if joined {
			_, err = strconv.ParseBool(value)
		}
		hint = "leave the value out"
	case *cli.IntFlag:
		_, err = strconv.Atoi(value)
		hint = "it takes a whole number, for example " + name + " 10"
	case *cli.Float64Flag:
		_, err = strconv.ParseFloat(value, 64)
		hint = "it takes a number, for example " + name + " 4 or 0.5"
	case *cli.DurationFlag:
		_, err = time.ParseDuration(value)
		hint = "it takes a time with its unit, for example " + name + " 30s, 15m or 2h"
	}
	if err != nil {
		return usage(strconv.Quote(value)+" is no value for "+name, hint)
	}
	if value == "" && slices.Contains([]string{"checkpoint", "out", "results", "rejects", "summary", "metrics", "output"}, f.Names()[0]) {
		return usage(name+" is given without a name", "is a variable not set? Leave the flag out to use the default")
	}
	return nil
}

// ordered puts the parts together.
func (l *commandLine) ordered(program string) ([]string, error) {
	if l.command != nil && slices.Equal(l.files, []string{"help"}) && !strings.HasPrefix(l.command.ArgsUsage, "KEY") && !exists("help") {
		l.help = true
	}
	switch {
	case l.help:
		return append(append([]string{program}, l.path...), "--help"), nil
	case l.version:
		return []string{program, "--version"}, nil
	}
	if len(l.own) > 0 && len(l.below()) > 0 {
		return nil, usage("no command given", "see "+l.name()+" --help")
	}
	for _, name := range l.flags {
		f := flagNamed(name, l.ownFlags())
		if f == nil {
			return nil, l.unknownFlag(name)
		}
		if main := f.Names()[0]; main != name && slices.Contains(l.flags, main) {
			return nil, usage("-"+name+" and --"+main+" are one flag", "give it once")
		}
	}
	if l.command != nil && l.command.ArgsUsage == "" && len(l.files) > 0 {
		return nil, usage(strings.Join(l.path, " ")+" takes no file names", "see "+l.name()+" --help")
	}
	out := slices.Concat([]string{program}, l.global, l.path, l.own)
	if len(l.files) > 0 {
		out = append(append(out, "--"), l.files...)
	}
	return out, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// below are the commands that the next word may name.
func (l *commandLine) below() []*cli.Command {
	if l.command == nil {
		return l.app.Commands
	}
	return l.command.Subcommands
}

// name is the command so far, as a person types it.
func (l *commandLine) name() string {
	return strings.Join(append([]string{l.app.Name}, l.path...), " ")
}

func (l *commandLine) ownFlags() []cli.Flag {
	if l.command == nil {
		return nil
	}
	return l.command.Flags
}

// known are the flags that may stand here: those of the program, of the command, and
// of what may still be named below it.
func (l *commandLine) known() []cli.Flag {
	return slices.Concat(l.ownFlags(), l.app.Flags, flagsOf(l.below()))
}

func flagsOf(commands []*cli.Command) (flags []cli.Flag) {
	for _, c := range commands {
		flags = slices.Concat(flags, c.Flags, flagsOf(c.Subcommands))
	}
	return flags
}

func (l *commandLine) unknownFlag(name string) error {
	var names []string
	for _, f := range l.known() {
		names = append(names, f.Names()...)
	}
	if others := commandsWith(name, l.app.Commands); len(others) > 0 {
		return usage("there is no flag --"+name+" here", "it is one of leadferry "+strings.Join(others, ", "))
	}
	return usage("there is no flag --"+name, near("--", name, names, "see "+l.name()+" --help; a name that begins with - stands behind --"))
}

// commandsWith are the commands that have a flag.
func commandsWith(flag string, commands []*cli.Command) (names []string) {
	for _, c := range commands {
		if flagNamed(flag, c.Flags) != nil || len(commandsWith(flag, c.Subcommands)) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// takesValue reports whether the next argument belongs to the flag.
func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func flagNamed(name string, flags []cli.Flag) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}
