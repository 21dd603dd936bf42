package report

import (
	"encoding/csv"

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
	OrganizationID string `csv:"organization_id"`
	Location       string `csv:"location"`
	Status         string `csv:"status"`
	HTTPStatus     int    `csv:"http_status"`
	Attempts       int    `csv:"attempts"`
	Error          string `csv:"error"`
}

const (
	httpStatusColumn = 9
	resultBatch      = 1000
)

// results gathers results and writes them in batches: one call of gocsv costs more
// than a line does, and its channel writer flushes only at the end.
type results struct {
	out   *output
	csv   statusWriter
	batch []Result
}

// newResults writes the header line.
func newResults(out *output) (*results, error) {
	w := &results{out: out, csv: statusWriter{csv.NewWriter(out)}}
	return w, gocsv.MarshalCSV(w.batch, w.csv)
}

func (w *results) add(r Result) error {
	r.Location, r.Error = cell(r.Location), cell(r.Error)
	if w.batch = append(w.batch, r); len(w.batch) < resultBatch {
		return nil
	}
	return w.flush()
}

// flush hands all lines to the operating system.
func (w *results) flush() error {
	if len(w.batch) > 0 {
		if err := gocsv.MarshalCSVWithoutHeaders(w.batch, w.csv); err != nil {
			return err
		}
		w.batch = w.batch[:0]
	}
	return w.out.buffer.Flush()
}

// statusWriter leaves the HTTP status empty where there is none; gocsv knows no
// omitempty when it writes.
type statusWriter struct{ *csv.Writer }

func (w statusWriter) Write(row []string) error {
	if row[httpStatusColumn] == "0" {
		row[httpStatusColumn] = ""
	}
	return w.Writer.Write(row)
}
