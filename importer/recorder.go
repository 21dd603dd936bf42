package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/internal/failpoint"
	"leadferry/internal/rowkey"
	"leadferry/mapping"
)

// recorder writes the rows' lines in its own goroutine. If batchesAhead batches wait for a slow disk, the run waits.
type recorder struct {
	files  *report.Run
	inputs []report.Input
	items  *items      // takes the rows back
	own    *ownColumns // nil: results do not carry the rows' own cells
	strict bool        // values that were left out are a problem
	values bool        // problems carry them
	batch  []line      // to be handed over
	size   int         // bytes of the batch's rows in their files
	lines  chan []line
	spare  chan []line           // batches to be filled again
	failed atomic.Pointer[error] // the first error of writing
	done   chan struct{}

	results  []report.Result // buffers of write
	compared []report.Compared
}

type line struct {
	it *item
	r  result
}

const (
	recordBatch  = 128
	batchesAhead = 8 // beside the one being filled and the one being written
)

func newRecorder(files *report.Run, inputs []*source.File, rooms *items, own *ownColumns) *recorder {
	w := &recorder{
		files: files, items: rooms, own: own, lines: make(chan []line, batchesAhead),
		spare: make(chan []line, batchesAhead), done: make(chan struct{}),
	}
	// if an input is not UTF-8, spreadsheets need the mark to read the rejects
	mark := slices.ContainsFunc(inputs, func(f *source.File) bool { return f.Info().Other })
	for _, f := range inputs {
		in := f.Info()
		w.inputs = append(w.inputs,
			report.Input{Path: in.Path, Format: in.Format, Delimiter: in.Delimiter, ByteOrderMark: mark})
	}
	go w.run()
	return w
}

// openFiles opens the run's files; nil: none are wanted.
func (r *run) openFiles() (*recorder, error) {
	r.record = r.intake.items.add
	if !r.Files.Wanted() {
		return nil, nil
	}
	var own *ownColumns
	if r.OwnColumns {
		own = newOwnColumns(r.Inputs)
		r.Files.Columns = own.names
	}
	r.Files.Namespaced = r.Mapping.Namespace() != ""
	files, err := report.OpenRun(r.Files)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: name another place with --out, or with the flag that names this file", err)
	}
	rec := newRecorder(files, r.Inputs, &r.intake.items, own)
	rec.strict, rec.values = r.Strict, r.Files.ProblemValues
	r.record = rec.add
	return rec, nil
}

func (w *recorder) add(it *item, r *result) error {
	w.batch = append(w.batch, line{it, *r})
	w.size += it.row.Size
	if len(w.batch) < recordBatch && w.size < batchBytes {
		return nil
	}
	return w.flush()
}

func (w *recorder) flush() error {
	if len(w.batch) > 0 {
		w.lines <- w.batch
		select {
		case w.batch = <-w.spare:
		default:
			w.batch = make([]line, 0, recordBatch)
		}
		w.size = 0
	}
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *recorder) close() error {
	_ = w.flush() // the next flush returns the same error
	close(w.lines)
	<-w.done
	if err := w.flush(); err != nil {
		return err
	}
	return w.files.Flush()
}

func (w *recorder) run() {
	defer close(w.done)
	for batch := range w.lines {
		if w.failed.Load() == nil {
			if err := crash.Call(func() error { return w.write(batch) }); err != nil {
				w.failed.Store(&err)
			}
		}
		rows := make([]*item, len(batch))
		for i := range batch {
			rows[i] = batch[i].it
		}
		w.items.put(rows)
		clear(batch)
		select {
		case w.spare <- batch[:0]:
		default:
		}
	}
}

func (w *recorder) write(batch []line) error {
	w.results = w.results[:0]
	for i := range batch {
		failpoint.At("before results line")
		w.results = append(w.results, w.result(&batch[i]))
	}
	if err := w.files.Results(w.results); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	for i := range batch {
		failpoint.At("after results line")
		if !batch[i].r.outcome.toRejects() {
			continue
		}
		if err := w.reject(batch[i].it, &batch[i].r); err != nil {
			return fmt.Errorf("write rejects: %w", err)
		}
	}
	return cmp.Or(w.compare(batch), w.tell(batch))
}

// compare writes the reconciliation's lines, if that file is wanted.
func (w *recorder) compare(batch []line) error {
	if !w.files.Reconciles() {
		return nil
	}
	w.compared = w.compared[:0]
	for i := range batch {
		if r, res := &batch[i].r, &w.results[i]; r.outcome != Pending {
			c := comparedWith(&r.entry, &r.found)
			c.File, c.Line, c.Row, c.Key, c.Error = res.File, res.Line, res.Row, res.Key, r.text
			c.StatusFile = batch[i].it.rec.Status
			w.compared = append(w.compared, c)
		}
	}
	if err := w.files.Reconciliation(w.compared); err != nil {
		return fmt.Errorf("write the reconciliation: %w", err)
	}
	return nil
}

func comparedWith(e *checkpoint.Entry, f *comparison) report.Compared {
	before := (*leadBefore)(e)
	c := report.Compared{
		LeadID: e.LeadID, ExternalID: before.linked(), ExternalService: f.external, StatusConfirmed: e.Status,
		StatusService: cmp.Or(f.service, e.Seen.Status), ServiceUpdatedAt: stamp(f.changed),
		Verdict: f.verdict.String(), ChangedBy: verdicts[f.verdict].changedBy, ContentKeys: f.keys,
		OrganizationID: cmp.Or(f.owner, AskedFor(e)),
	}
	if e.State.HasLead() {
		c.ConfirmedAt = stamp(before.confirmed())
	}
	return c
}

// stamp is a time as files show it; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// absent writes a lead that no row names, after close.
func (w *recorder) absent(e *checkpoint.Entry) error {
	if w == nil || !w.files.Reconciles() {
		return nil
	}
	c := comparedWith(e, &comparison{verdict: Absent})
	c.Key, c.Error = e.Key, "no row names the lead"
	return w.files.Reconciliation([]report.Compared{c})
}

func (w *recorder) tell(batch []line) error {
	if !w.files.Tells() {
		return nil
	}
	var problems []report.Problem
	for i := range batch {
		problems = w.appendProblems(problems, &batch[i])
	}
	if err := w.files.Problems(problems); err != nil {
		return fmt.Errorf("write problems: %w", err)
	}
	return nil
}

// appendProblems adds the checks that a row fails, or the reason why it needs attention.
func (w *recorder) appendProblems(all []report.Problem, l *line) []report.Problem {
	it, ps := l.it, l.it.faults
	switch {
	case ps != nil:
	case w.strict && len(it.rec.Dropped)+len(it.rec.Caught) > 0:
		for _, found := range it.rec.Dropped {
			found.Rule, found.Text = "dropped", found.Text+": it is left out, as on_invalid says"
			ps = append(ps, found)
		}
		ps = append(ps, it.rec.Caught...)
	case l.r.outcome.toRejects():
		ps = []mapping.Problem{{Rule: l.r.outcome.String(), Text: l.r.text}}
	}
	for _, p := range ps {
		all = append(all, report.Problem{
			File: w.inputs[it.input].Path, Line: it.row.Line, Row: it.row.Number,
			Column: p.Column, Rule: p.Rule, Text: p.Text, Value: w.valueOf(&it.row, p.Column),
		})
	}
	return all
}

// valueOf is what the row holds in these columns, if the problems file shows values.
func (w *recorder) valueOf(row *source.Row, columns string) string {
	var values []string
	for i := 0; w.values && columns != "" && row.Header != nil && i < min(len(row.Cells), len(row.Header.Names)); i++ {
		if slices.Contains(strings.Split(columns, ", "), row.Header.Names[i]) {
			values = append(values, row.Cells[i])
		}
	}
	return strings.Join(values, ", ")
}

func (w *recorder) result(l *line) report.Result {
	it, r := l.it, &l.r
	e := &r.entry
	res := report.Result{
		File: w.inputs[it.input].Path, Line: strconv.Itoa(it.row.Line), Row: strconv.Itoa(it.row.Number),
		Outcome: r.outcome.String(), LeadID: e.LeadID, ExternalID: e.ExternalID, OrganizationID: AskedFor(e),
		Location: e.Location, Status: e.Status, Attempts: strconv.Itoa(r.attempts), Error: WithRequestID(r.text, e),
	}
	res.Namespace, res.Key = rowkey.Split(it.rec.Key)
	if w.own != nil {
		res.Own = w.own.cells(it)
	}
	if r.outcome == InDoubt || r.outcome == Partial {
		res.ExternalID = e.WantLink
	}
	if e.Code != 0 && (r.attempts > 0 || r.outcome == Rejected || r.outcome == InDoubt || r.outcome == Partial) {
		res.HTTPStatus = strconv.Itoa(e.Code)
	}
	return res
}

func (w *recorder) reject(it *item, r *result) error {
	rej := rejectOf(it, r)
	if h := it.row.Header; h != nil {
		rej.Names, rej.Cells = h.Names[:h.Own], it.row.Cells[:min(len(it.row.Cells), h.Own)]
	}
	return w.files.Reject(w.inputs[it.input], rej)
}

// rejectOf is a row that needs attention, without its own cells.
func rejectOf(it *item, r *result) report.Reject {
	rej := report.Reject{
		Line: it.row.Line, Outcome: r.outcome.String(), Since: r.since,
		Error: WithRequestID(cmp.Or(r.rejectText, r.text), &r.entry), Raw: it.row.Raw, Text: it.row.Text,
	}
	key := it.rec.Key
	if r.outcome == InDoubt { // resolve needs the key that the checkpoint has
		key, rej.SentAt = cmp.Or(r.entry.Key, key), r.entry.Updated
	}
	rej.Namespace, rej.Key = rowkey.Split(key)
	return rej
}

// ownColumns are the columns of all inputs side by side, for --results-columns all. Columns with the same name are one
// column, except where a file has the name twice. JSON objects may all have other keys, so each is written whole into
// one column.
type ownColumns struct {
	names []string
	at    [][]int // for each input, where the cells of its rows go
	whole []bool  // for each input: its rows are JSON objects
}

func newOwnColumns(inputs []*source.File) *ownColumns {
	c := &ownColumns{at: make([][]int, len(inputs)), whole: make([]bool, len(inputs))}
	type column struct {
		name string
		time int // how often its file has had the name
	}
	known := map[column]int{}
	for i, f := range inputs {
		h, times := f.Header(), map[string]int{}
		names := []string{"json"}
		if c.whole[i] = h == nil || h.Open; !c.whole[i] {
			names = h.Names[:h.Own]
		}
		for _, name := range names {
			times[name]++
			one := column{name, times[name]}
			if _, is := known[one]; !is {
				known[one], c.names = len(c.names), append(c.names, name)
			}
			c.at[i] = append(c.at[i], known[one])
		}
	}
	return c
}

// cells are a row's own cells, as they were read, in these columns.
func (c *ownColumns) cells(it *item) []string {
	cells, own := make([]string, len(c.names)), it.row.Cells
	if c.whole[it.input] {
		own = []string{cmp.Or(it.row.Raw, it.row.Text)}
	}
	for i, at := range c.at[it.input] {
		if i < len(own) {
			cells[at] = own[i]
		}
	}
	return cells
}
