package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder puts flags before file names. The flag parser stops at the first file
// name without a word, so that `import f.csv --dry-run` would be a live run.
// What follows `--` stays as it is.
func reorder(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	out := []string{args[0]}
	flags, commands := app.Flags, app.Commands
	rest := args[1:]
	for {
		var before []string
		rest, before = splitUntilCommand(rest, flags, commands)
		out = append(out, before...)
		if len(rest) == 0 {
			return out, nil
		}
		command := find(commands, rest[0])
		if command == nil {
			return nil, unknownCommand(commands, rest[0])
		}
		out, rest = append(out, rest[0]), rest[1:]
		flags, commands = slices.Concat(command.Flags, app.Flags), command.Subcommands
		if len(commands) == 0 {
			break
		}
	}
	return arrange(out, rest, flags, app.Flags)
}

// splitUntilCommand takes the flags that stand before a command's name.
func splitUntilCommand(args []string, flags []cli.Flag, commands []*cli.Command) (rest, taken []string) {
	for len(args) > 0 && isFlag(args[0]) && len(commands) > 0 {
		n := 1
		if takesValue(args[0], flags) && len(args) > 1 {
			n = 2
		}
		taken, args = append(taken, args[:n]...), args[n:]
	}
	return args, taken
}

// arrange puts global flags where the parser expects them, then the command's
// flags, then everything else behind `--`.
func arrange(head, args []string, flags, global []cli.Flag) ([]string, error) {
	var own, front, files []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			files = append(files, args[i+1:]...)
			break
		}
		if !isFlag(a) {
			files = append(files, a)
			continue
		}
		n := 1
		if takesValue(a, flags) {
			if i+1 == len(args) {
				return nil, usage("flag "+a+" needs a value", "see --help")
			}
			n = 2
		}
		if known(a, global) {
			front = append(front, args[i:i+n]...)
		} else {
			own = append(own, args[i:i+n]...)
		}
		i += n - 1
	}
	out := slices.Concat(head[:1], front, head[1:], own)
	if len(files) > 0 {
		out = append(append(out, "--"), files...)
	}
	return out, nil
}

func isFlag(a string) bool { return len(a) > 1 && a[0] == '-' }

// takesValue reports whether the next argument belongs to the flag.
func takesValue(arg string, flags []cli.Flag) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	f := flagNamed(arg, flags)
	if f == nil {
		return false
	}
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func known(arg string, flags []cli.Flag) bool { return flagNamed(arg, flags) != nil }

func flagNamed(arg string, flags []cli.Flag) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
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
