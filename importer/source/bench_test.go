package source_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/importer/source"
)

const benchRows = 20_000

// benchCSV is like a file of leads: 12 columns, about 190 bytes a row, every
// tenth with a quoted cell.
func benchCSV() []byte {
	var b bytes.Buffer
	b.WriteString("external_id,created_at,first_name,last_name,email,phone,postal_code,city,organization_id,status,interest,message\n")
	for i := range benchRows {
		message := "please call me about the new model"
		if i%10 == 0 {
			message = `"please call, or write"`
		}
		fmt.Fprintf(&b, "L%08d,2026-03-04T10:11:12Z,Ada,Brook,ada.brook%d@example.com,+1555%07d,%05d,Oak Hill,9b2e6c10-0000-4000-8000-%012d,open,sedan,%s\n", i, i, i, i, i, message)
	}
	return b.Bytes()
}

func benchJSONL() []byte {
	var b bytes.Buffer
	for i := range benchRows {
		fmt.Fprintf(&b, `{"external_id":"L%08d","created_at":"2026-03-04T10:11:12Z","first_name":"Ada","last_name":"Brook","email":"ada.brook%d@example.com","phone":"+1555%07d","postal_code":"%05d","city":"Oak Hill","organization_id":"9b2e6c10-0000-4000-8000-%012d","status":"open","interest":"sedan","score":%d}`+"\n", i, i, i, i, i, i)
	}
	return b.Bytes()
}

func BenchmarkCSV(b *testing.B) {
	data := benchCSV()
	b.Run("source", func(b *testing.B) { benchSource(b, source.CSV, data) })
	b.Run("encoding-csv", func(b *testing.B) {
		benchRowsPerSecond(b, data, func() error {
			r := csv.NewReader(bytes.NewReader(data))
			r.ReuseRecord = true
			for {
				if _, err := r.Read(); err != nil {
					return err
				}
			}
		})
	})
}

func BenchmarkJSONL(b *testing.B) {
	data := benchJSONL()
	b.Run("source", func(b *testing.B) { benchSource(b, source.JSONL, data) })
	b.Run("jsontext", func(b *testing.B) {
		benchRowsPerSecond(b, data, func() error {
			d, cells := jsontext.NewDecoder(bytes.NewReader(data)), make([]string, 0, 32)
			for {
				t, err := d.ReadToken()
				if err != nil {
					return err
				}
				if cells = append(cells, t.String()); t.Kind() == '}' {
					cells = cells[:0]
				}
			}
		})
	})
}

func benchSource(b *testing.B, format source.Format, data []byte) {
	benchRowsPerSecond(b, data, func() error {
		f, err := source.Open("-", source.Options{Format: format, Stdin: bytes.NewReader(data)})
		var row source.Row
		for err == nil {
			err = f.Next(&row)
		}
		return err
	})
}

// benchRowsPerSecond calls read, which ends with io.EOF, again and again.
func benchRowsPerSecond(b *testing.B, data []byte, read func() error) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := read(); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
}
