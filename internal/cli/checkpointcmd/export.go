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
)

// stateNamed is a state that an export has, Unknown where none is named.
func stateNamed(name string) (state checkpoint.State, known bool) {
	for s := checkpoint.Created; s <= checkpoint.InDoubt; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return checkpoint.Unknown, name == ""
}

// export lists what the checkpoint knows, once that is closed: who reads it slowly, as less does, holds no lock.
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
	var told terminal.Spool
	x := export{csv: d.C.String("format") == "csv", terminal: to == "" && d.Shown, run: d.C.String("created-by")}
	err := d.exportTo(&told, &x)
	switch {
	case err != nil && !told.Begun: // refused
		return err
	case to == "":
		unseen := told.Tell(d.Out) // of a damaged checkpoint, too
		return cmp.Or(err, unseen)
	}
	if broken := disk.WriteNew(to, 0o600, told.Tell); broken != nil && err == nil {
		return exit.Stopped(fmt.Sprintf("%s could not be written: %v", to, broken), disk.WayOut(broken))
	}
	return err
}

// export is which entries are written, and how.
type export struct {
	state      checkpoint.State // Unknown: any
	run        string           // that made or sent them; "": any
	csv        bool             // else JSONL
	terminal   bool             // it goes to one: nothing may act upon it
	namespaced bool             // keys have namespaces
}

// exportTo writes what the checkpoint knows. Of a damaged one it writes what can still be read, and fails. The
// checkpoint is closed when it returns.
func (d *Command) exportTo(out io.Writer, x *export) (err error) {
	ctx := d.C.Context
	x.state, _ = stateNamed(d.C.String("state"))
	if x.run != "" && !isRun(x.run) {
		return exit.Usage("--created-by takes the ID of a run, eight of 0 to 9 and a to f",
			"it is at the end of its folder's name, and run_id in its summary")
	}
	at, err := d.Existing()
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: true})
	if !at.OnServer() && errors.Is(err, checkpoint.ErrDamaged) {
		return errors.Join(d.exportDamaged(at.Path, x, out), err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = checkpoint.Each(ctx, db, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		if namespace, _ := rowkey.Split(e.Key); namespace != "" {
			return errEnough
		}
		return nil
	})
	if x.namespaced = errors.Is(err, errEnough); err != nil && !x.namespaced {
		return err
	}
	i := db.Info()
	err = x.lines(out, i.Missing, func(add func(checkpoint.Entry) error) error {
		return checkpoint.Each(ctx, db, checkpoint.Filter{State: x.state, Run: x.run}, add)
	})
	if err == nil && i.Missing != "" {
		err = &checkpoint.OpenError{
			Path: i.Path, Err: checkpoint.ErrLacking,
			Text: "is incomplete: it lacks " + i.Missing +
				". The export says so in its last line, and whatever adopts it is incomplete, too",
		}
	}
	return err
}

// errEnough ends a scan.
var errEnough = errors.New("enough was read")

func (d *Command) exportDamaged(path string, x *export, out io.Writer) error {
	const lacks = "an unknown number of leads that the damaged checkpoint knew"
	x.namespaced = true // what is read once cannot be looked through before
	return x.lines(out, lacks, func(add func(checkpoint.Entry) error) error {
		r, err := bolt.Salvage(path, bolt.Options{})
		if err != nil {
			return err
		}
		for _, k := range r.Keys {
			e := &k.Shown().Entry
			if x.state != checkpoint.Unknown && x.state != e.State || x.run != "" && x.run != e.Run {
				continue
			}
			if err := add(*e); err != nil {
				return err
			}
		}
		d.Warn("the checkpoint is damaged; the export holds what can be read of it. Whatever adopts it is incomplete")
		if n := r.Counts()[checkpoint.Forgotten]; n > 0 {
			d.Warn(english.Plural(n, "key", "") +
				" forgotten: an export does not name them, so forget them again in the new checkpoint")
		}
		return nil
	})
}

// exportBatch is how many lines are encoded at a time.
const exportBatch = 512

// lines writes a line of every entry that each calls its function with, and a last one that says what is missing, if
// anything.
func (x *export) lines(to io.Writer, lacks string, each func(add func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(to)
	write := x.jsonLines(out)
	if x.csv {
		write = x.csvLines(out)
	}
	var batch []ExportLine
	err := each(func(e checkpoint.Entry) (err error) {
		if e.State == checkpoint.NotMade {
			return nil // nothing is known of it but that it may be sent
		}
		if batch = append(batch, exportLine(&e)); len(batch) == exportBatch {
			err, batch = write(batch), batch[:0]
		}
		return err
	})
	if lacks != "" {
		batch = append(batch, ExportLine{State: incompleteState, Error: lacks})
	}
	return errors.Join(err, write(batch), out.Flush())
}

func exportLine(e *checkpoint.Entry) ExportLine {
	namespace, key := rowkey.Split(e.Key)
	line := json.Number(strings.TrimPrefix(strconv.Itoa(e.Line), "0"))
	return ExportLine{
		Key: key, Namespace: namespace, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.AskedFor(e),
		Location: e.Location, Status: e.Status, ExternalID: cmp.Or(e.WantLink, e.ExternalID), RunID: e.Run,
		UpdatedAt: e.Updated.UTC().Format(time.RFC3339), File: e.File, Line: line,
		Error: importer.WithRequestID(importer.Explain(e), e), RequestID: e.RequestID,
	}
}

// withoutNamespace leaves the second column out.
type withoutNamespace struct{ *gocsv.SafeCSVWriter }

// Write writes the other cells.
func (w withoutNamespace) Write(cells []string) error {
	return w.SafeCSVWriter.Write(slices.Concat(cells[:1], cells[2:]))
}

// csvLines writes the header at the first call, and lines at each.
func (x *export) csvLines(out io.Writer) func([]ExportLine) error {
	var w gocsv.CSVWriter = gocsv.DefaultCSVWriter(out)
	if !x.namespaced {
		w = withoutNamespace{gocsv.DefaultCSVWriter(out)}
	}
	marshal := gocsv.MarshalCSV
	return func(lines []ExportLine) error {
		for i := range lines {
			l := &lines[i]
			l.Location = report.Cell(l.Location)
			for _, text := range []*string{
				&l.Key, &l.LeadID, &l.OrganizationID, &l.Status, &l.ExternalID, &l.RunID, &l.File, &l.Error,
			} {
				if x.terminal {
					*text = report.Escape(*text)
				}
			}
		}
		err := marshal(lines, w)
		marshal = gocsv.MarshalCSVWithoutHeaders
		return err
	}
}

// jsonLines writes lines at each call.
func (x *export) jsonLines(out io.Writer) func([]ExportLine) error {
	if x.terminal {
		out = terminal.Escaping{To: out}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(lines []ExportLine) (err error) {
		for i := 0; i < len(lines) && err == nil; i++ {
			err = enc.Encode(&lines[i])
		}
		return err
	}
}
