package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

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
	if err := p.keepApart(c, o.Files, in.names); err != nil {
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
