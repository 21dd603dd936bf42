package report

import (
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
	Outcome        string `csv:"outcome"`
	LeadID         string `csv:"lead_id"`
	ExternalID     string `csv:"external_id"` // linked; of a row in doubt or partial, the one that is wanted
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	HTTPStatus     string `csv:"http_status"` // or ""
	Attempts       string `csv:"attempts"`
	Error          string `csv:"error"`

	Namespace string   `csv:"-"` // of the key; a column behind it where the mapping has one
	Own       []string `csv:"-"` // the row's own cells, in the order of Files.Columns
}

// Results writes lines of the results file. Texts from outside are cut and defused; names and IDs only lose what a
// terminal would act upon.
func (r *Run) Results(batch []Result) error {
	if r.err != nil || r.results == nil || len(batch) == 0 {
		return r.err
	}
	for i := range batch {
		l := &batch[i]
		for _, text := range []*string{&l.File, &l.Key, &l.LeadID, &l.ExternalID, &l.OrganizationID, &l.Status} {
			*text = EscapeLine(*text)
		}
		l.Location, l.Error = Cell(l.Location), Cell(l.Error)
	}
	next := 0
	r.err = gocsv.MarshalCSVWithoutHeaders(batch, widened{r.results.lines, func(cells []string) []string {
		l := &batch[next]
		if next++; r.files.Namespaced {
			cells = slices.Insert(cells, keyColumn+1, l.Namespace)
		}
		return append(cells, l.Own...)
	}})
	return r.err
}

// keyColumn is where the key is in a line of results.
const keyColumn = 3

// widened takes lines from gocsv and adds the columns that not every file has.
type widened struct {
	*csv.Writer
	widen func(cells []string) []string
}

func (w widened) Write(cells []string) error { return w.Writer.Write(w.widen(cells)) }

// beginLines writes the header line of results or of a reconciliation, with further columns behind those that all
// have; a name that exists already is told apart.
func beginLines[T any](to *output, namespaced bool, further []string) error {
	if to == nil {
		return nil
	}
	header, err := gocsv.MarshalString([]T{}) // the names that its tags give the columns
	names := strings.Split(strings.TrimSpace(header), ",")
	if namespaced {
		names = slices.Insert(names, keyColumn+1, "namespace")
	}
	for _, name := range further {
		for slices.Contains(names, name) {
			name = "row_" + name
		}
		names = append(names, name)
	}
	to.lines = csv.NewWriter(to)
	return errors.Join(err, to.lines.Write(names))
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

// rejectsFile holds rows of one header, or JSONL.
type rejectsFile struct {
	out        *output
	names      []string
	namespaced bool
}

// byteOrderMark tells Excel that a file is UTF-8.
const byteOrderMark = "\uFEFF"

// rejectsFor finds or begins the rejects file for a row of in; nil means that none is wanted.
func (r *Run) rejectsFor(in Input, names []string) (*rejectsFile, error) {
	if i := slices.IndexFunc(r.rejects, func(s *rejectsFile) bool { return s.takes(in, names) }); i >= 0 {
		return r.rejects[i], nil
	}
	out, err := r.openRejects(in.Format)
	if out == nil || err != nil {
		return nil, err
	}
	s := &rejectsFile{out, slices.Clone(names), r.files.Namespaced}
	r.rejects = append(r.rejects, s)
	if in.Format != jsonl || in.ByteOrderMark {
		_, err = io.WriteString(out, byteOrderMark)
	}
	if err == nil && in.Format != jsonl {
		out.lines = csv.NewWriter(out)
		out.lines.Comma = in.delimiter()
		err = out.lines.Write(append(slices.Clone(names),
			s.notes(func(name, _ string) string { return notePrefix + name }, &Reject{})...))
	}
	return s, err
}

const jsonl = "jsonl"

// takes reports whether rows of in with these columns belong into the file.
func (s *rejectsFile) takes(in Input, names []string) bool {
	lines := s.out.lines
	if in.Format == jsonl || lines == nil {
		return in.Format == jsonl && lines == nil
	}
	return lines.Comma == in.delimiter() && slices.Equal(s.names, names)
}

func (in *Input) delimiter() rune { return cmp.Or(in.Delimiter, ',') }

// openRejects opens the next rejects file: rejects.csv, rejects-2.csv and so on, or
// in this manner beside the named one.
func (r *Run) openRejects(format string) (*output, error) {
	if out := r.named; out != nil {
		r.named = nil
		return out, nil
	}
	extension := ".csv"
	if format == jsonl || format == "tsv" {
		extension = "." + format
	}
	path := r.files.path(r.files.Rejects, "rejects"+extension)
	if n := len(r.rejects); path != "" && n > 0 {
		path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, filepath.Ext(path)), n+1, extension)
	}
	return r.create(path)
}

func (s *rejectsFile) write(rej *Reject) error {
	if s.out.lines == nil {
		_, err := s.out.Write(append(rej.object(), '\n'))
		return err
	}
	row := make([]string, len(s.names), len(s.names)+9)
	copy(row, rej.Cells)
	return s.out.lines.Write(append(row, s.notes(func(_, cell string) string { return cell }, rej)...))
}

// notes are the columns behind a row's own: what cell makes of the name and the cell of each.
func (s *rejectsFile) notes(cell func(name, cell string) string, rej *Reject) (cells []string) {
	add := func(name, text string) { cells = append(cells, cell(name, text)) }
	add("line", strconv.Itoa(rej.Line))
	add("key", EscapeLine(rej.Key))
	if s.namespaced {
		add("namespace", rej.Namespace)
	}
	add("outcome", rej.Outcome)
	add("since", second(rej.Since))
	add("sent_at", second(rej.SentAt))
	add("lead_id", rej.LeadID)
	add("error", Cell(rej.Error))
	add("text", rej.Text)
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
	b, text := []byte("{"), rej.Text
	if text == "" {
		var err error
		if b, err = members(rej.Raw); err != nil {
			b, text = []byte("{"), rej.Raw
		}
	}
	if len(b) > 1 {
		b = append(b, ',')
	}
	note := rej.shown()
	note.Text = text
	// It cannot fail where broken UTF-8 is let pass.
	v, _ := json.Marshal(note, jsontext.AllowInvalidUTF8(true))
	b = append(append(b, `"`+noteName+`":`...), v...)
	return append(b, '}')
}

var errNoObject = errors.New("the line is not a JSON object")

// members copies the members of an object byte for byte, but those that an earlier
// run added, and leaves the closing brace to the caller.
func members(line string) ([]byte, error) {
	d := jsontext.NewDecoder(strings.NewReader(line))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errNoObject
	}
	b := append(make([]byte, 0, len(line)+128), '{')
	for d.PeekKind() != '}' {
		start := len(b)
		if start > 1 {
			b = append(b, ',')
		}
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		plain, err := jsontext.AppendUnquote(nil, name)
		ours := err == nil && (string(plain) == noteName || strings.HasPrefix(string(plain), notePrefix))
		b = append(append(b, name...), ':')
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		b = append(b, value...)
		if ours {
			b = b[:start]
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errNoObject
	}
	return b, nil
}
