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
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// writer writes rows that have ended: add makes batches, the goroutine run writes them. If the disk is slow, all wait.
type writer struct {
	r      *run
	files  *report.Run
	inputs []report.Input
	own    map[string]int // index of each column of the rows' own cells; nil: results do not have them
	batch  []*item        // for run, not handed over yet
	size   int            // bytes that the batch's rows take, about
	ended  chan []*item
	failed atomic.Value // the first error of writing
	done   chan struct{}

	results  []report.Result // buffers of write
	compared []report.Compared
}

func (r *run) openFiles() (*writer, error) {
	w := &writer{r: r, ended: make(chan []*item, 4), done: make(chan struct{})}
	if r.OwnColumns {
		r.Files.Columns, w.own = ownColumns(r.Inputs)
	}
	r.Files.Namespaced = r.Mapping.Namespace() != ""
	var err error
	if w.files, err = report.OpenRun(r.Files); err != nil {
		return nil, fmt.Errorf("%w\nhint: name another place with --out, or with the flag that names this file", err)
	}
	// with an input that is not UTF-8, the user's spreadsheet needs the mark to read the rejects
	mark := slices.ContainsFunc(r.Inputs, func(f *source.File) bool { return f.Info().Other })
	for _, f := range r.Inputs {
		in := f.Info()
		w.inputs = append(w.inputs,
			report.Input{Path: in.Path, Format: in.Format, Delimiter: in.Delimiter, ByteOrderMark: mark})
	}
	r.handOver = w.add
	go w.run()
	return w, nil
}

func (w *writer) add(it *item) error {
	w.batch = append(w.batch, it)
	if w.size += it.row.Size; len(w.batch) >= batchRows || w.size >= batchBytes {
		w.ended <- w.batch
		w.batch, w.size = make([]*item, 0, batchRows), 0
	}
	return w.err()
}

func (w *writer) err() (err error) { err, _ = w.failed.Load().(error); return err }

func (w *writer) close() error {
	w.ended <- w.batch
	close(w.ended)
	<-w.done
	return cmp.Or(w.err(), w.files.Flush())
}

func (w *writer) run() {
	defer close(w.done)
	for batch := range w.ended {
		if w.files.Writes() && w.err() == nil {
			if err := crash.Call(func() error { return w.write(batch) }); err != nil {
				w.failed.Store(err)
			}
		}
		w.r.intake.reuse(batch)
	}
}

func (w *writer) write(batch []*item) error {
	w.results, w.compared = w.results[:0], w.compared[:0]
	var problems []report.Problem
	for _, it := range batch {
		failpoint.At("before results line")
		w.results = append(w.results, w.result(it))
	}
	w.files.Results(w.results)
	for i, it := range batch {
		failpoint.At("after results line")
		if it.outcome.Attention() {
			rej := rejectOf(it)
			if h := it.row.Header; h != nil {
				rej.Names, rej.Cells = h.Names[:h.Own], it.row.Cells[:min(len(it.row.Cells), h.Own)]
			}
			w.files.Reject(w.inputs[it.input], rej)
		}
		if w.r.drift != nil && it.outcome != Pending {
			c, res := comparedWith(&it.entry, &it.found), &w.results[i]
			c.File, c.Line, c.Row, c.Key, c.Error = res.File, res.Line, res.Row, res.Key, it.text
			c.StatusFile = it.rec.Status
			w.compared = append(w.compared, c)
		}
		if w.r.Files.Problems != "" {
			problems = append(problems, w.problems(it)...)
		}
	}
	w.files.Reconciliation(w.compared)
	return w.files.Problems(problems)
}

func (w *writer) result(it *item) report.Result {
	e := &it.entry
	res := report.Result{
		File: w.inputs[it.input].Path, Line: strconv.Itoa(it.row.Line), Row: strconv.Itoa(it.row.Number),
		Outcome: it.outcome.String(), LeadID: e.LeadID, ExternalID: e.ConfirmedLink(), OrganizationID: OrganizationOf(e),
		Location: e.Location, Status: e.Status, Attempts: strconv.Itoa(it.attempts), Error: WithRequestID(it.text, e),
	}
	res.Namespace, res.Key = rowkey.Split(it.knownKey())
	if w.own != nil {
		res.Own = w.ownCells(it)
	}
	if it.outcome == InDoubt || it.outcome == Partial {
		res.ExternalID = e.WantLink
	}
	if e.State == checkpoint.InDoubt && it.outcome != InDoubt { // it may be the lead of another row
		res.LeadID = ""
	}
	if e.Code != 0 && (it.attempts > 0 || it.outcome == Rejected || it.outcome == InDoubt || it.outcome == Partial) {
		res.HTTPStatus = strconv.Itoa(e.Code)
	}
	return res
}

// knownKey returns the key of the row or, for a row in doubt, the key that the checkpoint has, which resolve and adopt
// need. The two differ if a sync found the row in doubt by its ExternalID.
func (it *item) knownKey() string {
	if it.outcome == InDoubt {
		return cmp.Or(it.entry.Key, it.rec.Key)
	}
	return it.rec.Key
}

func rejectOf(it *item) report.Reject {
	rej := report.Reject{
		Line: it.row.Line, Outcome: it.outcome.String(), Since: it.since,
		Error: WithRequestID(it.rejected(), &it.entry), Raw: it.row.Raw, Text: it.row.Text,
	}
	key := it.knownKey()
	if it.row.Outcome != "" && it.entry.State == checkpoint.Unknown { // no lead is found: say again that it may exist
		rej.Outcome, key = it.row.Outcome, cmp.Or(it.row.FormerKey, key)
	}
	if it.outcome == InDoubt {
		rej.SentAt = spelling.Time(it.entry.Updated, time.RFC3339)
	}
	rej.Namespace, rej.Key = rowkey.Split(key)
	return rej
}

func comparedWith(e *checkpoint.Entry, f *comparison) report.Compared {
	c := report.Compared{
		LeadID: e.LeadID, ExternalID: e.ConfirmedLink(), StatusConfirmed: e.Status,
		StatusService: cmp.Or(f.service, e.Seen.Status), Verdict: string(f.verdict), ChangedBy: changedBy[f.verdict],
		ServiceUpdatedAt: spelling.Time(f.changed, spelling.Milliseconds), ContentKeys: f.keys,
		OrganizationID: cmp.Or(e.Seen.Organization, OrganizationOf(e)),
	}
	if f.verdict.compared() {
		c.ExternalService = e.ExternalID
	}
	if e.State.HasLead() {
		c.ConfirmedAt = spelling.Time(e.ConfirmedAt(), spelling.Milliseconds)
	}
	return c
}

func (w *writer) absent(e *checkpoint.Entry) {
	c := comparedWith(e, &comparison{verdict: Absent})
	_, c.Key = rowkey.Split(e.Key)
	c.Error = "no row names the lead"
	w.files.Reconciliation([]report.Compared{c})
}

func (w *writer) problems(it *item) (all []report.Problem) {
	ps := it.faults
	switch {
	case ps != nil:
	case w.r.Strict && len(it.rec.Dropped)+len(it.rec.Caught) > 0:
		for _, found := range it.rec.Dropped {
			found.Rule, found.Text = "dropped", found.Text+": it is left out, as on_invalid says"
			ps = append(ps, found)
		}
		ps = append(ps, it.rec.Caught...)
	case it.outcome.Attention():
		ps = []mapping.Problem{{Rule: it.outcome.String(), Text: it.text}}
	}
	for _, p := range ps {
		value := ""
		if w.r.Files.ProblemValues && p.Column != "" {
			value = strings.Join(it.row.Values(strings.Split(p.Column, ", ")), ", ")
		}
		all = append(all, report.Problem{
			File: w.inputs[it.input].Path, Line: it.row.Line, Row: it.row.Number,
			Column: p.Column, Rule: p.Rule, Text: p.Text, Value: value,
		})
	}
	return all
}

const objectColumn = "json"

// ownColumns returns the columns of all inputs side by side, for --results-columns all, and the index of each. Columns
// with the same name are one. Each JSON object may have other keys, so it is written whole into one column.
func ownColumns(inputs []*source.File) (names []string, at map[string]int) {
	at = map[string]int{}
	for _, f := range inputs {
		own := []string{objectColumn}
		if h := f.Header(); h != nil && !h.Open {
			own = h.Names[:h.Own]
		}
		for _, name := range own {
			if _, is := at[name]; !is {
				at[name], names = len(names), append(names, name)
			}
		}
	}
	return names, at
}

// ownCells returns a row's own cells, as they were read, in these columns. Under one name, the first text counts.
func (w *writer) ownCells(it *item) []string {
	cells := make([]string, len(w.own))
	switch h := it.row.Header; {
	case h == nil:
	case h.Open:
		cells[w.own[objectColumn]] = it.row.Raw
	default:
		for i, cell := range it.row.Cells[:min(len(it.row.Cells), h.Own)] {
			at := &cells[w.own[h.Names[i]]]
			*at = cmp.Or(*at, cell)
		}
	}
	return cells
}
