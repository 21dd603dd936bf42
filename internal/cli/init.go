package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

func (p *program) initCommand() *cli.Command {
	target := nameFlag(files, "mapping", "write the mapping to `FILE`; - is standard output (default: the input's name with .yaml)")
	target.Aliases = []string{"m"}
	return &cli.Command{
		Name: "init", Usage: "guess a mapping from a file's header and first rows", ArgsUsage: "FILE",
		Description: `Reads up to 10,000 rows of FILE and writes a mapping with a comment on every
guess: which columns are what, what makes a row the same row, which statuses the
file holds. What only a person can know, such as who gets the leads, is marked.
Nothing is overwritten; - for the mapping prints it instead.

Example:

   leadferry init leads.csv                  writes leads.yaml
   leadferry validate -m leads.yaml leads.csv

Exit codes: 0 the mapping was written; 2 the file cannot be read, or a mapping of
that name is there already.`,
		Flags: append(sourceFlags(), target), Action: p.runInit,
	}
}

func (p *program) runInit(c *cli.Context) error {
	names, err := inputNames(c)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return usage("init reads one file", "the mapping fits every file that has the same columns")
	}
	target, err := mappingName(c.String("mapping"), names[0])
	if err != nil {
		return err
	}
	in, err := p.sample(c, names[0])
	if err != nil {
		return err
	}
	proposal, err := propose.Propose(in)
	if err != nil {
		return err
	}
	if target == "-" {
		_, err := p.Out.Write(proposal.YAML)
		tell(p.say(c), proposal.Notes)
		return err
	}
	err = writeNew(target, 0o644, func(w io.Writer) error {
		_, err := w.Write(proposal.YAML)
		return err
	})
	if err != nil {
		return usage(fmt.Sprintf("the mapping cannot be written: %v", err), "name another place with -m")
	}
	if c.Bool("quiet") {
		return nil
	}
	fmt.Fprintf(p.Out, "Wrote %s. It is a guess: read it before anything is sent.\n", report.Escape(target))
	tell(p.Out, proposal.Notes)
	_, err = fmt.Fprintf(p.Out, "Next: leadferry validate -m %s %s\n", report.Quote(target), report.Quote(names[0]))
	return err
}

func tell(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "- %s\n", report.Escape(note))
	}
}

// mappingName is where the mapping goes: beside nothing, in the folder that the
// command is run in, under the input's name.
func mappingName(named, input string) (string, error) {
	switch {
	case named == "" && input == "-":
		return "", usage("standard input has no name that the mapping could have", "name the mapping with -m FILE, or -m - to print it")
	case named == "":
		base := filepath.Base(input)
		for ext := filepath.Ext(base); ext != "" && ext != base; ext = filepath.Ext(base) {
			base = strings.TrimSuffix(base, ext)
		}
		named = base + ".yaml"
	}
	if named != "-" && exists(named) {
		return "", usage(named+" is there already and is not overwritten", "name another file with -m, or print the mapping with -m -")
	}
	return named, nil
}

// sample reads the first rows of a file.
func (p *program) sample(c *cli.Context, name string) (propose.Input, error) {
	in := propose.Input{File: name}
	o, err := p.sourceOptions(c, mapping.Source{})
	if err != nil {
		return in, err
	}
	f, err := openInput(name, o)
	if err != nil {
		return in, err
	}
	defer f.Close()
	var s sampler
	in.Complete, err = s.read(f)
	if lost := (*source.LostError)(nil); errors.As(err, &lost) {
		return in, usage(lost.Error(), cmp.Or(lost.Hint, "mend the file, or fetch it again"))
	}
	if err != nil {
		return in, err
	}
	in.Columns, in.Rows, in.Bad, in.Repeats = s.columns, s.rows, s.bad, s.repeats
	info := f.Info()
	in.Format, in.Sheet = info.Format, o.Sheet
	in.Delimiter = o.Delimiter
	if o.Encoding != "" {
		in.Encoding = info.Encoding
	}
	return in, nil
}

// Bounds of what a proposal is made from: a file may have wide rows and long cells.
const (
	maxSampleRows  = 10_000
	maxSampleCells = 2_000_000
	maxSampleCell  = 1000 // bytes of a cell that are looked at
	maxSampleBytes = 64 << 20
)

// sampler gathers rows of any shape under the columns that any of them has.
type sampler struct {
	columns []string
	index   map[string]int
	rows    [][]string
	bad     []propose.Unread
	lost    int // rows that could not be read
	repeats int
	bytes   int
}

// read takes rows as long as there is room and reports whether those are all.
func (s *sampler) read(f *source.File) (complete bool, err error) {
	s.index = map[string]int{}
	s.learn(f.Header())
	defer s.square()
	for !s.full() {
		var row source.Row // keeps its cells
		switch err := f.Next(&row); {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		case row.Problem != nil:
			s.lose(&row)
		case row.Repeats:
			s.repeats++
		default:
			s.add(&row)
		}
	}
	return false, nil
}

func (s *sampler) full() bool {
	n := len(s.rows)
	return n+s.lost >= maxSampleRows || n*len(s.columns) >= maxSampleCells || s.bytes >= maxSampleBytes
}

// mostReasons is how many reasons for unread rows are told apart.
const mostReasons = 3

// lose counts a row that cannot be read by its reason.
func (s *sampler) lose(row *source.Row) {
	s.lost++
	why := row.Problem.Text
	i := slices.IndexFunc(s.bad, func(u propose.Unread) bool { return u.Why == why })
	if i < 0 && len(s.bad) > mostReasons {
		i, s.bad[mostReasons].Why = mostReasons, "other reasons"
	}
	if i < 0 {
		i, s.bad = len(s.bad), append(s.bad, propose.Unread{Why: why, Line: row.Line})
	}
	s.bad[i].Rows++
}

// learn takes the columns of a header, or those that an object has and none before it.
func (s *sampler) learn(h *source.Header) {
	for _, name := range h.Names[:h.Own] {
		if _, known := s.index[name]; !known || !h.Open {
			s.index[name] = len(s.columns)
			s.columns = append(s.columns, name)
		}
	}
}

func (s *sampler) add(row *source.Row) {
	if row.Header.Open {
		s.learn(row.Header)
	}
	cells := make([]string, len(s.columns))
	for i, name := range row.Header.Names[:row.Header.Own] {
		cell := row.Cells[i]
		if len(cell) > maxSampleCell {
			cell = strings.ToValidUTF8(cell[:maxSampleCell], "")
		}
		at := i // of a table, where a name may stand twice
		if row.Header.Open {
			at = s.index[name]
		}
		cells[at] = strings.Clone(cell) // the row's other cells need not be kept
		s.bytes += len(cell)
	}
	s.rows = append(s.rows, cells)
}

// square gives every row all the columns: earlier ones lack those that came later.
func (s *sampler) square() {
	for i, cells := range s.rows {
		s.rows[i] = append(slices.Clip(cells), make([]string, len(s.columns)-len(cells))...)
	}
}

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of the mapping file, for editors",
		Description: `An editor that knows the schema completes keys and marks mistakes while a mapping
is written. Put the path of the file into the mapping's first line.

Example:

   leadferry schema > mapping.schema.json
   # yaml-language-server: $schema=mapping.schema.json

Exit codes: 0 printed; 3 standard output is closed.`,
		Action: func(*cli.Context) error {
			if _, err := p.Out.Write(mapping.Schema()); err != nil {
				p.code = importer.CodeStopped
			}
			return nil
		},
	}
}
