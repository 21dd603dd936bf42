package checkpointcmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
	"leadferry/internal/spelling"
)

// stateNamed returns the state with this name in an export, Unknown for "".
func stateNamed(name string) (state checkpoint.State, known bool) {
	for s := checkpoint.Created; s <= checkpoint.InDoubt; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return checkpoint.Unknown, name == ""
}

// export lists what the checkpoint knows. It prints after closing the checkpoint: a slow reader must hold no lock.
func (d *Command) export() error {
	to := d.C.String("output")
	if to == "-" {
		to = ""
	}
	if disk.Exists(to) {
		return exit.Usage(to+": exists already, and somebody may have filled it in",
			"name a file that is not there yet")
	}
	if to != "" {
		if err := d.Apart(to); err != nil {
			return err
		}
	}
	var output terminal.Spool
	state, _ := stateNamed(d.C.String("state"))
	x := export{
		which: checkpoint.Filter{State: state, Run: d.C.String("created-by")},
		csv:   d.C.String("format") == "csv", terminal: to == "" && d.Shown,
	}
	err := d.exportTo(&output, &x)
	switch {
	case !x.whole: // refused, or cut off: nobody may take a part for the whole
		return err
	case to == "": // also for a damaged checkpoint
		return cmp.Or(err, output.FlushTo(d.Out))
	}
	if broken := disk.WriteNew(to, 0o600, output.FlushTo); broken != nil && err == nil {
		return exit.Stopped(fmt.Sprintf("%s could not be written: %v", to, broken), disk.WayOut(broken))
	}
	return err
}

// export says which entries to write, and how.
type export struct {
	which      checkpoint.Filter
	csv        bool // else JSONL
	terminal   bool // it goes to a terminal, which must obey nothing in it
	namespaced bool // keys have namespaces
	whole      bool // all lines were kept
}

// exportTo writes what the checkpoint knows, and closes it. If it is damaged, it writes what can be read, and fails.
func (d *Command) exportTo(out io.Writer, x *export) (err error) {
	ctx := d.C.Context
	at, err := d.Place(false)
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: true})
	if !checkpoint.IsAddress(at.Path) && errors.Is(err, checkpoint.ErrDamaged) {
		return errors.Join(d.exportDamaged(at.Path, x, out), err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = checkpoint.Each(ctx, db, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		if namespace, _ := rowkey.Split(e.Key); namespace == "" {
			return nil
		}
		x.namespaced = true
		return io.EOF // one is enough
	})
	if err != nil && !x.namespaced {
		return err
	}
	i := db.Info()
	d.sayForgotten(i.Keys)
	err = x.lines(out, i.Missing, func(add func(checkpoint.Entry) error) error {
		return checkpoint.Each(ctx, db, x.which, add)
	})
	if err == nil && i.Missing != "" {
		err = checkpoint.Refuse(i.Path, checkpoint.ErrLacking, "is incomplete: it lacks "+i.Missing+
			". The export says so in its last line, and whatever adopts it is incomplete, too",
			"settle the rows that are held with leadferry checkpoint resolve, or give up what is missing: leadferry "+
				"checkpoint check --accept-loss --checkpoint "+shell.Path(i.Path))
	}
	return err
}

func (d *Command) exportDamaged(path string, x *export, out io.Writer) error {
	const lacks = "an unknown number of leads that the damaged checkpoint knew"
	x.namespaced = true // perhaps: it can be read only once
	return x.lines(out, lacks, func(add func(checkpoint.Entry) error) error {
		r, err := bolt.Salvage(path, bolt.Options{})
		if err != nil {
			return err
		}
		for _, k := range r.Keys {
			if shown := k.Shown(); x.which.Wants(shown) {
				if err := add(shown.Entry); err != nil {
					return err
				}
			}
		}
		d.Warn("the checkpoint is damaged; the export holds what can be read of it. Whatever adopts it is incomplete")
		d.sayForgotten(r.Counts())
		return nil
	})
}

func (d *Command) sayForgotten(counts map[checkpoint.State]int) {
	if n := counts[checkpoint.Forgotten]; n > 0 {
		d.Say("the export does not name " + english.Plural(n, "forgotten key", "") +
			": where it is adopted, forget them again before the next import")
	}
}

// lines writes a line for every entry that each passes to its function, and a last line if anything is missing.
func (x *export) lines(to io.Writer, lacks string, each func(add func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(to)
	write := x.jsonLines(out)
	if x.csv {
		write = x.csvLines(out)
	}
	err := each(func(e checkpoint.Entry) error {
		if e.State == checkpoint.NotMade {
			return nil // nothing is known except that it may be sent
		}
		return write(exportLine(&e))
	})
	if err == nil && lacks != "" {
		err = write(ExportLine{State: incompleteState, Error: lacks})
	}
	if lost := out.Flush(); lost != nil {
		err = exit.Stopped(fmt.Sprintf("the export could not be kept until it is printed: %v", lost), disk.WayOut(lost))
	}
	x.whole = err == nil
	return err
}

func exportLine(e *checkpoint.Entry) ExportLine {
	namespace, key := rowkey.Split(e.Key)
	line := json.Number(strings.TrimPrefix(strconv.Itoa(e.Line), "0"))
	return ExportLine{
		Key: key, Namespace: namespace, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.OrganizationOf(e),
		Location: e.Location, Status: e.Status, ExternalID: cmp.Or(e.WantLink, e.ExternalID), RunID: e.Run,
		UpdatedAt: e.Updated.UTC().Format(time.RFC3339), File: e.File, Line: line,
		Error: importer.WithRequestID(importer.Explain(e), e), RequestID: e.RequestID,
	}
}

// cells writes the cells of a line in the form that the export needs.
type cells struct {
	*gocsv.SafeCSVWriter
	of *export
}

// Write writes a line.
func (c cells) Write(line []string) error {
	for i := range line {
		if c.of.terminal {
			line[i] = spelling.Escape(line[i])
		}
	}
	if !c.of.namespaced {
		line = slices.Delete(line, 1, 2)
	}
	return c.SafeCSVWriter.Write(line)
}

// csvLines writes the header. The function it returns writes one line.
func (x *export) csvLines(out io.Writer) func(ExportLine) error {
	w := cells{gocsv.DefaultCSVWriter(out), x}
	header := gocsv.MarshalCSV([]ExportLine{}, w)
	return func(l ExportLine) error {
		l.Location = report.Cell(l.Location)
		return cmp.Or(header, gocsv.MarshalCSVWithoutHeaders([]ExportLine{l}, w))
	}
}

// jsonLines returns the function that writes one line.
func (x *export) jsonLines(out io.Writer) func(ExportLine) error {
	if x.terminal {
		out = terminal.Escaping{To: out}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(l ExportLine) error { return enc.Encode(&l) }
}
