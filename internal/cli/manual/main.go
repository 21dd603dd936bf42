// Command manual writes leadferry's manual pages into a folder, one a command, from the
// tables that help and completion are made from:
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
	"leadferry/internal/cli/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR")
		os.Exit(2)
	}
	for name, text := range pages(cli.Reference(), cli.Version) {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// pages are the manual pages by the names of their files.
func pages(program *reference.Command, version string) map[string]string {
	all := map[string]string{}
	program.Each(func(c *reference.Command) {
		all[pageName(c)+".1"] = page(program, c, version)
	})
	return all
}

func pageName(c *reference.Command) string { return strings.Join(c.Path, "-") }

// everyFlag is the name of no category: none of them stands elsewhere.
const everyFlag = "none"

// page is one in the macros of man(7): its name, and what --help says of it with all flags, as it stands there.
func page(program, c *reference.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"leadferry %s\"\n", strings.ToUpper(escape(pageName(c))), version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", escape(pageName(c)), escape(c.Summary))
	_, help, _ := strings.Cut(reference.Help(program, c, reference.Elsewhere{Category: everyFlag}, true), "\n\n")
	for line := range strings.Lines(help) {
		b.WriteString(escape(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String() + ".fi\n"
}

// escape makes a line of text one that troff prints as it stands.
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
