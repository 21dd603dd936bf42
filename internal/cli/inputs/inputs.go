// Package inputs opens what a command reads: the files of the command line, and the mapping with its tables.
package inputs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/importer/source/table"
	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// Files are the inputs of one run.
type Files struct {
	Names   []string // paths, or "-"
	options source.Options
	files   []*source.File
	stdin   io.ReadCloser // nil: not read
}

// LetGo stops reading standard input, which may never end by itself.
func (in *Files) LetGo() {
	if in.stdin != nil {
		in.stdin.Close()
	}
}

// Close closes all of them.
func (in *Files) Close() {
	for _, f := range in.files {
		f.Close() // they were only read
	}
}

// Open opens every file: all mistakes in names and headers are known before anything is sent.
func Open(c *cli.Context, stdin io.Reader, o *importer.Options) (in *Files, err error) {
	in = &Files{}
	if in.Names, err = Names(c); err != nil {
		return nil, err
	}
	in.options, in.options.Paths = Options(c, o.Mapping.Source), o.Mapping.Paths()
	in.options.Proven = slices.Contains([]string{"import", "sync"}, o.Command)             // their leads stay
	in.options.NoSum = o.Files.Summary+o.Files.Dir+c.String("fleet")+c.String("web") == "" // nothing would show it
	if slices.Contains(in.Names, "-") {
		in.stdin = source.NewStream(stdin)
		in.options.Stdin = in.stdin
	}
	for _, name := range in.Names { // reports all files that cannot be opened
		f, failed := source.Open(name, in.options)
		if err = errors.Join(err, failed); failed == nil {
			in.files = append(in.files, f)
		}
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	in.options.Proven, in.options.NoSum = false, true // for opening the files again
	o.Inputs = in.files
	return in, nil
}

// Names returns the files of the command line, each once.
func Names(c *cli.Context) ([]string, error) {
	if !c.Args().Present() {
		return nil, exit.Usage("no input file given", "name it after the command; - reads standard input; see "+
			c.Command.HelpName+" --help")
	}
	return Spread(c.Args().Slice())
}

// Spread returns the named files, each once. It expands patterns as a shell would: some shells leave that to the
// program, and timers have no shell. The name of an existing file is no pattern.
func Spread(args []string) (names []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		scheme, _, address := strings.Cut(arg, "://")
		switch {
		case arg == "":
			return nil, exit.Usage("the name of an input is empty", "is a variable not set?")
		case arg == "-" || disk.Exists(arg):
		case address && (scheme == "https" || scheme == "http"): // do not show it: it may hold a secret
			return nil, exit.Usage("an input is an address, and inputs are files",
				"fetch the file first, or pipe it in: curl ADDRESS | leadferry COMMAND … -")
		case strings.ContainsAny(arg, "*?["):
			if found, err = matches(arg); err != nil {
				return nil, err
			}
		}
		for _, name := range found {
			if !slices.ContainsFunc(names, func(other string) bool { return disk.SameFile(other, name) }) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

var letter = spelling.Form(`\pL`)

// matches returns the files that match a pattern. Brackets are first taken as part of a name.
func matches(pattern string) ([]string, error) {
	folder, name := filepath.Split(strings.ReplaceAll(pattern, "[", "[[]"))
	if runtime.GOOS == "windows" { // names have no case there
		anyCase := func(s string) string { return "[" + strings.ToLower(s) + strings.ToUpper(s) + "]" }
		name = letter().ReplaceAllStringFunc(name, anyCase)
	}
	found, err := filepath.Glob(folder + name)
	if len(found) == 0 {
		found, err = filepath.Glob(pattern)
	}
	if err != nil || len(found) == 0 {
		return nil, exit.Usage("no file matches "+pattern,
			"check the pattern, which may hold *, ? and [a-z], and the folder that the command is run in")
	}
	if i := slices.Index(found, "-"); i >= 0 {
		found[i] = "./-" // the file of this name, not standard input
	}
	return found, nil
}

// Options returns the options for reading; flags override the mapping's source.
func Options(c *cli.Context, s mapping.Source) source.Options {
	o := source.Options{
		Format: source.Format(cmp.Or(c.String("format"), s.Format)), Delimiter: s.Delimiter, NoQuotes: s.NoQuotes,
		NoHeader: s.NoHeader, Columns: s.Columns, Null: s.Null, Encoding: cmp.Or(c.String("encoding"), s.Encoding),
		Sheet: cmp.Or(c.String("sheet"), s.Sheet), List: cmp.Or(c.String("list"), s.List), Backslash: s.Backslash,
		Frame: source.Frame{SkipRows: s.SkipRows, SkipFooter: s.SkipFooter, Footer: s.Footer, Comment: s.Comment},
	}
	switch d := c.String("delimiter"); d {
	case "":
	case "tab", `\t`:
		o.Delimiter = '\t'
	default:
		o.Delimiter, _ = utf8.DecodeRuneInString(d)
	}
	return o
}

// Count reads the files once more to count up to limit rows (0: all). It returns 0 if it cannot, as for standard input.
func (in *Files) Count(limit int) int {
	if in.stdin != nil {
		return 0
	}
	rows, _ := in.countTo(cmp.Or(limit, math.MaxInt)) // the run itself reports the error
	return rows
}

// countTo counts the rows of all files except standard input, up to most. After an error, rows is 0.
func (in *Files) countTo(most int) (rows int, err error) {
	for _, name := range in.Names {
		if name == "-" || rows >= most {
			continue
		}
		f, err := source.Open(name, in.options)
		if err != nil {
			return 0, err
		}
		for row := (source.Row{}); rows < most && err == nil; {
			if err = f.Next(&row); err == nil {
				rows++
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	return rows, nil
}

// Fresh refuses a file older than age: a failed export leaves the old file in place. 0 allows any age.
func (in *Files) Fresh(age time.Duration) error {
	for _, name := range in.Names {
		if age == 0 {
			return nil
		}
		if name == "-" {
			return exit.Usage("--max-age cannot be judged of standard input, which has no age", "name the file instead")
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if old := time.Since(info.ModTime()); old > age {
			return exit.Usage(fmt.Sprintf("%s is older than --max-age allows: it was written at %s, %s ago", name,
				spelling.Time(info.ModTime(), spelling.Seconds), old.Round(time.Second)),
				"check if the export failed; nothing was sent")
		}
	}
	return nil
}

// Enough refuses inputs with fewer than least rows that hold something. Of standard input, it reads that many ahead.
func (in *Files) Enough(least int) error {
	rows, err := in.countTo(least)
	if err != nil {
		return exit.Usage(fmt.Sprintf("the rows cannot be counted: %v", err), "correct the file, or export it again")
	}
	if i := slices.Index(in.Names, "-"); i >= 0 {
		rows += len(in.files[i].ReadAhead(least - rows))
	}
	if rows < least {
		return exit.Usage(fmt.Sprintf("only %s there, and --min-rows asks for %d", english.PluralWord(rows, "1 row is",
			fmt.Sprintf("%d rows are", rows)), least), "check if the export was cut short, or is another file; "+
			"nothing was sent. --min-rows 0 takes an empty file")
	}
	return nil
}

// Identity returns the SHA-256 of a file, which differs between its versions, or "standard input".
func (in *Files) Identity(name string) (string, error) {
	if name == "-" {
		return "standard input", nil
	}
	from, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer from.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, from)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// ReadMapping reads a mapping file and the tables beside it, and returns the tables' paths even if there are mistakes.
// Mistakes are mapping.Errors; the mapping then has what could be read.
func ReadMapping(path string, o *importer.Options) (tables []string, err error) {
	if path == "" {
		return nil, exit.Usage("no mapping given", "name it with -m; leadferry init FILE writes one for a file")
	}
	f, err := os.Open(path)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, mapping.MaxBytes+1))
	}
	if err != nil {
		return nil, exit.Usage(fmt.Sprintf("the mapping cannot be read: %v", err),
			cmp.Or(disk.Held(err), "check the path after -m"))
	}
	if source.IsTable(path) {
		return nil, exit.Usage(path+" is a table by its name, not a mapping file",
			"-m takes the mapping; input files need no flag; leadferry init FILE writes a mapping for a file")
	}
	sum := sha256.New()
	sum.Write(data)
	type adding = func(line int, key, value string)
	o.Mapping, err = mapping.Parse(path, data, func(name, key, value string, add adding) mapping.Errors {
		file := filepath.Join(filepath.Dir(path), name)
		tables = append(tables, file)
		digest, mistakes := table.Read(file, [2]string{key, value}, add)
		io.WriteString(sum, digest)
		return mistakes
	})
	o.MappingFile = report.File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return tables, err
}
