package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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
checkpoint it holds what can still be read; the exit code is 4 all the same.

Example:

   leadferry checkpoint export --state in_doubt --sandbox > doubt.csv

Exit codes: 0 done; 2 no checkpoint; 3 standard output closed; 4 locked or damaged.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "`FORMAT`: csv or jsonl"},
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

// runExport exports a checkpoint, or what can be read of a damaged one.
func (p *program) runExport(c *cli.Context, state checkpoint.State) (err error) {
	format := c.String("format")
	path, o, target, err := existing(c)
	if err != nil {
		return err
	}
	o.ReadOnly = true
	db, err := checkpoint.Open(path, target, o)
	if errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, checkpoint.ErrRolledBack) {
		return errors.Join(p.exportDamaged(path, state, format), err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return p.export(format, func(f func(checkpoint.Entry) error) error { return db.Each(state, f) })
}

func (p *program) exportDamaged(path string, state checkpoint.State, format string) error {
	return p.export(format, func(f func(checkpoint.Entry) error) error {
		r, err := checkpoint.Salvage(path, func(e checkpoint.Entry) error {
			if state != checkpoint.Unknown && state != e.State {
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

// export writes every entry that each calls its function with.
func (p *program) export(format string, each func(func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(p.Out)
	write := jsonLines(out)
	if format == "csv" {
		write = csvLines(out)
	}
	lines := make([]exported, 0, exportBatch)
	flush := func() error {
		err := write(lines)
		lines = lines[:0]
		return err
	}
	var broken error
	err := each(func(e checkpoint.Entry) error {
		if e.State == checkpoint.NotMade {
			return nil // nothing is known of it but that it may be sent
		}
		if lines = append(lines, exportedOf(&e)); len(lines) < exportBatch {
			return nil
		}
		broken = flush()
		return broken
	})
	if err == nil {
		broken = errors.Join(flush(), out.Flush())
	}
	if broken != nil {
		fmt.Fprintf(p.Err, "leadferry: standard output could not be written: %v\n", broken)
		p.code = importer.CodeStopped
		return nil
	}
	return err
}

// csvLines writes the header with the first lines, also where there are none.
func csvLines(out *bufio.Writer) func([]exported) error {
	w, begun := gocsv.DefaultCSVWriter(out), false
	return func(lines []exported) error {
		for i := range lines {
			lines[i].Location = report.Defuse(lines[i].Location) // a text of the service
		}
		if begun {
			return gocsv.MarshalCSVWithoutHeaders(lines, w)
		}
		begun = true
		return gocsv.MarshalCSV(lines, w)
	}
}

func jsonLines(out *bufio.Writer) func([]exported) error {
	enc := json.NewEncoder(out)
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

func exportedOf(e *checkpoint.Entry) exported {
	x := exported{
		Key: e.Key, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.AskedFor(e), Location: e.Location,
		Status: e.Status, ExternalID: e.ExternalID, RunID: e.Run, UpdatedAt: e.Updated.UTC().Format(time.RFC3339),
		File: e.File, Line: line(e.Line), Error: importer.Explain(e),
	}
	if e.State == checkpoint.InDoubt || e.State == checkpoint.Partial {
		x.ExternalID = e.WantLink
	}
	return x
}
