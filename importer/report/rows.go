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
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
)

// Result is one line of the results file: how a row ended. Line is the physical line on which the row starts. Row
// counts the data rows of its file. Both count from 1. Own, and what leadferry reads back (see escapeID), stay as they
// are; other cells are escaped. Location and error are cut.
type Result struct {
	File           string `csv:"file"`
	Line           string `csv:"line"`
	Row            string `csv:"row"`
	Key            string `csv:"key"`
	Namespace      string `csv:"namespace"` // of the key, if the mapping has one
	Outcome        string `csv:"outcome"`
	LeadID         string `csv:"lead_id"`
	ExternalID     string `csv:"external_id"` // as confirmed; for a row in doubt or partial, the requested one
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	HTTPStatus     string `csv:"http_status"` // of the answer that led to this outcome, or ""
	Attempts       string `csv:"attempts"`
	Error          string `csv:"error"`

	Own []string `csv:"-"` // the row's own cells, in the order of Files.Columns
}

// Results writes lines to the results file.
func (r *Run) Results(batch []Result) error {
	return writeLines(r, r.results, batch, func(i int) []string { return batch[i].Own })
}

// Compared is one line of the reconciliation: a row beside its lead, or a lead that no row names, without File, Line
// and Row. ContentKeys names the keys that differ, never their values.
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

// Reconciliation writes lines to the reconciliation, if there is one.
func (r *Run) Reconciliation(batch []Compared) error {
	return writeLines(r, r.reconciliation, batch, nil)
}

// Pulled is one line of the pull file: a lead whose status the CRM should take over. Status is the CRM's own word.
type Pulled struct {
	ExternalID     string `csv:"external_id"`
	Status         string `csv:"status"`
	LeadID         string `csv:"lead_id"`
	UpdatedAt      string `csv:"updated_at"`
	OrganizationID string `csv:"organization_id"`
}

// Pull writes the whole pull file. A run that stops early does not call it: the file of an earlier run then stays.
func (r *Run) Pull(lines []Pulled) error {
	beginLines[Pulled](r, r.pull)
	return writeLines(r, r.pull, lines, nil)
}

// lines is the CSV writer for gocsv. It makes the cells of each column safe to show and adds the row's own cells.
type lines struct {
	*csv.Writer
	shown    []func(string) string // how to make the cells of each column safe to show
	without  int                   // the column that this run leaves out, or -1
	ownFirst bool                  // the row's own cells come first
	own      func(i int) []string  // returns the row's own cells of line i of this batch; nil: there are none
	written  int                   // lines of this batch
}

// beginLines writes the header line of a file whose lines are T. The rows' own columns come first in rejects, and last
// in all other files. There, an own column gets the prefix row_ if its name is used already, or if adopt reads it.
func beginLines[T any](r *Run, to *output, own ...string) {
	if to == nil || r.err != nil {
		return
	}
	header, err := gocsv.MarshalString([]T{}) // the column names come from the tags of T
	names := strings.Split(strings.TrimSpace(header), ",")
	to.lines = &lines{Writer: csv.NewWriter(to), shown: checkpoint.Map(names, shownAs), ownFirst: to.kind == "rejects"}
	to.lines.Comma, to.lines.without = cmp.Or(to.delimiter, ','), slices.IndexFunc(names, r.files.omits)
	if at := to.lines.without; at >= 0 {
		names = slices.Delete(names, at, at+1)
	}
	if to.lines.ownFirst {
		names, own = slices.Concat(own, names), nil
	}
	for _, name := range own {
		for slices.Contains(append([]string{"namespace", "state", "verdict", "run_id", "updated_at"}, names...), name) {
			name = "row_" + name
		}
		names = append(names, name)
	}
	r.err = errors.Join(err, to.lines.Writer.Write(names))
	to.lines.Flush() // into the output's buffer, as gocsv does after each batch
}

// omits reports whether the files of this run leave out a column that files of other runs have.
func (f *Files) omits(column string) bool {
	return column == "value" && !f.ProblemValues || strings.HasSuffix(column, "namespace") && !f.Namespaced
}

// shownAs returns how to make the cells of a column safe to show. Texts from outside are cut and defused. In names and
// IDs only characters that a terminal obeys are escaped. leadferry_text stays as it is.
func shownAs(column string) func(string) string {
	switch column {
	case "location", "error", "content_keys", "column", "text", "value", "leadferry_error":
		return Cell
	case "line", "row": // they count from 1, so 0 becomes empty
		return func(number string) string { return strings.TrimPrefix(number, "0") }
	case "leadferry_text":
		return strings.Clone
	case "key", "leadferry_key", "namespace", "leadferry_namespace", "external_id", "status":
		return escapeID
	}
	return spelling.EscapeLine
}

// escapeID returns a key, an ExternalID or a status unchanged: leadferry reads it back. It escapes one with control
// characters: that one comes from the service, since a row's own key with control characters is invalid.
func escapeID(id string) string {
	if safe := spelling.EscapeLine(id); safe != id && strings.ContainsFunc(id, unicode.IsControl) {
		return safe
	}
	return id
}

// writeLines writes a batch of lines. own returns the row's own cells of line i; nil: there are none.
func writeLines[T any](r *Run, to *output, batch []T, own func(i int) []string) error {
	if r.err == nil && to != nil && len(batch) > 0 {
		to.lines.own, to.lines.written = own, 0
		waiting := make(chan any, len(batch)) // given the slice, gocsv allocates memory for each cell
		for _, line := range batch {
			waiting <- line
		}
		close(waiting)
		r.err = gocsv.MarshalChanWithoutHeaders(waiting, to.lines)
	}
	return r.err
}

func (l *lines) Write(cells []string) error {
	for i, cell := range cells {
		cells[i] = l.shown[i](cell)
	}
	if at := l.without; at >= 0 {
		cells = slices.Delete(cells, at, at+1)
	}
	if l.own != nil {
		own := l.own(l.written)
		if l.ownFirst {
			own, cells = cells, own
		}
		cells = append(slices.Clip(cells), own...)
	}
	l.written++
	return l.Writer.Write(cells)
}

// Reject is a row that needs attention. Names and Cells are its own columns as read; a row of JSON has Raw instead, its
// object on one line. All other fields are added to the row: as columns, or as an object named noteName. Text is the
// whole row if it could not be split, not cut and not defused. While it is there, the row is not corrected.
type Reject struct {
	Line      int    `csv:"leadferry_line" json:"line"`
	Key       string `csv:"leadferry_key" json:"key"`
	Namespace string `csv:"leadferry_namespace" json:"namespace,omitempty"` // of the key
	Outcome   string `csv:"leadferry_outcome" json:"outcome"`
	Since     string `csv:"leadferry_since" json:"since,omitempty"`     // when it began to need attention
	SentAt    string `csv:"leadferry_sent_at" json:"sent_at,omitempty"` // for a row in doubt
	LeadID    string `csv:"leadferry_lead_id" json:"lead_id"`           // a person who looks the lead up fills it in
	Error     string `csv:"leadferry_error" json:"error"`
	Text      string `csv:"leadferry_text" json:"text,omitempty"`

	Names, Cells []string `csv:"-" json:"-"`
	Raw          string   `csv:"-" json:"-"`
}

// shown returns the reject with its error safe to show.
func (rej Reject) shown() Reject {
	rej.Error = spelling.Escape(rej.Error)
	return rej
}

// byteOrderMark tells Excel that a file is UTF-8.
const byteOrderMark = "\uFEFF"

const jsonl = "jsonl"

// Reject writes a row that needs attention in the form of its input. Each rejects file holds rows of one header.
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
	if r.err != nil || at == len(r.rejects) { // beginRejects added none: no rejects are wanted
		return r.err
	}
	f := r.rejects[at]
	if f.lines == nil {
		r.writeLine(f, rej.object())
		return r.err
	}
	row := make([]string, len(f.names)) // a row may have fewer cells than the header
	copy(row, rej.Cells)
	return writeLines(r, f, []Reject{rej}, func(int) []string { return row })
}

// beginRejects begins the next rejects file, if wanted: rejects.csv or the file of --rejects, then rejects-2.csv etc.
func (r *Run) beginRejects(in Input, delimiter rune, names []string) {
	out, extension := r.unusedRejects, ".csv"
	if in.Format == jsonl || in.Format == "tsv" {
		extension = "." + in.Format
	}
	if r.unusedRejects = nil; out == nil {
		path := r.files.path(r.files.Rejects, "rejects"+extension)
		if n := len(r.rejects); n > 0 {
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
		beginLines[Reject](r, out, names...)
	}
}

const noteName, notePrefix = "leadferry", "leadferry_" // keys and columns that are not the row's own data

// object returns the JSONL line of a reject: its members as read, if it could be split, then the note.
func (rej *Reject) object() []byte {
	note, own := rej.shown(), []byte(nil)
	if raw := jsontext.Value(rej.Raw); note.Text == "" && raw.IsValid() && raw.Kind() == '{' {
		own = members(raw)
	} else if note.Text == "" {
		note.Text = rej.Raw
	}
	v, _ := json.Marshal(note, jsontext.AllowInvalidUTF8(true)) // only invalid UTF-8 could fail, and it is allowed
	return fmt.Appendf(nil, `{%s"%s":%s}`, own, noteName, v)
}

// members returns the members of an object byte for byte, each followed by a comma, without the note of an earlier run.
func members(object jsontext.Value) (b []byte) {
	d := jsontext.NewDecoder(bytes.NewReader(object)) // the object is valid, so nothing fails
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
