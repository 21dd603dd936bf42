// Package flags has the table of all flags, puts a command line in urfave's order, and says where a setting comes from.
package flags

import (
	"cmp"
	_ "embed"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
)

// Variable returns the name of a flag's environment variable.
func Variable(flag string) string {
	return "LEADFERRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

//go:embed table.txt
var table string

// row is a line of the table of flags. The table explains its columns.
type row struct {
	set, group, kind, value, name, usage string
	short, variables                     []string
	rare                                 bool
}

var rows = sync.OnceValue(func() (all []*row) {
	set := ""
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		switch named := strings.HasPrefix(line, "["); {
		case named:
			set = strings.Trim(line, "[]\n")
		case set != "" && len(words) > 3:
			r := &row{set: set, group: strings.Trim(words[0], "-"), usage: strings.Join(words[3:], " ")}
			r.kind, r.value, _ = strings.Cut(words[1], "=")
			marked, isRare := strings.CutSuffix(words[2], "!")
			names := strings.Split(strings.TrimSuffix(marked, "$"), ",")
			r.name, r.short, r.rare = names[0], names[1:], isRare
			if strings.HasSuffix(marked, "$") {
				r.variables = []string{Variable(r.name)}
			}
			all = append(all, r)
		}
	}
	return all
})

// Of makes the flags of these sets of the table; sets are separated by blanks.
func Of(sets string) (all []cli.Flag) {
	for set := range strings.FieldsSeq(sets) {
		for _, r := range rows() {
			if r.set == set {
				all = append(all, r.flag())
			}
		}
	}
	return all
}

// Names returns the names of all flags; true means that a variable can set the flag, too.
func Names() map[string]bool {
	all := map[string]bool{}
	for _, r := range rows() {
		all[r.name] = all[r.name] || r.variables != nil
	}
	return all
}

// flag makes the flag of a row. For urfave all values are texts; Action checks them.
func (r *row) flag() cli.Flag {
	switch r.kind {
	case "switch":
		return &cli.BoolFlag{
			Name: r.name, Aliases: r.short, Usage: r.usage, Category: r.group, Hidden: r.rare, DisableDefaultText: true,
		}
	case "list":
		return &cli.StringSliceFlag{
			Name: r.name, Usage: r.usage, EnvVars: r.variables, Category: r.group, Hidden: r.rare,
		}
	}
	standard, usage := r.value, r.usage
	if r.kind == "choice" {
		standard, _, _ = strings.Cut(r.value, "|")
		usage = strings.Replace(usage, "%", "`"+strings.TrimPrefix(r.value, "|")+"`", 1)
	}
	return &cli.StringFlag{
		Name: r.name, Aliases: r.short, Value: standard, DefaultText: standard, Usage: usage, EnvVars: r.variables,
		Category: r.group, Hidden: r.rare,
		Action: func(c *cli.Context, value string) error {
			if what, good := r.takes(value); value != "" && !good { // an empty variable counts as not set
				return exit.Usage("--"+r.name+" takes "+what, "see "+cmp.Or(c.Command.HelpName, c.App.Name)+" --help")
			}
			return nil
		},
	}
}

// forms are kinds of values: in words, and as a regular expression.
var forms = map[string][2]string{
	"count": {"a whole number, 0 or more", `\d{1,18}`},
	"slots": {"a whole number from 1 to 1024", `0*[1-9]\d{0,2}|10[01]\d|102[0-4]`}, // no service needs more
	"rate":  {"a number, 0 or more", `\d{1,9}(\.\d*)?|\.\d+`},
	"share": {"a number or a percentage, such as 100, 5% or 0", `\d{1,18}|(\d\d?|100)%`},
	"codes": {
		"HTTP statuses from 400 to 599, such as 500,502, or none", `\s*([45]\d\d|none)\s*(,\s*([45]\d\d|none)\s*)*`,
	},
	"run":      {"the ID of a run, at the end of its folder's name: eight of 0 to 9 and a to f", `[0-9a-f]{8}`},
	"sign":     {"one character, or tab", `tab|\\t|.`},
	"name":     {"1 to 63 letters, digits, dots, underscores and hyphens", `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`},
	"problems": {"a file that ends with .csv or .jsonl, or github", `(?i:.+\.(csv|jsonl))|github`},
}

// takes says what values the flag takes, and whether value is one. Never show value: it may be a secret.
func (r *row) takes(value string) (what string, good bool) {
	form, known := forms[r.kind]
	switch r.kind {
	case "time":
		d, err := time.ParseDuration(value)
		return "a duration, such as 90s or 10m", err == nil && d >= 0
	case "choice":
		words := strings.TrimPrefix(r.value, "|")
		form, known = [2]string{english.WordSeries(strings.Split(words, "|"), "or"), words}, true
	}
	return form[0], !known || regexp.MustCompile(`(?s)^(`+form[1]+`)$`).MatchString(value)
}

// Int returns the value of a flag as a number; 0 if the command has no such flag.
func Int(c *cli.Context, name string) int {
	n, _ := strconv.Atoi(c.String(name))
	return n
}

// Time returns the value of a flag as a duration.
func Time(c *cli.Context, name string) time.Duration {
	d, _ := time.ParseDuration(c.String(name))
	return d
}

// Named returns the flag with this name, or nil.
func Named(name string, flags []cli.Flag) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// TakesValue reports whether a flag's value may be the next argument: one shown as [= in help is joined to the flag.
func TakesValue(f cli.Flag) bool {
	shown := f.(cli.DocGenerationFlag)
	return shown.TakesValue() && !strings.Contains(shown.GetUsage(), "`[=")
}

// Line is a command line in urfave's order: urfave stops at a file name, and would run `import f.csv --dry-run` live.
type Line struct {
	Args    []string           // program, command, flags, -- and file names
	Command *cli.Command       // the program itself until a command is named
	Path    []string           // the words that name the command, first the program
	Files   []string           // arguments that are neither flags nor commands
	Typed   map[string]string  // values of flags on the line, by long name; the last one counts
	Profile map[string]Setting // settings of the profile
}

// Bool reports whether a switch is set on the line.
func (l *Line) Bool(name string) bool {
	is, _ := strconv.ParseBool(l.Typed[name])
	return is
}

// Order puts arguments, without the program's name, in order. It returns the first mistake, but reads on to the end,
// because flags there may say how to log and what to do when the command ends.
func Order(app *cli.App, args []string) (l *Line, mistake error) {
	l = &Line{Path: []string{app.Name}, Typed: map[string]string{}}
	l.Command = &cli.Command{
		Usage: app.Usage, Description: app.Description, ArgsUsage: "COMMAND", Flags: app.Flags,
		Subcommands: app.Commands,
	}
	for _, word := range args { // a pattern such as * may have added it
		if word == "--" {
			break
		}
		if strings.HasPrefix(word, "-") && disk.Exists(word) {
			mistake = exit.Usage("there is a file called "+word+", so it cannot be told whether the file is meant",
				"write ./"+word+" for the file; else rename it or work in another folder")
		}
	}
	for onlyFiles := false; len(args) > 0; {
		word, used, err := args[0], 1, error(nil)
		switch {
		case word == "--" && !onlyFiles:
			onlyFiles = true
		case onlyFiles || len(word) < 2 || word[0] != '-':
			err = l.word(word)
		default:
			used, err = l.flag(word, args[1:])
		}
		args, mistake = args[used:], cmp.Or(mistake, err)
	}
	l.Args = slices.Concat(l.Path, l.Args, []string{"--"}, l.Files)
	if l.Command.ArgsUsage == "" && len(l.Files) > 0 { // do not show it: it may be a password in the wrong place
		hint := l.help()
		if Named("checkpoint", l.Command.Flags) != nil {
			hint = "--checkpoint names the checkpoint; " + hint
		}
		mistake = cmp.Or(mistake, exit.Usage(strings.Join(l.Path[1:], " ")+" takes no file names", hint))
	}
	return l, mistake
}

// word reads a word that is no flag: a command, or after the last command a file.
func (l *Line) word(word string) error {
	commands := l.Command.Subcommands
	switch {
	case len(commands) == 0:
		l.Files = append(l.Files, word)
		return nil
	case word == "help":
		l.Typed["help"] = "true"
		return nil
	}
	names, nested := []string(nil), ""
	for _, c := range commands {
		if c.HasName(word) {
			l.Command, l.Path = c, append(l.Path, word)
			return nil
		}
		names = append(names, c.Name)
		if c.Command(word) != nil {
			nested = "did you mean leadferry " + c.Name + " " + word + "?"
		}
	}
	return exit.Usage("there is no command "+strconv.Quote(word), cmp.Or(nested, Near("", word, names, l.help())))
}

// flag reads a flag with its value, which may be the next argument. It returns how many arguments it used.
func (l *Line) flag(word string, next []string) (used int, err error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
	f := Named(name, l.Command.Flags)
	switch {
	case name == "all" && l.Typed["help"] == "true": // help --all shows rare flags, too
		l.Typed[name] = "true"
		return 1, nil
	case f == nil:
		return 1, l.unknown(word)
	case joined:
		if _, bad := strconv.ParseBool(value); bad != nil && !f.(cli.DocGenerationFlag).TakesValue() {
			err = exit.Usage("--"+f.Names()[0]+" takes no value", l.help())
		}
		used = 1
	case !TakesValue(f):
		value, used = "true", 1
	case len(next) == 0 || flagLike().MatchString(next[0]): // in a script: a variable that is not set
		return 1, exit.Usage("flag "+word+" needs a value",
			l.help()+"; a value that begins with - is joined to it: "+word+"=VALUE")
	default:
		value, used = next[0], 2
	}
	name = f.Names()[0]
	l.Typed[name] = value
	l.Args = append(l.Args, "--"+name+"="+value)
	if value == "" && name != "namespace" { // namespace may be empty
		err = exit.Usage("--"+name+" is given without a value",
			"is a variable not set? Without the flag, the default counts")
	}
	return used, err
}

// flagLike matches the beginning of a flag; a negative number is a value.
var flagLike = spelling.Form(`^-\D`)

// help names the help of the command so far.
func (l *Line) help() string { return "see " + strings.Join(l.Path, " ") + " --help" }

// unknown refuses a flag that the command lacks. Of letters after one dash, it shows the first: a password may follow.
func (l *Line) unknown(typed string) error {
	typed, _, _ = strings.Cut(typed, "=")
	name := strings.TrimPrefix(typed[1:], "-")
	var names []string
	for _, f := range l.Command.Flags {
		names = append(names, f.Names()[0])
	}
	near := Near("--", name, names, "")
	if near == "" && !strings.HasPrefix(typed, "--") && len(typed) > 2 {
		return exit.Usage("there is no flag "+typed[:2]+"…", "put a blank between flag and value: "+typed[:2]+" VALUE")
	}
	return exit.Usage("there is no flag "+typed, cmp.Or(near, l.help()+"; write -- before names that begin with -"))
}

// Near asks whether the nearest name is meant; if no name is near, it returns other.
func Near(prefix, name string, names []string, other string) string {
	if n := spelling.Nearest(name, names); n != "" && len(name) > 1 { // any letter is near any other
		return "did you mean " + prefix + n + "?"
	}
	return other
}

// Setting is the value in effect and where it comes from.
type Setting struct {
	Name   string // of the flag
	Value  string // "": not set
	From   string // in words; "" if not set
	Origin Origin
}

// Origin says where a setting comes from: a flag overrides the environment, which overrides the profile.
type Origin uint8

// The origins; each is overridden by those below it.
const (
	ByNobody Origin = iota
	ByProfile
	ByEnvironment
	ByFlag
)

// Given reports whether the command line or the environment sets it.
func (s *Setting) Given() bool { return s.Origin >= ByEnvironment }

// Given returns the setting of the flag, its variable or the profile. An empty variable is not set, an empty flag is.
func (l *Line) Given(name string) Setting {
	if value, typed := l.Typed[name]; typed {
		return Setting{name, value, "flag --" + name, ByFlag}
	}
	variable := Variable(name)
	if value := os.Getenv(variable); value != "" {
		return Setting{name, value, "environment " + variable, ByEnvironment}
	}
	return cmp.Or(l.Profile[name], Setting{Name: name})
}
