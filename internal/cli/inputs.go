package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// inputs are the files of one run.
type inputs struct {
	names   []string
	options source.Options
	files   []*source.File
	stdin   *tap
}

// letGo ends the reading of standard input, which may never end by itself.
func (in *inputs) letGo() { in.stdin.letGo() }

func (in *inputs) close() {
	for _, f := range in.files {
		f.Close() // they were only read
	}
}

// openInputs reads the mapping and opens every file, so that all that is wrong
// with names and headers is known before anything is sent.
func (p *program) openInputs(c *cli.Context, o *importer.Options) (*inputs, error) {
	var err error
	if o.Mapping, o.MappingFile, err = readMapping(c.String("mapping")); err != nil {
		return nil, err
	}
	in := &inputs{stdin: newTap(p.In)}
	if in.names, err = inputNames(c); err != nil {
		return nil, err
	}
	if in.options, err = p.sourceOptions(c, o.Mapping.Source); err != nil {
		return nil, err
	}
	in.options.Paths, in.options.Stdin = o.Mapping.Paths(), in.stdin
	var errs []error
	for _, name := range in.names {
		f, err := openInput(name, in.options)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		in.files = append(in.files, f)
	}
	o.Inputs = in.files
	if len(errs) > 0 {
		in.close()
		return nil, errors.Join(errs...)
	}
	err = errors.Join(keepApart(c, o.Files, in.names, p.In), p.keepStreams(c, o.Files, in.names))
	if err == nil {
		err = in.fresh(c.Duration("max-age"))
	}
	if err == nil {
		err = in.enough(c.Int("min-rows"))
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// maxMapping bounds a mapping file, in bytes.
const maxMapping = 1 << 20

func readMapping(path string) (*mapping.Mapping, importer.Named, error) {
	if path == "" {
		return nil, importer.Named{}, usage("no mapping given", "name the mapping file with -m; samples/leads.yaml is one to start from")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, importer.Named{}, usage(fmt.Sprintf("the mapping cannot be read: %v", err), "check the path after -m")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMapping+1))
	if err != nil {
		return nil, importer.Named{}, usage(fmt.Sprintf("the mapping cannot be read: %v", err), "check the path after -m")
	}
	sum := sha256.Sum256(data)
	m, err := mapping.Parse(path, data)
	return m, importer.Named{Path: path, SHA256: hex.EncodeToString(sum[:])}, err
}

// openInput opens one file; standard input has no name to tell its format by.
func openInput(name string, o source.Options) (*source.File, error) {
	if name == "-" && o.Format == "" {
		return nil, usage("standard input has no name to tell its format by", "add --format csv, tsv, jsonl or xlsx, or source.format in the mapping")
	}
	return source.Open(name, o)
}

// count reads the files once more, quickly, to say how many rows there are; 0 when
// that cannot be known, as for standard input.
func (in *inputs) count(limit int) int {
	rows := 0
	for _, name := range in.names {
		if name == "-" {
			return 0
		}
		n, err := in.countRows(name, math.MaxInt)
		if err != nil {
			return 0
		}
		rows += n
	}
	if limit > 0 {
		return min(rows, limit)
	}
	return rows
}

// countRows counts the rows of a file, up to most.
func (in *inputs) countRows(name string, most int) (n int, err error) {
	f, err := source.Open(name, in.options)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var row source.Row
	for n < most {
		if err := f.Next(&row); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// fresh refuses a file that is older than age: an export that failed leaves the last one
// in its place. 0 is any age.
func (in *inputs) fresh(age time.Duration) error {
	for _, name := range in.names {
		if age == 0 {
			return nil
		}
		if name == "-" {
			return usage("--max-age cannot be judged of standard input, which has no age", "name the file instead")
		}
		info, err := os.Stat(name)
		if err != nil {
			return usage(fmt.Sprintf("%s: its age cannot be known: %v", name, err), "")
		}
		if old := time.Since(info.ModTime()); old > age {
			return usage(fmt.Sprintf("%s is older than --max-age allows: it was written at %s, %s ago", name,
				info.ModTime().UTC().Format("2006-01-02 15:04:05Z"), old.Round(time.Second)), "look whether the export failed; nothing was sent")
		}
	}
	return nil
}

// enough refuses inputs that together hold fewer than least rows, those of empty cells
// not counted. Rows of standard input are held back until there are so many.
func (in *inputs) enough(least int) error {
	rows := 0
	for i, name := range in.names {
		if name == "-" || rows >= least {
			continue
		}
		n, err := in.countRows(name, least-rows)
		if err != nil {
			return usage(fmt.Sprintf("the rows that --min-rows asks for cannot be counted: %v", err), "mend "+in.files[i].Info().Path)
		}
		rows += n
	}
	for i, name := range in.names {
		if name == "-" {
			rows += in.files[i].Hold(least - rows)
		}
	}
	if rows < least {
		return usage(fmt.Sprintf("%s there, and --min-rows asks for %d", english.PluralWord(rows, "only 1 row is", fmt.Sprintf("only %d rows are", rows)), least),
			"look whether the export was cut short, or is another file; nothing was sent")
	}
	return nil
}

// readingFlags are those of the command line that say how the input is read, and how much
// of it.
func readingFlags(c *cli.Context) (words []string) {
	for _, name := range []string{"format", "delimiter", "encoding", "sheet", "limit"} {
		if c.IsSet(name) {
			words = append(words, "--"+name+"="+fmt.Sprint(c.Value(name)))
		}
	}
	if c.Bool("trust-encoding") {
		words = append(words, "--trust-encoding=true")
	}
	return words
}
