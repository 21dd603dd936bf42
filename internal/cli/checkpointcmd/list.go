package checkpointcmd

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// ExportLine is a line of a checkpoint export, which resolve and adopt take back
// (INTERFACE, "Files that a run writes").
type ExportLine struct {
	Key            string     `csv:"key" json:"key"`
	State          string     `csv:"state" json:"state"`
	LeadID         string     `csv:"lead_id" json:"lead_id"`
	OrganizationID string     `csv:"organization_id" json:"organization_id"`
	Location       string     `csv:"location" json:"location"`
	Status         string     `csv:"status" json:"status"`
	ExternalID     string     `csv:"external_id" json:"external_id"`
	RunID          string     `csv:"run_id" json:"run_id"`
	UpdatedAt      string     `csv:"updated_at" json:"updated_at"`
	File           string     `csv:"file" json:"file"`
	Line           lineNumber `csv:"line" json:"line,omitempty"`
	Error          string     `csv:"error" json:"error"` // in doubt: the request's ID, too
	RequestID      string     `csv:"-" json:"request_id,omitempty"`
}

// lineNumber is the number of a line; an entry that no file brought has none.
type lineNumber int

// MarshalCSV leaves the cell empty where there is no line.
func (l lineNumber) MarshalCSV() (string, error) {
	return strings.TrimPrefix(strconv.Itoa(int(l)), "0"), nil
}

// UnmarshalCSV takes what is no number for no line: people may have edited the file.
func (l *lineNumber) UnmarshalCSV(cell string) error {
	n, _ := strconv.Atoi(cell)
	*l = lineNumber(n)
	return nil
}

// listed is a row of a file that resolve or adopt takes. Only key and lead_id must be there.
type listed struct {
	ExportLine
	Outcome string `csv:"outcome"` // of a run's results alone
	at      int    // the line on which it begins
	number  int    // of the row, from 1
}

// list is such a file.
type list struct {
	path    string
	command string
	rows    []listed
	results bool // of a run: it has outcomes and no states
}

// maxList bounds such a file, in bytes: about two million rows of an export.
const maxList = 512 << 20

// readList reads a file; - is standard input. Further columns are allowed and
// ignored. A column that is missing must not read as empty.
func (d *Desk) readList(path, command string) (*list, error) {
	l := &list{path: path, command: command}
	in := d.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usage(fmt.Sprintf("the file cannot be read: %v", err), l.hint())
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxList+1))
	switch {
	case err != nil:
		return nil, usage(fmt.Sprintf("%s: cannot be read: %v", path, err), l.hint())
	case len(data) > maxList:
		return nil, usage(path+": is larger than 512 MiB", "split it")
	case !utf8.Valid(data):
		return nil, usage(path+": is not UTF-8, so keys would not be recognised", "save it as CSV UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		err = l.readJSON(data)
	} else {
		err = l.readCSV(data)
	}
	return l, err
}

func (l *list) add(row listed, line int) *listed {
	row.at, row.number = line, len(l.rows)+1
	row.Key, row.LeadID = rowkey.Trim(row.Key), strings.TrimSpace(row.LeadID)
	l.rows = append(l.rows, row)
	return &l.rows[row.number-1]
}

func (l *list) hint() string {
	return l.command + " takes a CSV file with the columns key and lead_id, such as leadferry checkpoint export writes"
}

// readCSV takes the delimiter under which the header has both columns:
// spreadsheet programs write what the language of the computer asks for.
func (l *list) readCSV(data []byte) error {
	for _, comma := range []rune{',', ';', '\t'} {
		r := csv.NewReader(bytes.NewReader(data))
		r.Comma = comma
		columns, err := gocsv.NewUnmarshaller(r, listed{})
		if err != nil || !slices.Contains(columns.Headers, "key") || !slices.Contains(columns.Headers, "lead_id") {
			continue
		}
		for i, name := range columns.Headers {
			if name != "" && slices.Contains(columns.Headers[:i], name) {
				return usage(fmt.Sprintf("%s:1: the column %s stands twice", l.path, name), l.hint())
			}
		}
		l.results = slices.Contains(columns.Headers, "outcome") && !slices.Contains(columns.Headers, "state")
		return l.readRows(r, columns)
	}
	return usage(l.path+":1: the columns key and lead_id are not both there", l.hint())
}

func (l *list) readRows(r *csv.Reader, columns *gocsv.Unmarshaller) error {
	for {
		read, err := columns.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return usage(fmt.Sprintf("%s:%d: %v", l.path, bad.StartLine, bad.Err), l.hint())
		}
		if err != nil {
			return usage(fmt.Sprintf("%s: %v", l.path, err), l.hint())
		}
		row := read.(listed)
		if row == (listed{}) {
			continue // what spreadsheets leave at the end
		}
		line, _ := r.FieldPos(0)
		if row := l.add(row, line); strings.Contains(row.Key, "\n") {
			// CSV does not keep which kind of line break it was.
			return l.fault(row, "its key has a line break, which CSV does not keep as it was", "use leadferry checkpoint export --format jsonl")
		}
	}
}

// readJSON reads an export as JSONL.
func (l *list) readJSON(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for line, from := 1, int64(0); ; {
		var x struct {
			ExportLine
			Key    *string `json:"key"` // nil where it is not there
			LeadID *string `json:"lead_id"`
		}
		err := json.UnmarshalDecode(dec, &x)
		if errors.Is(err, io.EOF) {
			return nil
		}
		line += bytes.Count(data[from:dec.InputOffset()], []byte("\n"))
		from = dec.InputOffset()
		if err != nil || x.Key == nil || x.LeadID == nil {
			return usage(fmt.Sprintf("%s:%d: is no JSON object with key and lead_id", l.path, line), l.hint())
		}
		row := listed{ExportLine: x.ExportLine}
		row.Key, row.LeadID = *x.Key, *x.LeadID
		l.add(row, line)
	}
}

// plausible refuses what a person writes into a column of IDs but is none: words, which
// have no digit, and nothing but zeros.
func (l *list) plausible(row *listed, id string) error {
	if id == "" || strings.ContainsAny(id, "0123456789") && strings.Trim(id, "0-._") != "" {
		return nil
	}
	hint := "write the lead ID that the console shows"
	if l.command == "resolve" {
		hint += ", the word exists, or none where the lead was not made"
	}
	return l.fault(row, "its lead_id has no digit, or none but 0, so it is no lead ID", hint)
}

// fault is what is wrong with a row. It names no values.
func (l *list) fault(row *listed, text, hint string) error {
	return usage(fmt.Sprintf("%s:%d (row %d of the file): %s", l.path, row.at, row.number, text), hint)
}

// refused turns the refusal of an entry into one of its row; rows are those of the entries.
func (l *list) refused(err error, rows []*listed, consequence string) error {
	why := (*checkpoint.ListError)(nil)
	if !errors.As(err, &why) {
		return err
	}
	return l.fault(rows[why.Index], why.Text+"; "+consequence, cmp.Or(why.Hint, l.hint()))
}
