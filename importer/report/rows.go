package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gocarina/gocsv"
)

// Result is one line of the results file: how one row ended. Line is the physical
// line on which the row starts, Row counts the data rows of its file, both from 1.
type Result struct {
	File           string `csv:"file"`
	Line           string `csv:"line"`
	Row            string `csv:"row"`
	Key            string `csv:"key"`
	Namespace      string `csv:"namespace"` // of the key, where the mapping has one
	Outcome        string `csv:"outcome"`
	LeadID         string `csv:"lead_id"`
	ExternalID     string `csv:"external_id"` // linked; of a row in doubt or partial, the one that is wanted
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	HTTPStatus     string `csv:"http_status"` // or ""
	Attempts       string `csv:"attempts"`
	Error          string `csv:"error"`

	Own []string `csv:"-"` // the row's own cells, in the order of Files.Columns
}

// Results writes lines of the results file.
func (r *Run) Results(batch []Result) error {
	return writeLines(r, r.results, batch, func(i int) []string { return batch[i].Own })
}

// Compared is one line of the reconciliation: a row beside its lead, or a lead that no row names,
// which has no File, Line and Row. Of content it names the keys that differ, never values.
type Compared struct {
	File             string `csv:"file"`
	Line             string `csv:"line"`
	Row              string `csv:"row"`
	Key              string `csv:"key"`
	LeadID           string `csv:"lead_id"`
	ExternalID       string `csv:"external_id"`
	ExternalService  string `csv:"external_id_service"`
	StatusFile       string `csv:"status_file"`
	StatusConfirmed  string `csv:"status_confirmed"`
	StatusService    string `csv:"status_service"`
	Verdict          string `csv:"verdict"`
	ChangedBy        string `csv:"changed_by"` // file, service, both or ""
	ConfirmedAt      string `csv:"confirmed_at"`
	ServiceUpdatedAt string `csv:"service_updated_at"`
	ContentKeys      string `csv:"content_keys"`
	OrganizationID   string `csv:"organization_id"`
	Error            string `csv:"error"`
}

// Reconciles reports whether a reconciliation is written.
func (r *Run) Reconciles() bool { return r.reconciliation != nil }

// Reconciliation writes lines of it.
func (r *Run) Reconciliation(batch []Compared) error {
	return writeLines(r, r.reconciliation, batch, nil)
}

// Pulled is one line of the pull file: a lead whose status the CRM should take over, in the CRM's own word.
type Pulled struct {
	ExternalID     string `csv:"external_id"`
	Status         string `csv:"status"`
	LeadID         string `csv:"lead_id"`
	UpdatedAt      string `csv:"updated_at"`
	OrganizationID string `csv:"organization_id"`
}

// Pull writes the pull file as a whole. A run that does not call it, because it stopped before its end, leaves the file
// of an earlier one as it is.
func (r *Run) Pull(lines []Pulled) error {
	if r.err != nil || r.pull == nil {
		return r.err
	}
	r.err, r.pulled = beginLines[Pulled](r.pull, "", true), len(lines)
	return writeLines(r, r.pull, lines, nil)
}

// beginLines writes the header line of a file whose lines are a T, without the optional column unless it is wanted, and
// with the rows' own columns behind. One of these whose name is there already gets another one.
func beginLines[T any](to *output, optional string, wanted bool, own ...string) error {
	if to == nil {
		return nil
	}
	header, err := gocsv.MarshalString([]T{}) // the names that its tags give the columns
	names := strings.Split(strings.TrimSpace(header), ",")
	to.shown = convert(names, shownAs)
	if to.without = -1; !wanted {
		to.without = slices.Index(names, optional)
		names = slices.Delete(names, to.without, to.without+1)
	}
	for _, name := range own {
		for slices.Contains(names, name) {
			name = "row_" + name
		}
		names = append(names, name)
	}
	to.lines = csv.NewWriter(to)
	return errors.Join(err, to.lines.Write(names))
}

// shownAs is how the cells of a column are made fit to be shown: texts from outside are cut and defused, names and IDs
// only lose what a terminal would act upon.
func shownAs(column string) func(string) string {
	switch column {
	case "location", "error", "content_keys", "column", "text", "value":
		return Cell
	case "line", "row": // count from 1
		return func(number string) string { return strings.TrimPrefix(number, "0") }
	}
	return EscapeLine
}

// writeLines writes a batch of lines, each with the row's own cells, if any.
func writeLines[T any](r *Run, to *output, batch []T, own func(i int) []string) error {
	if r.err == nil && to != nil && len(batch) > 0 {
		r.err = gocsv.MarshalCSVWithoutHeaders(batch, &shown{to.lines, to, own, 0})
	}
	return r.err
}

// shown takes lines from gocsv and makes them fit to be shown.
type shown struct {
	*csv.Writer
	to      *output
	own     func(i int) []string
	written int
}

func (w *shown) Write(cells []string) error {
	for i, cell := range cells {
		cells[i] = w.to.shown[i](cell)
	}
	if at := w.to.without; at >= 0 {
		cells = slices.Delete(cells, at, at+1)
	}
	if w.own != nil {
		cells = append(cells, w.own(w.written)...)
	}
	w.written++
	return w.Writer.Write(cells)
}

// Reject is a row that needs attention. Names and Cells are its own columns as they were read; Raw is a JSON object on
// one line, in their place. The rest is added to the row: as columns, or as an object under noteName. Text is the whole
// row where it could not be taken apart: it is written neither cut nor defused, and as long as it is there a reader
// takes the row for not corrected yet.
type Reject struct {
	Line      int       `json:"line"`
	Key       string    `json:"key"`
	Namespace string    `json:"namespace,omitempty"` // of the key
	Outcome   string    `json:"outcome"`
	Since     time.Time `json:"since,omitzero"`   // since when it needs attention for this reason
	SentAt    time.Time `json:"sent_at,omitzero"` // of a row in doubt: when it was sent
	LeadID    string    `json:"lead_id"`          // anyone who looks the lead up fills it in
	Error     string    `json:"error"`
	Text      string    `json:"text,omitempty"`

	Names, Cells []string `json:"-"`
	Raw          string   `json:"-"`
}

// shown is what the files show of it.
func (rej Reject) shown() Reject {
	rej.Key, rej.Error = EscapeLine(rej.Key), Escape(rej.Error)
	rej.Since, rej.SentAt = rej.Since.UTC().Truncate(time.Second), rej.SentAt.UTC().Truncate(time.Second)
	return rej
}

// byteOrderMark tells Excel that a file is UTF-8.
const byteOrderMark = "\uFEFF"

const jsonl = "jsonl"

// Reject writes a row that needs attention, as it was read from in. Rows go to the file of their header.
func (r *Run) Reject(in Input, rej Reject) error {
	delimiter, names := cmp.Or(in.Delimiter, ','), rej.Names
	if in.Format == jsonl {
		delimiter, names = 0, nil
	}
	at := slices.IndexFunc(r.rejects, func(f *output) bool {
		return f.delimiter == delimiter && slices.Equal(f.names, names)
	})
	if at < 0 {
		at = len(r.rejects)
		r.beginRejects(in, delimiter, names)
	}
	if r.err != nil || at == len(r.rejects) { // none are wanted
		return r.err
	}
	f := r.rejects[at]
	if f.lines == nil {
		_, r.err = f.Write(append(rej.object(), '\n'))
		return r.err
	}
	row := make([]string, len(f.names), len(f.names)+9)
	copy(row, rej.Cells)
	r.err = f.lines.Write(append(row, r.notes(strconv.Itoa(rej.Line), EscapeLine(rej.Key), rej.Namespace, rej.Outcome,
		second(rej.Since), second(rej.SentAt), rej.LeadID, Cell(rej.Error), rej.Text)...))
	return r.err
}

// beginRejects begins the next rejects file, if they are wanted: rejects.csv, rejects-2.csv and so on, or in this
// manner beside the named one.
func (r *Run) beginRejects(in Input, delimiter rune, names []string) {
	out, extension := r.named, ".csv"
	if in.Format == jsonl || in.Format == "tsv" {
		extension = "." + in.Format
	}
	if r.named = nil; out == nil {
		path := r.files.path(r.files.Rejects, "rejects"+extension)
		if n := len(r.rejects); path != "" && n > 0 {
			path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, filepath.Ext(path)), n+1, extension)
		}
		out = r.create("rejects", path)
	}
	if out == nil {
		return
	}
	out.delimiter, out.names = delimiter, slices.Clone(names)
	r.rejects = append(r.rejects, out)
	if delimiter != 0 || in.ByteOrderMark {
		_, r.err = io.WriteString(out, byteOrderMark)
	}
	if delimiter != 0 {
		out.lines = csv.NewWriter(out)
		out.lines.Comma = delimiter
		header := r.notes("line", "key", "namespace", "outcome", "since", "sent_at", "lead_id", "error", "text")
		each(header, func(name *string) { *name = notePrefix + *name })
		r.err = cmp.Or(r.err, out.lines.Write(slices.Concat(names, header)))
	}
}

// notes are the columns behind a row's own, of which the namespace is the third.
func (r *Run) notes(cells ...string) []string {
	if !r.files.Namespaced {
		cells = slices.Delete(cells, 2, 3)
	}
	return cells
}

// second is a time in files, "" for none.
func second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

const (
	noteName   = "leadferry"
	notePrefix = "leadferry_" // of columns and keys that are left out when read
)

// object is the JSONL line of a reject: the members as read and the note, or the
// note alone, with the line as text, where that could not be taken apart.
func (rej *Reject) object() []byte {
	note, own := rej.shown(), []byte(nil)
	if raw := jsontext.Value(rej.Raw); note.Text == "" && raw.IsValid() && raw.Kind() == '{' {
		own = members(raw)
	} else if note.Text == "" {
		note.Text = rej.Raw
	}
	// It cannot fail where broken UTF-8 is let pass.
	v, _ := json.Marshal(note, jsontext.AllowInvalidUTF8(true))
	return fmt.Appendf(nil, `{%s"%s":%s}`, own, noteName, v)
}

// members are those of an object byte for byte, each with a comma behind it, but those that an earlier run added.
func members(object jsontext.Value) (b []byte) {
	d := jsontext.NewDecoder(bytes.NewReader(object)) // it is valid: nothing fails
	_, _ = d.ReadToken()
	for d.PeekKind() != '}' {
		name, _ := d.ReadValue()
		plain, _ := jsontext.AppendUnquote(nil, name)
		added := string(plain) == noteName || strings.HasPrefix(string(plain), notePrefix)
		start := len(b)
		b = append(append(b, name...), ':')
		value, _ := d.ReadValue()
		if b = append(append(b, value...), ','); added {
			b = b[:start]
		}
	}
	return b
}
