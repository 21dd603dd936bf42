package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gocarina/gocsv"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer"
	"leadferry/importer/report"
)

func (p *program) exportCommand() *cli.Command {
	output := nameFlag("", "output", "make `FILE` instead of writing to standard output")
	output.Aliases = []string{"o"}
	return &cli.Command{
		Name: "export", Usage: "list what the checkpoint knows, as CSV or JSONL on standard output",
		Description: `An export is what a person needs to find rows in doubt in the console: input file
and line, the time sent, organization or locator, and the reason. resolve takes it
back with lead IDs filled in, adopt takes it into another checkpoint. Of a damaged
checkpoint it holds what can still be read; the exit code is 4 all the same. -o never
writes over a file that is there: somebody may have filled it in.

Example:

   leadferry checkpoint export --state in_doubt --sandbox -o doubt.csv

Exit codes: 0 done; 2 no checkpoint, or a file in the way; 3 it could not be written; 4 locked or damaged.`,
		Flags: []cli.Flag{
			choiceFlag("", "format", "lines as %", "csv", "jsonl"),
			output,
			textFlag("", "created-by", "only leads that `RUN` made, and rows in doubt that it sent"),
			textFlag("", "state", "only this `STATE`: created, partial, rejected or in_doubt"),
		},
		Action: p.export,
	}
}

func stateNamed(name string) (checkpoint.State, error) {
	if name == "" {
		return checkpoint.Unknown, nil
	}
	for _, s := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Rejected, checkpoint.InDoubt} {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, usage("--state knows no such state", "use created, partial, rejected or in_doubt")
}

func (p *program) export(c *cli.Context) error {
	state, err := stateNamed(c.String("state"))
	if err != nil {
		return err
	}
	path, o, target, err := p.existing(c)
	if err != nil {
		return err
	}
	to := c.String("output")
	if to == "-" {
		to = ""
	}
	if err := newExport(to, path); err != nil {
		return err
	}
	x := &export{csv: c.String("format") == "csv", terminal: to == "" && terminal(p.Out), state: state, run: c.String("created-by")}
	o.ReadOnly = true
	db, err := bolt.Open(path, target, o)
	switch {
	case errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrRolledBack):
		err = errors.Join(p.exportDamaged(path, x), err)
	case err == nil:
		err = errors.Join(x.write(c.Context, db), db.Close())
	default:
		return err
	}
	// Nothing is told before the checkpoint is closed.
	out, broken := "standard output", error(nil)
	if to == "" {
		broken = x.spool.tell(p.Out)
	} else {
		out, broken = to, writeNew(to, 0o600, x.spool.tell)
	}
	if broken != nil && err == nil {
		return stopped(fmt.Sprintf("%s could not be written: %v", out, broken), "")
	}
	return err
}

// newExport refuses a name that is taken, or will be by the checkpoint.
func newExport(to, checkpointPath string) error {
	if to == "" {
		return nil
	}
	named := placeAt(to, "-o")
	for _, path := range bolt.Companions(checkpointPath) { // the next run would remove it
		if q := placeAt(path, ""); named.is(&q) {
			return usage("-o "+to+" would take the place of "+path+", which is a part of the checkpoint", "name another place")
		}
	}
	if exists(to) {
		return usage(to+": exists already, and somebody may have filled it in", "name a file that is not there yet, or move that one away")
	}
	return nil
}

func (p *program) exportDamaged(path string, x *export) error {
	return x.lines(func(add func(checkpoint.Entry) error) error {
		r, err := bolt.Salvage(path, func(e checkpoint.Entry) error {
			if x.state != checkpoint.Unknown && x.state != e.State || x.run != "" && x.run != e.Run {
				return nil
			}
			return add(e)
		})
		if err == nil {
			text := "warning: the checkpoint is damaged or older than what is known; the export holds what can be read of it"
			if r.Lost {
				text += ": " + r.Text()
			}
			fmt.Fprintln(p.Err, text)
			p.lostBlocks(r.Forgotten)
		}
		return err
	})
}

// export is which entries are written, and how.
type export struct {
	csv      bool // else as JSONL
	terminal bool // it goes to one: nothing may act upon it
	state    checkpoint.State
	run      string // that made or sent them; "": any
	spool    spool
}

// exportBatch is how many lines are encoded at a time.
const exportBatch = 512

// write writes the entries of a checkpoint.
func (x *export) write(ctx context.Context, db *bolt.Store) error {
	return x.lines(func(add func(checkpoint.Entry) error) error {
		return db.Each(ctx, checkpoint.Filter{State: x.state, Run: x.run}, add)
	})
}

// lines writes a line of every entry that each calls its function with.
func (x *export) lines(each func(add func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(&x.spool)
	write := x.jsonLines(out)
	if x.csv {
		write = x.csvLines(out)
	}
	lines := make([]ExportLine, 0, exportBatch)
	flush := func() error {
		err := write(lines)
		lines = lines[:0]
		return err
	}
	err := each(func(e checkpoint.Entry) error {
		if e.State == checkpoint.NotMade {
			return nil // nothing is known of it but that it may be sent
		}
		if lines = append(lines, exportLine(&e)); len(lines) < exportBatch {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush(), out.Flush())
}

func exportLine(e *checkpoint.Entry) ExportLine {
	x := ExportLine{
		Key: e.Key, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.AskedFor(e), Location: e.Location,
		Status: e.Status, ExternalID: e.ExternalID, RunID: e.Run, UpdatedAt: e.Updated.UTC().Format(time.RFC3339),
		File: e.File, Line: lineNumber(e.Line), Error: importer.Explain(e),
	}
	if e.WantLink != "" { // it is not linked yet
		x.ExternalID = e.WantLink
	}
	return x
}

// csvLines writes the header with the first lines, also where there are none.
func (x *export) csvLines(out *bufio.Writer) func([]ExportLine) error {
	w, marshal := gocsv.DefaultCSVWriter(out), gocsv.MarshalCSV
	return func(lines []ExportLine) error {
		for i := range lines {
			l := &lines[i]
			l.Location = report.Cell(l.Location)
			if x.terminal {
				for _, text := range []*string{&l.Key, &l.LeadID, &l.OrganizationID, &l.Status, &l.ExternalID, &l.RunID, &l.File, &l.Error} {
					*text = report.Escape(*text)
				}
			}
		}
		err := marshal(lines, w)
		marshal = gocsv.MarshalCSVWithoutHeaders
		return err
	}
}

func (x *export) jsonLines(out *bufio.Writer) func([]ExportLine) error {
	var to io.Writer = out
	if x.terminal {
		to = escaping{out}
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return func(lines []ExportLine) error {
		for i := range lines {
			if err := enc.Encode(&lines[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// spool keeps what a command has to say until its checkpoint is closed: who reads it
// slowly, as less does, holds no lock. It is kept in a temporary file that has no name any
// more, or in memory where none can be made or filled.
type spool struct {
	begun  bool
	file   *os.File // nil: in memory
	size   int64    // of the file
	memory bytes.Buffer
}

// Write keeps b.
func (s *spool) Write(b []byte) (int, error) {
	if !s.begun {
		s.begun, s.file = true, nameless()
	}
	if s.file == nil {
		return s.memory.Write(b)
	}
	if n, err := s.file.WriteAt(b, s.size); err == nil {
		s.size += int64(n)
		return n, nil
	}
	// The disk is full: what stands there is taken back.
	_, err := s.memory.ReadFrom(io.NewSectionReader(s.file, 0, s.size))
	if err = errors.Join(err, s.file.Close()); err != nil {
		return 0, err
	}
	s.file = nil
	return s.memory.Write(b)
}

func nameless() *os.File {
	f, err := os.CreateTemp("", "leadferry-*")
	if err != nil {
		return nil
	}
	if os.Remove(f.Name()) != nil { // a system that keeps the names of open files
		f.Close()
		os.Remove(f.Name())
		return nil
	}
	return f
}

// tell writes everything to out and lets go of it.
func (s *spool) tell(out io.Writer) error {
	if s.file == nil {
		_, err := s.memory.WriteTo(out)
		return err
	}
	_, err := io.Copy(out, io.NewSectionReader(s.file, 0, s.size))
	return errors.Join(err, s.file.Close())
}

// writeNew makes a file that must not be there yet, or leaves none.
func writeNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
