package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The columns of the inputs.
const (
	colKey = iota
	colRequested
	colFirst
	colLast
	colEmail
	colPhone
	colZip
	colCity
	colDealer
	colStage
	colModel
	colMessage
	columns
)

func columnNames() [columns]string {
	return [columns]string{
		"crm_id", "requested_at", "first_name", "last_name", "email", "phone",
		"zip", "city", "dealer_id", "stage", "model", "message",
	}
}

// leadFile says which rows a file has. A row depends on the seed and its number alone,
// so that cuts of a file are parts of it. Rows have about 190 bytes as CSV; a few of a
// hundred have quoted cells, line breaks in cells or letters beyond ASCII.
type leadFile struct {
	from, to int // rows, the first is 0
	seed     uint64
	format   string // jsonl, xlsx or "" for CSV
	random   bool   // keys in no order, as long as UUIDs; else each above the one before
}

func runLeads(args []string, s streams) error {
	set := flags("leads", s)
	f := leadFile{}
	set.IntVar(&f.to, "rows", 1_000_000, "rows")
	set.Uint64Var(&f.seed, "seed", 1, "another seed makes another file")
	set.StringVar(&f.format, "format", "csv", "csv, jsonl or xlsx")
	set.BoolVar(&f.random, "random", false, "keys in no order")
	path, err := oneFile(set, args)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"csv", "jsonl", "xlsx"}, f.format) {
		return fmt.Errorf("-format %s: csv, jsonl and xlsx are known", f.format)
	}
	return f.write(path)
}

// write makes the file, over one that is there.
func (f leadFile) write(path string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if f.format == "xlsx" {
		return f.writeWorkbook(out)
	}
	w := bufio.NewWriterSize(out, 1<<18)
	names := columnNames()
	if f.format != "jsonl" {
		if _, err := w.Write(appendCSV(nil, &names)); err != nil {
			return err
		}
	}
	var line []byte
	err = f.each(func(row *[columns]string) error {
		if f.format == "jsonl" {
			line = appendJSON(line[:0], &names, row)
		} else {
			line = appendCSV(line[:0], row)
		}
		_, err := w.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// each makes one row after another, in the same place.
func (f leadFile) each(do func(row *[columns]string) error) error {
	vocabulary := lists()
	var row [columns]string
	source := rand.NewPCG(0, 0)
	random := rand.New(source)
	for i := f.from; i < f.to; i++ {
		source.Seed(f.seed, uint64(i))
		f.fill(&row, vocabulary, i, random)
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}

func (f leadFile) fill(row *[columns]string, w *words, i int, random *rand.Rand) {
	one := func(words []string) string { return words[random.IntN(len(words))] }
	row[colKey] = "C-" + padded(i, 9)
	if f.random {
		row[colKey] = string(appendUUID(nil, random.Uint64(), random.Uint64()))
	}
	row[colRequested] = "2026-" + padded(1+random.IntN(12), 2) + "-" + padded(1+random.IntN(28), 2) +
		"T" + padded(random.IntN(24), 2) + ":" + padded(random.IntN(60), 2) + ":00Z"
	first, last := random.IntN(len(w.first)), random.IntN(len(w.last))
	row[colFirst], row[colLast] = w.first[first], w.last[last]
	row[colEmail] = w.mailbox[first] + "." + padded(random.IntN(1_000_000), 6) + "@example.org"
	row[colPhone] = "+1555" + padded(random.IntN(10_000_000), 7)
	row[colZip] = padded(random.IntN(100_000), 5)
	row[colCity] = one(w.city)
	row[colDealer] = "d0000000-0000-4000-8000-" + padded(random.IntN(300), 12)
	row[colStage] = w.stage[max(0, random.IntN(2*len(w.stage))-len(w.stage))]
	row[colModel] = one(w.model)
	row[colMessage] = one(w.opening) + " " + one(w.wish)
	switch random.IntN(50) {
	case 0, 1, 2:
		row[colMessage] += ", if possible"
	case 3:
		row[colMessage] += "\nThank you"
	case 4:
		row[colMessage] += ` "soon"`
	}
}

func padded(n, width int) string {
	digits := strconv.Itoa(n)
	const zeros = "000000000000"
	return zeros[:max(0, width-len(digits))] + digits
}

// appendCSV appends a record as RFC 4180 has it, but with a bare line feed at its end.
func appendCSV(b []byte, cells *[columns]string) []byte {
	for i, cell := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		from := len(b)
		b = append(b, cell...)
		for _, c := range b[from:] {
			if c == '"' || c == ',' || c == '\n' {
				b = appendQuoted(b[:from], cell)
				break
			}
		}
	}
	return append(b, '\n')
}

func appendQuoted(b []byte, cell string) []byte {
	b = append(b, '"')
	for i := range len(cell) {
		if cell[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, cell[i])
	}
	return append(b, '"')
}

// appendJSON appends one object and a line feed. The cells are valid UTF-8, so that
// quoting does not fail.
func appendJSON(b []byte, names, cells *[columns]string) []byte {
	for i, name := range names {
		b = append(b, "{,"[min(i, 1)])
		b, _ = jsontext.AppendQuote(b, name)
		b = append(b, ':')
		b, _ = jsontext.AppendQuote(b, cells[i])
	}
	return append(b, "}\n"...)
}

// firstRow is the row that every file of seed 1 begins with.
func firstRow() (row [columns]string) {
	leadFile{}.fill(&row, lists(), 0, rand.New(rand.NewPCG(1, 0)))
	return row
}
