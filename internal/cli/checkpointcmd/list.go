package checkpointcmd

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/internal/cli/exit"
	"leadferry/internal/cli/terminal"
	"leadferry/internal/disk"
	"leadferry/internal/rowkey"
)

// ExportLine is a line of a checkpoint export. resolve and adopt can read it back.
type ExportLine struct {
	Key            string      `csv:"key" json:"key"`
	Namespace      string      `csv:"namespace" json:"namespace,omitempty"` // in CSV only if any key has one
	State          string      `csv:"state" json:"state"`
	LeadID         string      `csv:"lead_id" json:"lead_id"`
	OrganizationID string      `csv:"organization_id" json:"organization_id"`
	Location       string      `csv:"location" json:"location"`
	Status         string      `csv:"status" json:"status"`
	ExternalID     string      `csv:"external_id" json:"external_id"`
	RunID          string      `csv:"run_id" json:"run_id"`
	UpdatedAt      string      `csv:"updated_at" json:"updated_at"`
	File           string      `csv:"file" json:"file"`
	Line           json.Number `csv:"line" json:"line,omitempty"` // "": the row is of no file
	Error          string      `csv:"error" json:"error"`         // in doubt: with the request's ID
	RequestID      string      `csv:"-" json:"request_id,omitempty"`
}

// incompleteState marks the last line of an incomplete checkpoint's export. Its error says what is missing.
const incompleteState = "incomplete"

// listed is a row of a file for resolve or adopt. Only key and lead_id must be there.
type listed struct {
	ExportLine
	Outcome string `csv:"outcome"` // in the results of a run
	spot

	// what a run's rejects add to a row's own columns
	OwnKey       string `csv:"leadferry_key"`
	OwnNamespace string `csv:"leadferry_namespace"`
	OwnOutcome   string `csv:"leadferry_outcome"`
	OwnSentAt    string `csv:"leadferry_sent_at"`
	OwnLeadID    string `csv:"leadferry_lead_id"`
}

type spot struct {
	list   *list
	at     int // the line on which it begins
	number int // the row's number, from 1
}

// list is a file of rows. Reading it with each holds one row at a time in memory.
type list struct {
	path      string
	whole     string // absolute path: hints that name it may be pasted in another folder
	command   string
	namespace string // of keys without one in the file
	in        io.ReadSeeker
	file      io.Closer // the file of in
	noNewline bool      // it does not end with a line break
	results   bool      // of a run: it has outcomes instead of states
	byHand    bool      // it has neither
	nameless  bool      // by hand, without a namespace
	ours      bool      // leadferry wrote it, so it says which namespaces its keys have
	rejects   bool      // of a run: only its rows in doubt count
	ignored   int       // rows of rejects with a decision, but not in doubt
	lacks     string    // what the exported checkpoint lacked
	rows      int       // rows read so far
}

// openList opens a file. The caller closes it.
func (d *Command) openList(path, command string) (*list, error) {
	l := &list{path: path, command: command, namespace: d.C.String("namespace")}
	if err := l.openFile(d.In); err != nil {
		return nil, exit.Usage(fmt.Sprintf("the file cannot be read: %v", err), cmp.Or(disk.Held(err), l.hint()))
	}
	err := l.detect()
	if err == nil && l.namespace != "" && l.ours {
		err = exit.Usage(path+": --namespace is for lists that people write: results and exports name the namespace "+
			"of each key, or their keys have none", "leave --namespace out for this file, and take other lists apart")
	}
	if err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	return l, nil
}

// openFile opens the file up to its present end: a run may still write to it. It keeps standard input (-) for later.
func (l *list) openFile(stdin io.Reader) (err error) {
	if l.whole = l.path; l.path == "-" {
		kept := new(terminal.Spool)
		_, err = io.Copy(kept, stdin)
		l.in, l.file = kept.Content(), kept
		return err
	}
	whole, _ := filepath.Abs(l.path)
	l.whole = cmp.Or(whole, l.path)
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) && l.isPartial() { // its run has ended since
		l.path = strings.TrimSuffix(l.path, ".partial")
		f, err = os.Open(l.path)
	}
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	l.in, l.file = io.NewSectionReader(f, 0, end), f
	return err
}

// detect finds out what kind of list it is.
func (l *list) detect() error {
	last := make([]byte, 1)
	if _, err := l.in.Seek(-1, io.SeekEnd); err == nil {
		_, err = l.in.Read(last)
		l.noNewline = err == nil && last[0] != '\n' && last[0] != '\r'
	}
	for _, err := range l.each {
		return err
	}
	return nil
}

func (l *list) hint() string {
	hint := l.command + " takes a CSV file in UTF-8 with the columns key and lead_id, such as leadferry checkpoint " +
		"export writes"
	if l.command == "resolve" {
		hint += ", or the rejects file of a run"
	}
	return hint
}

// isPartial reports whether the list is of a killed run: its last row may be cut off.
func (l *list) isPartial() bool { return strings.HasSuffix(l.path, ".partial") }

// each yields all rows up to an error. It ignores further columns. A missing cell is an error: it would read as empty.
func (l *list) each(yield func(*listed, error) bool) {
	l.rows, l.ignored = 0, 0
	in, r, columns, err := l.begin()
	if err != nil {
		yield(nil, err)
		return
	}
	for columns != nil {
		row, err := l.next(in, r, columns)
		switch {
		case err != nil:
		case row == nil:
			return
		case l.rejects && row.OwnOutcome != report.InDoubt.String():
			if strings.TrimSpace(row.LeadID) != "" {
				l.ignored++
			}
			continue
		case row.State == incompleteState && rowkey.Trim(row.Key) == "":
			l.lacks = cmp.Or(row.Error, "leads that the exported checkpoint lacked")
			continue
		default:
			err = row.setKey()
		}
		if !yield(row, err) || err != nil {
			return
		}
	}
}

// begin reads the header with the delimiter that gives it the columns key and lead_id: spreadsheet programs use that of
// the computer's language. columns is nil for results of a run that was killed before the header was complete.
func (l *list) begin() (in *bufio.Reader, r *csv.Reader, columns *gocsv.Unmarshaller, err error) {
	refuse := func(text string) error { return exit.Usage(l.path+text, l.hint()) }
	for _, comma := range []rune{',', ';', '\t', '|'} {
		_, err = l.in.Seek(0, io.SeekStart)
		in = bufio.NewReader(l.in)
		mark, unread := in.Peek(3)
		if err = cmp.Or(err, unread); err != nil && !errors.Is(err, io.EOF) { // for example a folder
			return nil, nil, nil, refuse(": cannot be read: " + err.Error())
		}
		if string(mark) == "\ufeff" {
			_, _ = in.Discard(len(mark)) // it was read above
		}
		r = csv.NewReader(in)
		r.Comma = comma
		if columns, err = gocsv.NewUnmarshaller(r, listed{}); err != nil {
			continue
		}
		has := func(name string) bool { return slices.Contains(columns.Headers, name) }
		l.rejects = l.command == "resolve" && has("leadferry_key") && has("leadferry_lead_id") &&
			has("leadferry_outcome")
		if !l.rejects && !(has("key") && has("lead_id")) {
			continue
		}
		for i, name := range columns.Headers {
			counts := name != "" && (!l.rejects || strings.HasPrefix(name, "leadferry_"))
			if counts && slices.Contains(columns.Headers[:i], name) {
				return nil, nil, nil, refuse(":1: the column " + name + " is there twice")
			}
			if strings.Contains(name, "\r") {
				return nil, nil, nil, refuse(":1: its lines end as on old Macs: save it as CSV UTF-8")
			}
		}
		if has("verdict") { // its keys may differ from the keys under which the leads were made
			return nil, nil, nil, refuse(":1: it is a reconciliation, which has the keys of its own mapping")
		}
		l.ours = l.rejects || has("state") && has("run_id") || has("outcome") && has("row")
		l.results, l.byHand = has("outcome") && !has("state"), !has("outcome") && !has("state")
		l.nameless = l.byHand && l.namespace == "" && !has("namespace")
		return in, r, columns, nil
	}
	if l.results = l.isPartial(); l.results {
		return nil, nil, nil, nil
	}
	return nil, nil, nil, refuse(":1: the columns key and lead_id are not both there")
}

// next returns the next row that is not empty, or nil at the end.
func (l *list) next(in *bufio.Reader, r *csv.Reader, columns *gocsv.Unmarshaller) (*listed, error) {
	for {
		read, err := columns.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		_, end := in.Peek(1)
		last := l.noNewline && end != nil
		row, _ := read.(listed)
		blank := row == listed{} // spreadsheets leave blank rows at the end
		row.list, row.number = l, l.rows+1
		if bad, is := errors.AsType[*csv.ParseError](err); is {
			row.at, err = bad.StartLine, bad.Err
		} else if err == nil {
			row.at, _ = r.FieldPos(0)
		}
		switch {
		case last && l.isPartial():
			return nil, nil // nobody knows whether it is whole
		case last && (err != nil || row.mayBeCutIn(columns.Headers[len(columns.Headers)-1])):
			return nil, row.fault("the file ends in it without a line break, so it may be cut off",
				"fetch or export the list again; if the row is whole, end it with a line break")
		case err != nil:
			return nil, exit.Usage(fmt.Sprintf("%s:%d: %v", l.path, row.at, err), l.hint())
		case blank:
			continue
		}
		if l.rows++; l.rejects { // other columns are the row's own, whatever their names
			row.ExportLine = ExportLine{
				Key: row.OwnKey, Namespace: row.OwnNamespace, LeadID: row.OwnLeadID, UpdatedAt: row.OwnSentAt,
			}
		}
		return &row, nil
	}
}

// setKey sets the key under which the checkpoint knows a row.
func (row *listed) setKey() error {
	row.Key, row.LeadID = rowkey.Trim(row.Key), strings.TrimSpace(row.LeadID)
	row.ExternalID, row.Status = rowkey.Trim(row.ExternalID), rowkey.Trim(row.Status)
	namespace := cmp.Or(row.Namespace, row.list.namespace)
	switch {
	case namespace != "" && !rowkey.IsNamespace(namespace):
		return row.fault("its namespace is not valid",
			"a namespace has 1 to 64 letters, digits, dots, underscores and hyphens")
	case row.list.byHand && rowkey.IsCut(rowkey.Own(row.Key)):
		return row.fault("its key "+rowkey.CutText,
			"take the keys from where they come from, in columns formatted as text")
	case !utf8.ValidString(row.Key) || strings.Contains(row.Key, "\n"):
		return row.fault("its key is not UTF-8, or has a line break, which no row's key has",
			"save the file as CSV UTF-8, or take the row out")
	case row.Key != "":
		row.Key = rowkey.Effective(namespace, row.Key)
	}
	return nil
}

// mayBeCutIn reports whether a row may be cut off in its last column, if that column identifies a lead.
func (row *listed) mayBeCutIn(column string) bool {
	cell := map[string]string{"key": row.Key, "lead_id": row.LeadID, "external_id": row.ExternalID}[column]
	whole := rowkey.IsUUID(cell) || column == "lead_id" &&
		(strings.EqualFold(cell, exists) || strings.EqualFold(cell, notMade))
	return cell != "" && !whole
}

// checkLeadID refuses a lead_id that cannot be one: a word without a digit, only zeros, part of a UUID, and in resolve
// a short number (42, 2nd). Lead IDs are UUIDs (specification, Lead creation response body).
func (row *listed) checkLeadID() error {
	const digits, uuid = "0123456789", "00000000-0000-0000-0000-000000000000"
	const write = "write the lead ID that the console shows"
	id, resolves := row.LeadID, row.list.command == "resolve"
	short := resolves && len(id) < 6 && strings.IndexAny(id, digits) == 0
	begins := min(len(id), len(uuid))
	cut := len(id) != len(uuid) && rowkey.IsUUID(id[:begins]+uuid[begins:])
	switch {
	case id == "":
		return nil
	case !strings.ContainsAny(id, digits), strings.Trim(id, "0-._") == "", short:
		hint := write
		if resolves {
			hint += ", the word exists, or none (in small letters) where the lead was not made; an empty cell " +
				"decides nothing"
		}
		return row.fault("its lead_id is a word or a number, so it is no lead ID", hint)
	case cut && (resolves || row.State == "" && !row.list.results):
		return row.fault(fmt.Sprintf("its lead_id is cut off: it looks like a UUID with %d characters instead of 36",
			len(id)), write)
	}
	return nil
}

// fault returns an error about a row, without its values.
func (s spot) fault(text, hint string) error {
	return exit.Usage(fmt.Sprintf("%s:%d (row %d of the file): %s", s.list.path, s.at, s.number, text), hint)
}

// refused returns the error for a whole list that was refused because of this row.
func (s spot) refused(why *checkpoint.ListError, consequence string) error {
	return s.fault(why.Text+"; "+consequence, cmp.Or(why.Hint, s.list.hint()))
}
