package checkpointcmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/checkpoint/postgres"
	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/ledger"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
	"leadferry/internal/shell"
)

func stateNamed(name string) (checkpoint.State, error) {
	if name == "" {
		return checkpoint.Unknown, nil
	}
	for _, s := range []checkpoint.State{checkpoint.Created, checkpoint.Partial, checkpoint.Rejected, checkpoint.InDoubt} {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, exit.Usage("--state knows no such state", "use created, partial, rejected or in_doubt")
}

// Export is which entries are written, and how.
type Export struct {
	State    string // "": any
	Run      string // that made or sent them; "": any
	CSV      bool   // else JSONL
	Terminal bool   // it goes to one: nothing may act upon it

	Namespaced bool // keys have namespaces

	state checkpoint.State
}

// Export writes what the checkpoint knows. Of a damaged one it writes what can still be read,
// and fails all the same. The checkpoint is closed when it returns: whoever reads slowly
// must not hold its lock, so out keeps all that it is given until then.
func (d *Desk) Export(ctx context.Context, x Export, out io.Writer) (err error) {
	if x.state, err = stateNamed(x.State); err != nil {
		return err
	}
	if x.Run != "" && !isRun(x.Run) {
		return exit.Usage("--created-by takes the ID of a run, eight of 0 to 9 and a to f", "it stands at the end of its folder's name, and as run_id in its summary")
	}
	at, err := d.Ledger.Existing()
	if err != nil {
		return err
	}
	db, err := at.Open(ledger.How{ReadOnly: true})
	switch {
	case err != nil && at.Server != nil:
		return err
	case errors.Is(err, checkpoint.ErrDamaged):
		return errors.Join(d.exportDamaged(at.Path, &x, out), err)
	case err != nil:
		return err
	}
	if x.Namespaced, err = namespaced(ctx, db); err != nil {
		return errors.Join(err, db.Close())
	}
	lacks := db.Info().Missing
	err = x.lines(out, lacks, func(add func(checkpoint.Entry) error) error {
		return checkpoint.Each(ctx, db, checkpoint.Filter{State: x.state, Run: x.Run}, add)
	})
	if err == nil && lacks != "" {
		err = &checkpoint.OpenError{
			Path: db.Info().Path, Err: checkpoint.ErrLacking, Text: "is incomplete: it lacks " + lacks + ". The export says so in its last line, and whatever adopts it is incomplete, too",
		}
	}
	return errors.Join(err, db.Close())
}

// namespaced reports whether any key has a namespace.
func namespaced(ctx context.Context, db ledger.Ledger) (yes bool, err error) {
	err = checkpoint.Each(ctx, db, checkpoint.Filter{}, func(e checkpoint.Entry) error {
		if namespace, _ := rowkey.Split(e.Key); namespace != "" {
			yes = true
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return yes, err
}

func (d *Desk) exportDamaged(path string, x *Export, out io.Writer) error {
	const lacks = "an unknown number of leads that the damaged checkpoint knew"
	x.Namespaced = true // what is read once cannot be looked through before
	return x.lines(out, lacks, func(add func(checkpoint.Entry) error) error {
		r, err := bolt.Salvage(path, func(e checkpoint.Entry) error {
			if x.state != checkpoint.Unknown && x.state != e.State || x.Run != "" && x.Run != e.Run {
				return nil
			}
			return add(e)
		})
		if err == nil {
			d.Warn("the checkpoint is damaged; the export holds what can be read of it. Whatever adopts it is incomplete")
			d.lostBlocks(r.Forgotten)
		}
		return err
	})
}

// exportBatch is how many lines are encoded at a time.
const exportBatch = 512

// lines writes a line of every entry that each calls its function with, and a last one that says what is missing, if anything.
func (x *Export) lines(to io.Writer, lacks string, each func(add func(checkpoint.Entry) error) error) error {
	out := bufio.NewWriter(to)
	write := x.jsonLines(out)
	if x.CSV {
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
	if lacks != "" {
		lines = append(lines, ExportLine{State: incompleteState, Error: lacks})
	}
	return errors.Join(err, flush(), out.Flush())
}

func exportLine(e *checkpoint.Entry) ExportLine {
	namespace, key := rowkey.Split(e.Key)
	x := ExportLine{
		Key: key, Namespace: namespace, State: e.State.String(), LeadID: e.LeadID, OrganizationID: importer.AskedFor(e), Location: e.Location,
		Status: e.Status, ExternalID: e.ExternalID, RunID: e.Run, UpdatedAt: e.Updated.UTC().Format(time.RFC3339),
		File: e.File, Line: lineNumber(e.Line), Error: importer.WithRequestID(importer.Explain(e), e), RequestID: e.RequestID,
	}
	if e.WantLink != "" { // it is not linked yet
		x.ExternalID = e.WantLink
	}
	return x
}

// namespacing puts the namespace of keys behind them, where there are any.
type namespacing struct {
	gocsv.CSVWriter
	on, header bool
	lines      []ExportLine // that come next
}

func (w *namespacing) Write(cells []string) error {
	namespace := "namespace"
	if !w.header {
		namespace, w.lines = w.lines[0].Namespace, w.lines[1:]
	}
	if w.header = false; w.on {
		cells = slices.Insert(cells, 1, namespace)
	}
	return w.CSVWriter.Write(cells)
}

// csvLines writes the header with the first lines, also where there are none.
func (x *Export) csvLines(out *bufio.Writer) func([]ExportLine) error {
	w, marshal := &namespacing{CSVWriter: gocsv.DefaultCSVWriter(out), on: x.Namespaced, header: true}, gocsv.MarshalCSV
	return func(lines []ExportLine) error {
		w.lines = lines
		for i := range lines {
			l := &lines[i]
			l.Location = report.Cell(l.Location)
			if x.Terminal {
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

func (x *Export) jsonLines(out *bufio.Writer) func([]ExportLine) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	return func(lines []ExportLine) error {
		text.Reset()
		for i := range lines {
			if err := enc.Encode(&lines[i]); err != nil {
				return err
			}
		}
		b := text.Bytes()
		if x.Terminal {
			b = report.EscapeJSON(b)
		}
		_, err := out.Write(b)
		return err
	}
}

// Copy takes all that a checkpoint knows to an empty one elsewhere: to is an address with server, or a
// file. Runs are refused there first, then here for good; the same copy again ends one that was cut off.
func (d *Desk) Copy(ctx context.Context, from ledger.Place, to string, server *postgres.Options) (err error) {
	src, err := from.Open(ledger.How{Moved: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info := src.Info()
	moved := src.Moved()
	before := func(how, hint string) error {
		return &checkpoint.OpenError{Path: info.Path, Text: "was copied to " + moved + how, Hint: hint + "; if that one is lost for good, " + checkpoint.TakeAgain(info.Path, info.ID), Err: checkpoint.ErrGone}
	}
	lost := func() error { return before(", which is not there any more, and may have known more", "put it back") }
	if moved != "" && moved != to {
		return before(" before", "use --checkpoint "+shell.Path(moved))
	}
	if moved == to && server == nil && !disk.Exists(to) {
		return lost()
	}
	read := func() (*checkpoint.Contents, error) { return src.Contents(ctx) }
	begun := func() error { return src.SetMoved(to) }
	err = d.Ledger.Attested(ctx, src, false, func() error {
		if server == nil {
			return bolt.Fill(to, read, info.Path, info.Target, begun, from.Options)
		}
		o := *server
		if moved == to {
			o.Resumes = info.ID
		}
		return postgres.Fill(to, read, info.Path, info.Target, begun, o)
	})
	if moved == to && errors.Is(err, checkpoint.ErrMissing) {
		return lost()
	}
	if moved == to && (errors.Is(err, fs.ErrExist) || errors.Is(err, checkpoint.ErrLocked)) { // the copy had come to its end
		return before(" before", "use --checkpoint "+shell.Path(moved))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "copied: %s, %d in doubt, and all that is known besides\n%s is used by no run any more; use --checkpoint %s from now on\n",
		english.Plural(info.Leads, "lead", ""), info.InDoubt, report.Escape(info.Path), shell.Path(to))
	return nil
}
