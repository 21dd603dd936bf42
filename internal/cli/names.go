package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"leadferry/importer/source"
	"leadferry/mapping"
)

// inputNames are the files of the command line, its patterns spread out as a shell
// would: some shells leave that to the program, and timers have none. A name that a
// file really has is no pattern.
func inputNames(c *cli.Context) ([]string, error) {
	var names []string
	for _, arg := range c.Args().Slice() {
		if _, err := os.Lstat(arg); err == nil || arg == "-" || !strings.ContainsAny(arg, "*?[") {
			if slices.ContainsFunc(names, func(name string) bool { return sameFile(name, arg) }) {
				return nil, usage(arg+" is named twice", "name each file once")
			}
			names = append(names, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		if err != nil {
			return nil, usage(arg+" is no file and no pattern that can be read", `a pattern holds *, ? and [a-z]`)
		}
		if len(found) == 0 {
			return nil, usage("no file matches "+arg, "check the pattern, and the folder that the command is run in")
		}
		for _, name := range found {
			if name == "-" {
				name = "./-" // the file of this name, not standard input
			}
			if !slices.ContainsFunc(names, func(known string) bool { return sameFile(known, name) }) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, usage("no input file given", "name it behind the command; - reads standard input; see "+helpName(c)+" --help")
	}
	return names, nil
}

// sourceOptions puts the flags above what a mapping says of the source.
func (p *program) sourceOptions(c *cli.Context, s mapping.Source) (source.Options, error) {
	o := source.Options{
		Format: source.Format(s.Format), Delimiter: s.Delimiter, NoQuotes: s.NoQuotes, NoHeader: s.NoHeader, Columns: s.Columns,
		Null: s.Null, Encoding: s.Encoding, TrustEncoding: c.Bool("trust-encoding"), Sheet: s.Sheet, Stdin: p.In,
	}
	if format := c.String("format"); format != "" {
		switch f := source.Format(format); f {
		case source.CSV, source.TSV, source.JSONL, source.XLSX:
			o.Format = f
		default:
			return o, usage("--format takes csv, tsv, jsonl or xlsx", "without it the file's name and content decide")
		}
	}
	if label := c.String("encoding"); label != "" {
		o.Encoding = label
	}
	if sheet := c.String("sheet"); sheet != "" {
		o.Sheet = sheet
	}
	switch d := c.String("delimiter"); {
	case d == "":
	case d == "tab" || d == `\t`:
		o.Delimiter = '\t'
	case utf8.RuneCountInString(d) == 1:
		o.Delimiter, _ = utf8.DecodeRuneInString(d)
	default:
		return o, usage("--delimiter takes one character, or tab", `for example --delimiter ";"`)
	}
	return o, nil
}
