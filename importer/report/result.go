package report

import (
	"encoding/csv"
	"slices"
	"strconv"

	"github.com/gocarina/gocsv"
)

// Result is one line of the results file: how one row ended. Line is the physical
// line on which the row starts, Row counts the data rows of its file, both from 1.
// HTTPStatus 0 is an empty cell.
type Result struct {
	File           string `csv:"file"`
	Line           int    `csv:"line"`
	Row            int    `csv:"row"`
	Key            string `csv:"key"`
	Outcome        string `csv:"outcome"`
	LeadID         string `csv:"lead_id"`
	ExternalID     string `csv:"external_id"` // linked; of a row in doubt or partial, the one that is wanted
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	HTTPStatus     int    `csv:"http_status"`
	Attempts       int    `csv:"attempts"`
	Error          string `csv:"error"`

	Own []string `csv:"-"` // the row's own cells, in the order of Files.Columns
}

// flushRows is how many lines may wait before the operating system has them.
const flushRows = 1000

// results writes results. Its header is gocsv's; the lines are put together by hand,
// since reflection would cost more than everything else that is done with a row whose
// lead is known.
type results struct {
	out  *output
	csv  *csv.Writer
	row  []string
	held int
}

// newResults writes the header line, with further columns behind those that all results
// have.
func newResults(out *output, further []string) (*results, error) {
	w := &results{out: out, csv: csv.NewWriter(out)}
	return w, gocsv.MarshalCSV([]Result{}, header{w.csv, further})
}

// header writes the one line of names.
type header struct {
	*csv.Writer
	further []string
}

// Write adds the further names; one that stands already is told apart.
func (h header) Write(names []string) error {
	names = slices.Clone(names)
	for _, name := range h.further {
		for slices.Contains(names, name) {
			name = "row_" + name
		}
		names = append(names, name)
	}
	return h.Writer.Write(names)
}

func (w *results) add(r *Result) error {
	w.row = append(r.appendCells(w.row[:0]), r.Own...)
	if err := w.csv.Write(w.row); err != nil {
		return err
	}
	if w.held++; w.held < flushRows {
		return nil
	}
	return w.flush()
}

// appendCells appends the cells of a line, in the order of the fields. Texts from
// outside are cut and defused; names and IDs only lose what a terminal would act upon.
func (r *Result) appendCells(row []string) []string {
	status := ""
	if r.HTTPStatus != 0 {
		status = strconv.Itoa(r.HTTPStatus)
	}
	return append(row,
		word(r.File), strconv.Itoa(r.Line), strconv.Itoa(r.Row), word(r.Key), r.Outcome, word(r.LeadID), word(r.ExternalID), word(r.OrganizationID),
		Cell(r.Location), word(r.Status), status, strconv.Itoa(r.Attempts), Cell(r.Error))
}

// flush hands all lines to the operating system.
func (w *results) flush() error {
	w.held = 0
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return err
	}
	return w.out.buffer.Flush()
}
