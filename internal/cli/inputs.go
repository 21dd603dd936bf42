package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

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
}

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
	in := &inputs{names: c.Args().Slice()}
	if len(in.names) == 0 {
		return nil, usage("no input file given", "leadferry "+c.Command.Name+" -m MAPPING FILE...; - reads standard input")
	}
	if in.options, err = sourceOptions(c, o.Mapping); err != nil {
		return nil, err
	}
	in.options.Stdin = p.In
	var errs []error
	for _, name := range in.names {
		if name == "-" && in.options.Format == "" {
			errs = append(errs, usage("standard input has no name to tell its format by", "add --format csv, tsv or jsonl, or source.format in the mapping"))
			continue
		}
		f, err := source.Open(name, in.options)
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
	if err := keepInputs(o); err != nil {
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

// sourceOptions puts the flags above what the mapping says of the source.
func sourceOptions(c *cli.Context, m *mapping.Mapping) (source.Options, error) {
	s := m.Source
	o := source.Options{
		Format: source.Format(s.Format), Delimiter: s.Delimiter, NoHeader: s.NoHeader, Columns: s.Columns,
		Paths: m.Paths(),
	}
	if format := c.String("format"); format != "" {
		switch f := source.Format(format); f {
		case source.CSV, source.TSV, source.JSONL:
			o.Format = f
		default:
			return o, usage("--format takes csv, tsv or jsonl", "without it the file's name and content decide")
		}
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

// count reads the files once more, quickly, to say how many rows there are; 0 when
// that cannot be known, as for standard input.
func (in *inputs) count(limit int) int {
	rows := 0
	for _, name := range in.names {
		if name == "-" {
			return 0
		}
		n, err := countRows(name, in.options)
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

func countRows(name string, o source.Options) (int, error) {
	f, err := source.Open(name, o)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var row source.Row
	for n := 0; ; n++ {
		if err := f.Next(&row); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
}
