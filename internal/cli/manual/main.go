// Command manual writes leadferry's manual pages into a folder, one a command, each with what help says of it:
//
//	go run ./internal/cli/manual DIR
//
// Releases carry them. It is no part of leadferry itself.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"leadferry/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR")
		os.Exit(2)
	}
	for name, text := range pages() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// pages are the manual pages by the names of their files, in the macros of man(7).
func pages() map[string]string {
	all := map[string]string{}
	cli.Screens(func(words []string, summary, help string) {
		name := strings.Join(words, "-")
		page := fmt.Sprintf(".TH %s 1 \"\" \"leadferry %s\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n",
			strings.ToUpper(escape(name)), cli.Version, escape(name), escape(summary))
		_, help, _ = strings.Cut(help, "\n\n") // the first lines are name and summary again
		for line := range strings.Lines(help) {
			page += escape(strings.TrimRight(line, "\n")) + "\n"
		}
		all[name+".1"] = page + ".fi\n"
	})
	return all
}

// escape makes a line of text one that troff prints as it is.
func escape(line string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	line = b.String()
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
