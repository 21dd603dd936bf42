package checkpointcmd

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gocarina/gocsv"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"leadferry/checkpoint"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
)

// ExportLine is a line of a checkpoint export, which resolve and adopt take back
// (INTERFACE, "Files that a run writes").
type ExportLine struct {
	Key            string     `csv:"key" json:"key"`
	Namespace      string     `csv:"-" json:"namespace,omitempty"` // in CSV a column of its own where any key has one
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
	Space   string `csv:"namespace"`
	at      int    // the line on which it begins
	number  int    // of the row, from 1
}

// list is such a file. Who goes through it with each holds one row at a time.
type list struct {
	path    string
	command string
	in      io.ReadSeeker
	open    bool   // no line break ends it
	results bool   // of a run: it has outcomes and no states
	partial bool   // of a run that was killed: its last row may be cut off, and is left out then
	spaced  string // the namespace of keys for which the file names none
	lacks   string // what the checkpoint lacked that was exported
	rows    int    // that were read last
}

// incompleteState is the state of the last line of an export, which has no key, where the checkpoint is incomplete: error
// says what it lacks.
const incompleteState = "incomplete"

// maxRows bounds a file whose rows are held in memory, in bytes: about two million rows of an
// export.
const maxRows = 512 << 20

// openList opens a file; - is standard input, which is kept to be read again. The caller closes it.
func (d *Desk) openList(path, command string) (*list, io.Closer, error) {
	l := &list{path: path, command: command, spaced: d.Namespace, partial: strings.HasSuffix(path, ".partial")}
	var file io.Closer
	var err error
	if path == "-" {
		kept := new(terminal.Spool)
		_, err = io.Copy(kept, d.In)
		l.in, file = kept.Content(), kept
	} else {
		var f *os.File
		f, err = os.Open(path)
		l.in, file = f, f
	}
	if err != nil {
		return nil, nil, exit.Usage(fmt.Sprintf("the file cannot be read: %v", err), cmp.Or(disk.Held(err), l.hint()))
	}
	if err := l.check(); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return l, file, nil
}

// check reads a file to its end and says what it is.
func (l *list) check() error {
	size, err := io.Copy(io.Discard, transform.NewReader(l.in, encoding.UTF8Validator))
	switch {
	case errors.Is(err, encoding.ErrInvalidUTF8):
		return exit.Usage(l.path+": is not UTF-8, so keys would not be recognised", "save it as CSV UTF-8; what the > of Windows PowerShell wrote has lost letters: name the file by -o instead")
	case err != nil:
		return exit.Usage(fmt.Sprintf("%s: cannot be read: %v", l.path, err), l.hint())
	case size > maxRows && l.command != "adopt":
		return exit.Usage(l.path+": is larger than 512 MiB", "split it")
	case size == 0:
		return nil
	}
	last := make([]byte, 1)
	_, err = l.in.Seek(-1, io.SeekEnd)
	if err == nil {
		_, err = l.in.Read(last)
	}
	if l.open = last[0] != '\n' && last[0] != '\r'; err != nil {
		return exit.Usage(fmt.Sprintf("%s: cannot be read: %v", l.path, err), l.hint())
	}
	return nil
}

// each calls f with every row, from the first one on. Further columns are allowed and
// ignored. A column that is missing must not read as empty.
func (l *list) each(f func(row *listed) error) error {
	l.rows = 0
	return l.eachRecord(func(row listed, line int) error {
		l.rows++
		row.at, row.number = line, l.rows
		row.Key, row.LeadID = rowkey.Trim(row.Key), strings.TrimSpace(row.LeadID)
		space := cmp.Or(row.Namespace, row.Space, l.spaced)
		if space != "" && !rowkey.IsNamespace(space) {
			return l.fault(&row, "its namespace is none", "a namespace has 1 to 64 letters, digits, dots, underscores and hyphens")
		}
		if row.Key != "" {
			row.Key = rowkey.Effective(space, row.Key)
		}
		if row.State == incompleteState && row.Key == "" {
			l.lacks = cmp.Or(row.Error, "leads that the exported checkpoint lacked")
			return nil
		}
		if strings.Contains(row.Key, "\n") {
			return l.fault(&row, "its key has a line break, which no row's key has", "take the row out")
		}
		return f(&row)
	})
}

// begin reads from the beginning, behind a byte order mark.
func (l *list) begin() (in *bufio.Reader, err error) {
	if _, err := l.in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in = bufio.NewReaderSize(l.in, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark)) // it was read before
	}
	return in, nil
}

func (l *list) hint() string {
	return l.command + " takes a CSV file with the columns key and lead_id, such as leadferry checkpoint export writes"
}

// eachRecord takes the delimiter under which the header has both columns:
// spreadsheet programs write what the language of the computer asks for.
func (l *list) eachRecord(add func(listed, int) error) error {
	for _, comma := range []rune{',', ';', '\t'} {
		in, err := l.begin()
		if err != nil {
			return exit.Usage(fmt.Sprintf("%s: cannot be read: %v", l.path, err), l.hint())
		}
		r := csv.NewReader(in)
		r.Comma = comma
		columns, err := gocsv.NewUnmarshaller(r, listed{})
		if err != nil || !slices.Contains(columns.Headers, "key") || !slices.Contains(columns.Headers, "lead_id") {
			continue
		}
		for i, name := range columns.Headers {
			if name != "" && slices.Contains(columns.Headers[:i], name) {
				return exit.Usage(fmt.Sprintf("%s:1: the column %s stands twice", l.path, name), l.hint())
			}
		}
		l.results = slices.Contains(columns.Headers, "outcome") && !slices.Contains(columns.Headers, "state")
		return l.readRecords(in, r, columns, add)
	}
	if l.partial { // the run was killed before the header was whole
		l.results = true
		return nil
	}
	return exit.Usage(l.path+":1: the columns key and lead_id are not both there", l.hint())
}

func (l *list) readRecords(in *bufio.Reader, r *csv.Reader, columns *gocsv.Unmarshaller, add func(listed, int) error) error {
	for {
		read, err := columns.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		_, end := in.Peek(1)
		last := l.open && end != nil
		bad := (*csv.ParseError)(nil)
		switch {
		case l.partial && last && err != nil:
			return nil
		case errors.As(err, &bad) && last:
			return l.cutOff(bad.StartLine)
		case bad != nil:
			return exit.Usage(fmt.Sprintf("%s:%d: %v", l.path, bad.StartLine, bad.Err), l.hint())
		case err != nil:
			return exit.Usage(fmt.Sprintf("%s: %v", l.path, err), l.hint())
		}
		row := read.(listed)
		if row == (listed{}) {
			continue // what spreadsheets leave at the end
		}
		if l.partial && last {
			return nil // nobody knows whether it is whole
		}
		line, _ := r.FieldPos(0)
		if last && row.mayBeCutIn(columns.Headers[len(columns.Headers)-1]) {
			return l.fault(&listed{at: line, number: l.rows + 1}, "the file ends in it without a line break, so it may be cut off", "see that the row is whole, and end it with a line break")
		}
		if err := add(row, line); err != nil {
			return err
		}
	}
}

// cutOff refuses a file whose last row, which begins on this line, is not whole: it was not written to its end, as where a
// disk was full.
func (l *list) cutOff(line int) error {
	hint := "take the row out; nothing is known of it then, so look in the console whether its lead was made"
	if l.command == "resolve" {
		hint = "`leadferry checkpoint export --state in_doubt` lists again what is in doubt, whole"
	}
	return l.fault(&listed{at: line, number: l.rows + 1}, "is cut off: the file ends in the midst of it, so nothing was taken from the file", hint)
}

// mayBeCutIn says whether a row may be cut off in its last column, which tells of what lead.
func (row *listed) mayBeCutIn(column string) bool {
	cell := map[string]string{"key": row.Key, "lead_id": row.LeadID, "external_id": row.ExternalID}[column]
	whole := rowkey.IsUUID(cell) || column == "lead_id" && (strings.EqualFold(cell, exists) || strings.EqualFold(cell, notMade))
	return cell != "" && !whole
}

// plausible refuses what a person writes into a column of IDs but is none: words, which have no digit, a short number with or
// without letters behind it (2nd), nothing but zeros, and a part of a UUID, which lead IDs are (specification, Lead creation
// response body).
func (l *list) plausible(row *listed, id string) error {
	hint := "write the lead ID that the console shows"
	switch {
	case id == "":
		return nil
	case !strings.ContainsAny(id, "0123456789") || strings.Trim(id, "0-._") == "":
		if l.command == "resolve" {
			hint += ", the word exists, or none where the lead was not made"
		}
		return l.fault(row, "its lead_id has no digit, or none but 0, so it is no lead ID", hint)
	case l.command == "resolve" && isCount(id):
		return l.fault(row, "its lead_id is a number, not a lead ID", hint)
	case isPartOfUUID(id) && (l.command == "resolve" || row.State == ""):
		return l.fault(row, fmt.Sprintf("its lead_id is no whole lead ID: it looks like a UUID, of which it has %d characters instead of 36", len(id)), hint)
	}
	return nil
}

// isCount reports whether a text is what people count with: at most five digits, and letters behind them.
func isCount(text string) bool {
	behind := strings.TrimLeft(text, "0123456789")
	return len(behind) < len(text) && len(text)-len(behind) < 6 && len(behind) < 4 && !strings.ContainsAny(behind, "0123456789-._")
}

func isPartOfUUID(id string) bool {
	const uuid = "00000000-0000-0000-0000-000000000000"
	if len(id) > len(uuid) {
		return rowkey.IsUUID(id[:len(uuid)])
	}
	return id != "" && len(id) < len(uuid) && rowkey.IsUUID(id+uuid[len(id):])
}

// fault is what is wrong with a row. It names no values.
func (l *list) fault(row *listed, text, hint string) error {
	return exit.Usage(fmt.Sprintf("%s:%d (row %d of the file): %s", l.path, row.at, row.number, text), hint)
}

// refused is the refusal of a list for one of its rows.
func (l *list) refused(why *checkpoint.ListError, row *listed, consequence string) error {
	return l.fault(row, why.Text+"; "+consequence, cmp.Or(why.Hint, l.hint()))
}
