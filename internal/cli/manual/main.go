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
		all[pageName(c)+".1"] = page(c, version)
	})
	return all
}

func pageName(c *reference.Command) string { return strings.Join(c.Path, "-") }

// page is one in the macros of man(7).
func page(c *reference.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"leadferry %s\"\n", strings.ToUpper(escape(pageName(c))), version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(pageName(c)), escape(c.Summary))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n[FLAGS] %s\n.SH DESCRIPTION\n", escape(c.Name()), escape(c.Arguments))
	asIs := false
	for line := range strings.Lines(strings.TrimSpace(c.Description)) {
		line = strings.TrimRight(line, "\n")
		switch indented := strings.HasPrefix(line, " "); {
		case line == "":
			b.WriteString(".PP\n")
			continue
		case indented != asIs:
			asIs = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[asIs])
		}
		b.WriteString(escape(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
	for i, f := range c.Flags {
		if i == 0 || f.Category != c.Flags[i-1].Category {
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(strings.TrimSpace(f.Category+" FLAGS")))
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escape(f.Spelling()), escape(f.About()))
	}
	if len(c.Commands) > 0 {
		b.WriteString(".SH COMMANDS\n")
	}
	for i := range c.Commands {
		sub := &c.Commands[i]
		fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escape(pageName(sub)), escape(sub.Summary))
	}
	return b.String()
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
