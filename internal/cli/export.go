package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/gocarina/gocsv"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/importer/report"
)

// exported is a line of a checkpoint export (INTERFACE, "Files that a run writes").
type exported struct {
	Key            string `csv:"key" json:"key"`
	State          string `csv:"state" json:"state"`
	LeadID         string `csv:"lead_id" json:"lead_id"`
	OrganizationID string `csv:"organization_id" json:"organization_id"`
	Location       string `csv:"location" json:"location"`
	Status         string `csv:"status" json:"status"`
	ExternalID     string `csv:"external_id" json:"external_id"`
	RunID          string `csv:"run_id" json:"run_id"`
	UpdatedAt      string `csv:"updated_at" json:"updated_at"`
	File           string `csv:"file" json:"file"`
	Line           line   `csv:"line" json:"line,omitempty"`
	Error          string `csv:"error" json:"error"`
}

// line is the number of a line; an entry that no file brought has none.
type line int

// MarshalCSV leaves the cell empty where there is no line.
func (l line) MarshalCSV() (string, error) {
	if l == 0 {
		return "", nil
	}
	return strconv.Itoa(int(l)), nil
}

func (p *program) exportCommand(shared []cli.Flag) *cli.Command {
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
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv or jsonl"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, EnvVars: []string{"LEADFERRY_OUTPUT"}, Usage: "make `FILE` instead of writing to standard output"},
			&cli.StringFlag{Name: "created-by", Usage: "only leads that `RUN` made, and rows in doubt that it sent"},
			&cli.StringFlag{Name: "state", Usage: "only this `STATE`: created, partial, rejected or in_doubt"},
		}, shared...),
		Action: func(c *cli.Context) (err error) {
			state, err := stateNamed(c.String("state"))
			if err != nil {
				return err
			}
			if err := oneOf(c, "format", "csv", "jsonl"); err != nil {
				return err
			}
			return p.runExport(c, state)
		},
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

// exportBatch is how many lines are encoded at a time.
const exportBatch = 512

// runExport exports a checkpoint, or what can be read of a damaged one. Nothing is written
// before the checkpoint is closed.
func (p *program) runExport(c *cli.Context, state checkpoint.State) (err error) {
	path, o, target, err := existing(c)
	if err != nil {
		return err
	}
	to := c.String("output")
	if to == "-" {
		to = ""
	}
	named := placeAt(to, "-o")
	for _, q := range checkpoint.Companions(path) { // the next run would remove it
		if q := placeAt(q, ""); to != "" && named.is(&q) {
			return usage("-o "+to+" would take the place of "+q.path+", which is a part of the checkpoint", "name another place")
		}
	}
	if _, err := os.Lstat(to); to != "" && !errors.Is(err, fs.ErrNotExist) {
		return usage(to+": exists already, and somebody may have filled it in", "name a file that is not there yet, or move that one away")
	}
	x := &export{format: c.String("format"), terminal: to == "" && terminal(p.Out), spool: new(spool)}
	run := c.String("created-by")
	o.ReadOnly = true
	db, err := checkpoint.Open(path, target, o)
	switch {
	case errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrRolledBack):
		err = errors.Join(p.exportDamaged(path, state, run, x), err)
	case err != nil:
		return err
	case run != "":
		err = errors.Join(x.write(func(f func(checkpoint.Entry) error) error { return db.MadeBy(run, state, f) }), db.Close())
	default:
		err = errors.Join(x.write(func(f func(checkpoint.Entry) error) error { return db.Each(state, f) }), db.Close())
	}
	out := "standard output"
	broken := error(nil)
	if to == "" {
		broken = x.spool.tell(p.Out)
	} else {
		out, broken = to, x.spool.into(to)
	}
	if broken != nil {
		fmt.Fprintf(p.Err, "leadferry: %s could not be written: %v\n", report.Escape(out), broken)
		p.code = importer.CodeStopped
	}
	return err
}

func (p *program) exportDamaged(path string, state checkpoint.State, run string, x *export) error {
	return x.write(func(f func(checkpoint.Entry) error) error {
		r, err := checkpoint.Salvage(path, func(e checkpoint.Entry) error {
			if state != checkpoint.Unknown && state != e.State || run != "" && run != e.Run {
				return nil
			}
			return f(e)
		})
		if err == nil {
			fmt.Fprintln(p.Err, "warning: the checkpoint is damaged or older than what is known; the export holds what can be read of it"+lostText(&r))
			p.lostBlocks(r.Forgotten)
		}
		return err
	})
}

// export is how entries are written.
type export struct {
	format   string
	terminal bool // it goes to one: nothing may act upon it
	spool    *spool
}

// write writes every entry that each calls its function with.
func (x *export) write(each func(func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(x.spool)
	write := x.jsonLines(out)
	if x.format == "csv" {
		write = x.csvLines(out)
	}
	lines := make([]exported, 0, exportBatch)
	flush := func() error {
		err := write(lines)
		lines = lines[:0]
		return err
	}
	err := each(func(e checkpoint.Entry) error {
		if e.State == checkpoint.NotMade {
			return nil // nothing is known of it but that it may be sent
		}
		if lines = append(lines, exportedOf(&e)); len(lines) < exportBatch {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush(), out.Flush())
}

// csvLines writes the header with the first lines, also where there are none.
func (x *export) csvLines(out *bufio.Writer) func([]exported) error {
	w, begun := gocsv.DefaultCSVWriter(out), false
	return func(lines []exported) error {
		for i := range lines {
			lines[i].Location = report.Cell(lines[i].Location)
			if x.terminal {
				lines[i].escape()
			}
		}
		if begun {
			return gocsv.MarshalCSVWithoutHeaders(lines, w)
		}
		begun = true
		return gocsv.MarshalCSV(lines, w)
	}
}

func (x *export) jsonLines(out *bufio.Writer) func([]exported) error {
	var to io.Writer = out
	if x.terminal {
		to = escaping{out}
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return func(lines []exported) error {
		for i := range lines {
			if err := enc.Encode(&lines[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// escape makes a line safe to show.
func (x *exported) escape() {
	for _, text := range []*string{&x.Key, &x.LeadID, &x.OrganizationID, &x.Status, &x.ExternalID, &x.RunID, &x.File, &x.Error} {
		*text = report.Escape(*text)
	}
}

func exportedOf(e *checkpoint.Entry) exported {
	x := exported{
		Key: e.Key, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.AskedFor(e), Location: e.Location,
		Status: e.Status, ExternalID: e.ExternalID, RunID: e.Run, UpdatedAt: e.Updated.UTC().Format(time.RFC3339),
		File: e.File, Line: line(e.Line), Error: importer.Explain(e),
	}
	if e.WantLink != "" { // it is not linked yet
		x.ExternalID = e.WantLink
	}
	return x
}
