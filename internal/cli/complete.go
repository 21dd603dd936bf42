package cli

import (
	"embed"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/flags"
	"leadferry/internal/spelling"
)

// completeWord is the first argument by which completion scripts ask. Behind it are the words of the line up to the
// cursor, without the program's name. The last of them, which may be empty, has a dot at its end: some shells drop
// empty arguments.
const completeWord = "__complete"

// shells are those that have a completion script. A script hands over what was typed and evaluates nothing of it.
var shells = []string{"bash", "zsh", "fish", "powershell"}

//go:embed scripts
var scripts embed.FS

func (p *program) completion(c *cli.Context) error {
	script, err := scripts.ReadFile("scripts/leadferry." + c.Args().First())
	if c.NArg() != 1 || err != nil {
		return exit.Usage("completion takes one of "+strings.Join(shells, ", "), "such as completion bash")
	}
	return p.print(string(script))
}

// Completes answers a completion script on out, where that is what args are: the program itself must not begin then,
// since a half-typed command may be `checkpoint forget KEY`.
func Completes(args []string, out *os.File) bool {
	if len(args) < 2 || args[1] != completeWord {
		return false
	}
	_, _ = io.WriteString(out, completed(args[2:])) // who does not listen wants none
	return true
}

// completed is what may be at the cursor, as scripts read it: a line that says files or words, then a line a word,
// with a tab before what it means.
func completed(asked []string) string {
	begun := ""
	if last := len(asked) - 1; last >= 0 {
		begun, asked = strings.TrimSuffix(asked[last], "."), asked[:last]
	}
	kind, words := candidates(asked, begun)
	answer := kind + "\n"
	for _, w := range words {
		if strings.HasPrefix(w[0], begun) {
			about, _, _ := strings.Cut(strings.ReplaceAll(w[1], "`", ""), "; ")
			answer += w[0] + "\t" + about + "\n"
		}
	}
	return answer
}

// candidates are the words that may be behind others, each with what it means, and whether names of files may, too.
func candidates(before []string, begun string) (kind string, words [][2]string) {
	app := (&program{}).app()
	line, _ := flags.Order(app, before) // a line that is not ready has mistakes
	known := append(slices.Clone(line.Command.Flags), app.Flags...)
	onlyFiles := slices.Contains(before, "--")
	flagOf := func(word string) cli.Flag {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return flags.Named(name, known)
	}
	if n := len(before) - 1; n >= 0 && !onlyFiles && strings.HasPrefix(before[n], "-") &&
		!strings.Contains(before[n], "=") {
		if f := flagOf(before[n]); f != nil && flags.TakesValue(f) {
			return values(argumentOf(f), "")
		}
	}
	arguments := line.Command.ArgsUsage
	switch name, _, joined := strings.Cut(begun, "="); {
	case strings.HasPrefix(begun, "-") && !onlyFiles && joined && flagOf(begun) != nil:
		return values(argumentOf(flagOf(begun)), name+"=")
	case strings.HasPrefix(begun, "-") && !onlyFiles:
		for _, f := range append(known, cli.HelpFlag, cli.VersionFlag) {
			for _, name := range f.Names() {
				words = append(words, [2]string{dashed(name), f.(cli.DocGenerationFlag).GetUsage()})
			}
		}
		return "words", words
	case len(line.Command.Subcommands) > 0:
		for _, c := range line.Command.Subcommands {
			words = append(words, [2]string{c.Name, c.Usage})
		}
		return "words", words
	case len(line.Files) >= len(strings.Fields(arguments)) && !strings.Contains(arguments, "..."):
		return "words", nil
	}
	return values(arguments, "")
}

// fixedWords are what a value may be where help calls it by them, such as hold|resend.
var fixedWords = spelling.Form(`^[a-z0-9-]+(\|[a-z0-9-]+)+$`)

// values are what may stand for a value that help calls so, each behind what was typed of its word before.
func values(called, before string) (kind string, words [][2]string) {
	if strings.Contains(called, "FILE") || called == "DIR" || called == "[RUN]" {
		return "files", nil
	}
	if fixedWords().MatchString(called) {
		for word := range strings.SplitSeq(called, "|") {
			words = append(words, [2]string{before + word})
		}
	}
	return "words", words
}
