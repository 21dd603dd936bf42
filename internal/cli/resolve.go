package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gocarina/gocsv"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/importer"
	"leadferry/internal/rowkey"
)

func (p *program) resolveCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "settle rows in doubt by what a person found in the console", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id; - is standard input, and an export as
JSONL will do too. In lead_id, the ID of the lead that was found settles the row; the
word exists says that the lead was made but its ID is not known, so that it is never
sent again; the word none says that it was not made and may be sent. An empty lead_id
decides nothing: the row stays in doubt.

Each decision is kept with its time: leadferry checkpoint history KEY shows it, and
status shows whether anything that was found since contradicts it. A wrong one is
corrected by another file, as long as its row was not sent again since.

Example:

   leadferry checkpoint export --state in_doubt --sandbox -o doubt.csv
   # look each row up in the console and write what you found into lead_id
   leadferry checkpoint resolve doubt.csv --sandbox

Exit codes: 0 done; 2 the file was refused or decides nothing, nothing was settled, or
no checkpoint; 3 the disk refused it; 4 locked or damaged; 130 interrupted.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "none-created", Usage: "say of all rows in doubt that they were not made and may be sent"},
			&cli.BoolFlag{Name: "yes", Usage: "with --none-created: do not ask"},
		}, shared...),
		Action: p.resolve,
	}
}

func (p *program) resolve(c *cli.Context) (err error) {
	if c.NArg() > 1 || c.Bool("none-created") == c.Args().Present() {
		return usage("resolve takes one file, or --none-created", "see leadferry checkpoint resolve --help")
	}
	if c.Bool("none-created") {
		return p.resolveNone(c)
	}
	read, err := p.readList(c.Args().First(), "resolve")
	if err != nil {
		return err
	}
	decisions, rows, err := decisionsOf(read)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		return usage(read.path+": decides nothing: "+read.emptiness()+"; nothing was settled",
			"write into lead_id the lead's ID, exists, or none where the lead was not made")
	}
	db, err := openCheckpoint(c, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r, err := db.Resolve(decisions)
	if err != nil {
		return read.refused(err, rows, "nothing was settled")
	}
	p.reportResolved(r, decisions, len(read.rows)-len(decisions), db.InDoubt())
	return nil
}

// resolveNone decides about all that is in doubt at once, which a person confirms.
func (p *program) resolveNone(c *cli.Context) (err error) {
	asks := !c.Bool("yes")
	if asks && (!terminal(p.In) || !terminal(p.Err)) {
		return usage("--none-created has all rows in doubt sent again, which a person has to confirm; nothing was settled",
			"run it in a terminal, or add --yes")
	}
	db, err := openCheckpoint(c, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	decisions, err := noneCreated(db)
	if err != nil {
		return err
	}
	if len(decisions) == 0 {
		fmt.Fprintln(p.Out, "no row in doubt was sent by a run, so nothing was settled")
		return nil
	}
	if asks {
		question := fmt.Sprintf("This says of %s in doubt that no lead was made: the next import sends them.\nThose that were made after all are made twice, and leads cannot be deleted. Go on?", english.Plural(len(decisions), "row", ""))
		yes, err := p.confirm(question)
		switch {
		case errors.Is(err, errInterrupted):
			return p.refuse(importer.CodeInterrupted, "interrupted: nothing was settled", "")
		case err != nil || !yes:
			return errors.Join(err, usage("nothing was settled", "answer y, or add --yes"))
		}
	}
	r, err := db.Resolve(decisions)
	if err == nil {
		p.reportResolved(r, decisions, 0, db.InDoubt())
	}
	return err
}

func noneCreated(db *checkpoint.DB) (decisions []checkpoint.Decision, err error) {
	err = db.Each(checkpoint.InDoubt, func(e checkpoint.Entry) error {
		if e.Reason != checkpoint.ReasonIncomplete { // it was not sent, but may have a lead that is missing here
			decisions = append(decisions, checkpoint.Decision{Key: e.Key})
		}
		return nil
	})
	return decisions, err
}

// decisionsOf reads what a person wrote into the column lead_id; rows are the places of
// the decisions in the list.
func decisionsOf(read *list) (decisions []checkpoint.Decision, rows []int, err error) {
	for i, row := range read.rows {
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID, Run: row.sender()}
		d.Sent, _ = time.Parse(time.RFC3339, row.UpdatedAt)
		switch {
		case d.LeadID == "":
			continue
		case strings.EqualFold(d.LeadID, "exists"):
			d.LeadID, d.Exists = "", true
		case strings.EqualFold(d.LeadID, "none"):
			d.LeadID = ""
		}
		if err := read.plausible(i, d.LeadID); err != nil {
			return nil, nil, err
		}
		decisions, rows = append(decisions, d), append(rows, i)
	}
	return decisions, rows, nil
}

// sender is the run that the list names. Spreadsheet programs take some for numbers; what
// they leave of these says nothing.
func (row *listed) sender() string {
	if len(row.RunID) == 8 && strings.Trim(row.RunID, "0123456789abcdef") == "" {
		return row.RunID
	}
	return ""
}

// emptiness says why a list decides nothing.
func (l *list) emptiness() string {
	if len(l.rows) == 0 {
		return "it has no rows"
	}
	return fmt.Sprintf("lead_id is empty in %s", english.Plural(len(l.rows), "row", ""))
}

// reportResolved tells apart what was decided, and what was not.
func (p *program) reportResolved(r checkpoint.ResolveResult, decisions []checkpoint.Decision, undecided, doubts int) {
	found, exist, not := 0, 0, 0
	for _, d := range decisions {
		switch {
		case d.LeadID != "":
			found++
		case d.Exists:
			exist++
		default:
			not++
		}
	}
	fmt.Fprintf(p.Out, "%s settled (%d with a lead ID, %d without one that exist, %d not made), %d still in doubt\n",
		english.Plural(len(decisions), "row", ""), found, exist, not, doubts)
	p.tellCounts([]counted{
		{r.Corrected, "of these had been decided otherwise: corrected, and the history keeps both"},
		{r.Before, "of these had been decided so before"},
		{undecided, "without a decision, passed over: an empty lead_id decides nothing"},
	}, strconv.Itoa)
	if found+not > 0 {
		fmt.Fprintln(p.Out, "run the import again to send what may be sent and to link what was found")
	}
}

// listed is a row of a file that resolve or adopt takes. It has the columns of an
// export, all as text; only key and lead_id must be there.
type listed struct {
	Key            string `csv:"key"`
	State          string `csv:"state"`
	LeadID         string `csv:"lead_id"`
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	ExternalID     string `csv:"external_id"`
	RunID          string `csv:"run_id"`
	UpdatedAt      string `csv:"updated_at"`
	File           string `csv:"file"`
	Line           string `csv:"line"`
	Outcome        string `csv:"outcome"` // of a run's results alone
}

// list is such a file: its rows and the lines on which they begin.
type list struct {
	path    string
	command string
	rows    []listed
	lines   []int
	results bool // of a run: it has outcomes and no states
}

// maxList bounds such a file, in bytes: about two million rows of an export.
const maxList = 512 << 20

// readList reads a file; - is standard input. Further columns are allowed and
// ignored. A column that is missing must not read as empty.
func (p *program) readList(path, command string) (*list, error) {
	l := &list{path: path, command: command}
	in := p.In
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
	for i := range l.rows {
		l.rows[i].Key, l.rows[i].LeadID = rowkey.Trim(l.rows[i].Key), strings.TrimSpace(l.rows[i].LeadID)
	}
	return l, err
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
		if name := repeated(columns.Headers); name != "" {
			return usage(fmt.Sprintf("%s:1: the column %s stands twice", l.path, name), l.hint())
		}
		l.results = slices.Contains(columns.Headers, "outcome") && !slices.Contains(columns.Headers, "state")
		return l.readRows(r, columns)
	}
	return usage(l.path+":1: the columns key and lead_id are not both there", l.hint())
}

func repeated(headers []string) string {
	for i, name := range headers {
		if name != "" && slices.Contains(headers[:i], name) {
			return name
		}
	}
	return ""
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
		line, _ := r.FieldPos(0)
		row := read.(listed)
		if row == (listed{}) {
			continue // what spreadsheets leave at the end
		}
		l.rows, l.lines = append(l.rows, row), append(l.lines, line)
		if strings.Contains(rowkey.Trim(row.Key), "\n") {
			// CSV does not keep which kind of line break it was.
			return l.fault(len(l.rows)-1, "its key has a line break, which CSV does not keep as it was", "use leadferry checkpoint export --format jsonl")
		}
	}
}

// readJSON reads an export as JSONL.
func (l *list) readJSON(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for line, from := 1, int64(0); ; {
		var x struct {
			exported
			Key    *string `json:"key"`
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
		row := listed{
			Key: *x.Key, LeadID: *x.LeadID, State: x.State, OrganizationID: x.OrganizationID, Location: x.Location, Status: x.Status,
			ExternalID: x.ExternalID, RunID: x.RunID, UpdatedAt: x.UpdatedAt, File: x.File, Line: strconv.Itoa(int(x.Line)),
		}
		l.rows, l.lines = append(l.rows, row), append(l.lines, line)
	}
}

// plausible refuses what a person writes into a column of IDs but is none: words, which
// have no digit, and nothing but zeros.
func (l *list) plausible(i int, id string) error {
	if id == "" || strings.ContainsAny(id, "0123456789") && strings.Trim(id, "0-._") != "" {
		return nil
	}
	hint := "write the lead ID that the console shows"
	if l.command == "resolve" {
		hint += ", the word exists, or none where the lead was not made"
	}
	return l.fault(i, "its lead_id has no digit, or none but 0, so it is no lead ID", hint)
}

// fault is what is wrong with row i, from 0. It names no values.
func (l *list) fault(i int, text, hint string) error {
	return usage(fmt.Sprintf("%s:%d (row %d of the file): %s", l.path, l.lines[i], i+1, text), hint)
}

// refused turns the refusal of an entry into one of its row; rows are the places of the
// entries in the list, nil where they are the same.
func (l *list) refused(err error, rows []int, consequence string) error {
	why := (*checkpoint.ListError)(nil)
	if !errors.As(err, &why) {
		return err
	}
	hint := why.Hint
	if hint == "" {
		hint = l.hint()
	}
	at := why.Index
	if rows != nil {
		at = rows[at]
	}
	return l.fault(at, why.Text+"; "+consequence, hint)
}
