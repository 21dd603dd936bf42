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
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gocarina/gocsv"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
)

func (p *program) resolveCommand(shared []cli.Flag) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "settle rows in doubt by what a person found in the console", ArgsUsage: "FILE.csv",
		Description: `FILE.csv has the columns key and lead_id; - is standard input, and an export as
JSONL will do too. A lead ID settles the row; the word exists says that the lead
was made but its ID is not known, so that it is never sent again; an empty lead_id
says that it was not made and may be sent. Each decision is kept with its time:
leadferry checkpoint history KEY shows it, and status shows whether anything that
was found since contradicts it.

Example:

   leadferry checkpoint export --state in_doubt --sandbox > doubt.csv
   (look each row up in the console and write its lead ID into lead_id)
   leadferry checkpoint resolve doubt.csv --sandbox

Exit codes: 0 all settled; 2 the file was refused, nothing was settled, or no
checkpoint; 3 the disk refused it; 4 locked or damaged.`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "none-created", Usage: "say of all rows in doubt that they were not made and may be sent"},
		}, shared...),
		Action: p.resolve,
	}
}

func (p *program) resolve(c *cli.Context) (err error) {
	if c.NArg() > 1 || c.Bool("none-created") == c.Args().Present() {
		return usage("resolve takes one file, or --none-created", "see leadferry checkpoint resolve --help")
	}
	var read *list
	if path := c.Args().First(); path != "" {
		if read, err = p.readList(path, "resolve"); err != nil {
			return err
		}
	}
	db, err := openCheckpoint(c, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var decisions []checkpoint.Decision
	if read != nil {
		decisions, err = decisionsOf(read)
	} else {
		decisions, err = noneCreated(db)
	}
	if err != nil {
		return err
	}
	if err := db.Resolve(decisions); err != nil {
		return read.refused(err, "nothing was settled")
	}
	fmt.Fprintf(p.Out, "%s settled%s, %d still in doubt; run the import again to send what may be sent and to link what was found\n",
		plural(len(decisions), "row"), decisionCounts(decisions), db.InDoubt())
	return nil
}

// decisionsOf reads what a person wrote into the column lead_id.
func decisionsOf(read *list) ([]checkpoint.Decision, error) {
	decisions := make([]checkpoint.Decision, len(read.rows))
	for i, row := range read.rows {
		d := checkpoint.Decision{Key: row.Key, LeadID: row.LeadID}
		if strings.EqualFold(d.LeadID, "exists") {
			d.LeadID, d.Exists = "", true
		}
		if err := read.plausible(i, d.LeadID); err != nil {
			return nil, err
		}
		decisions[i] = d
	}
	return decisions, nil
}

func noneCreated(db *checkpoint.DB) (decisions []checkpoint.Decision, err error) {
	err = db.Each(checkpoint.InDoubt, func(e checkpoint.Entry) error {
		decisions = append(decisions, checkpoint.Decision{Key: e.Key})
		return nil
	})
	return decisions, err
}

// decisionCounts tells apart what was decided: a file whose lead_id was never filled
// in would have all its rows sent again.
func decisionCounts(decisions []checkpoint.Decision) string {
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
	if len(decisions) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d with a lead ID, %d without one that exist, %d not made)", found, exist, not)
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
}

// list is such a file: its rows and the lines on which they begin.
type list struct {
	path    string
	command string
	rows    []listed
	lines   []int
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
		l.rows[i].Key, l.rows[i].LeadID = strings.TrimSpace(l.rows[i].Key), strings.TrimSpace(l.rows[i].LeadID)
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
		l.rows, l.lines = append(l.rows, row), append(l.lines, line)
		if strings.Contains(strings.TrimSpace(row.Key), "\n") {
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

// plausible refuses what a person writes into a column of IDs but is none. All that
// services give out have a digit.
func (l *list) plausible(i int, id string) error {
	if id == "" || strings.ContainsAny(id, "0123456789") {
		return nil
	}
	hint := "write the lead ID that the console shows"
	if l.command == "resolve" {
		hint += ", the word exists, or nothing where the lead was not made"
	}
	return l.fault(i, "its lead_id has no digit, so it is no lead ID", hint)
}

// fault is what is wrong with row i, from 0. It names no values.
func (l *list) fault(i int, text, hint string) error {
	return usage(fmt.Sprintf("%s:%d (row %d of the file): %s", l.path, l.lines[i], i+1, text), hint)
}

// refused turns the refusal of an entry into one of its row.
func (l *list) refused(err error, consequence string) error {
	why := (*checkpoint.ListError)(nil)
	if l == nil || !errors.As(err, &why) {
		return err
	}
	hint := why.Hint
	if hint == "" {
		hint = l.hint()
	}
	return l.fault(why.Index, why.Text+"; "+consequence, hint)
}
