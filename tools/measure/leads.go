package main

import (
	"bufio"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/xuri/excelize/v2"
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

var columnNames = [columns]string{
	"crm_id", "requested_at", "first_name", "last_name", "email", "phone",
	"zip", "city", "dealer_id", "stage", "model", "message",
}

// leadFile says which rows a file has. A row depends only on the seed and its number, so a shorter file is part of a
// longer one. A row has about 190 bytes as CSV. Some have quoted cells, line breaks in cells or letters beyond ASCII.
type leadFile struct {
	from, to int // rows from <= n < to; the first row is 0
	seed     uint64
	format   string // jsonl, xlsx or "" for CSV
	random   bool   // keys in random order, as long as UUIDs; otherwise ascending
}

// write writes the file. It replaces an existing one.
func (f leadFile) write(path string) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := bufio.NewWriterSize(out, 1<<18)
	switch f.format {
	case "jsonl":
		err = f.each(func(row *[columns]string) error {
			line := []byte{'{'}
			for i, cell := range row {
				line = append(appendMember(line, columnNames[i], cell), ",}"[i/(columns-1)])
			}
			_, err := w.Write(append(line, '\n'))
			return err
		})
	case "xlsx": // with shared strings, as Excel writes it
		book, number := excelize.NewFile(), 0
		defer book.Close()
		put := func(row *[columns]string) error {
			number++
			cells := row[:]
			return book.SetSheetRow(sheetName, fmt.Sprint("A", number), &cells)
		}
		err = errors.Join(put(&columnNames), f.each(put), book.Write(w))
	default:
		cells := csv.NewWriter(w)
		put := func(row *[columns]string) error { return cells.Write(row[:]) }
		err = errors.Join(put(&columnNames), f.each(put))
		cells.Flush()
	}
	return errors.Join(err, w.Flush())
}

// each calls do for one row after another, all in the same array.
func (f leadFile) each(do func(row *[columns]string) error) error {
	var row [columns]string
	source := rand.NewPCG(0, 0)
	random := rand.New(source)
	for i := f.from; i < f.to; i++ {
		source.Seed(f.seed, uint64(i))
		f.fill(&row, i, random)
		if err := do(&row); err != nil {
			return err
		}
	}
	return nil
}

// fill makes a row. Names and places are invented.
func (f leadFile) fill(row *[columns]string, i int, random *rand.Rand) {
	one := func(words []string) string { return words[random.IntN(len(words))] }
	row[colKey] = fmt.Sprintf("C-%09d", i)
	if f.random {
		row[colKey] = fmt.Sprintf("%016x-%016x", random.Uint64(), random.Uint64())
	}
	row[colRequested] = fmt.Sprintf("2026-%02d-%02dT%02d:%02d:00Z", 1+random.IntN(12), 1+random.IntN(28), random.IntN(24),
		random.IntN(60))
	row[colFirst], row[colLast] = one(firstNames), one(lastNames)
	row[colEmail] = fmt.Sprintf("person.%06d@example.org", random.IntN(1_000_000))
	row[colPhone] = fmt.Sprintf("+1555%07d", random.IntN(10_000_000))
	row[colZip] = fmt.Sprintf("%05d", random.IntN(100_000))
	row[colCity] = one(cities)
	row[colDealer] = fmt.Sprintf("%s%03d", organization, random.IntN(300))
	row[colStage] = stages[max(0, random.IntN(2*len(stages))-len(stages))]
	row[colModel] = one(models)
	row[colMessage] = one(openings) + " " + one(wishes)
	switch random.IntN(50) {
	case 0, 1, 2:
		row[colMessage] += ", if possible"
	case 3:
		row[colMessage] += "\nThank you"
	case 4:
		row[colMessage] += ` "soon"`
	}
}

func words(text string) []string { return strings.Split(text, ",") }

var (
	firstNames = words("Anton,Berta,Clara,Dieter,Emil,Frida,Günther,Heidi,Ilse,Jürgen,Karl,Lotte,Marie,Nora,Otto,Paula")
	lastNames  = words("Achterberg,Bergmann,Cordes,Dahl,Engel,Fuchs,Gärtner,Hofer,Imhof,Jansen,Kessler,Lindner,Mohr")
	cities     = words("Altenau,Birkenfeld,Dornbach,Eichwald,Felsenheim,Grünau,Hohenstein,Lindental")
	stages     = words("New,Contacted,Working,Waiting,Won,Lost")
	models     = words("Compact,Estate,Roadster,Transporter,Electric")
	openings   = words("Please arrange a test drive,Please send an offer,Please call me,I have seen your sign")
	wishes     = words("before Friday,next week,for this model,with delivery")
)

// statusOf is the status table of the mapping: from words of the column stage to keys of the service.
var statusOf = map[string]string{
	"New": "open", "Contacted": "contacted", "Working": "inProgress",
	"Waiting": "onHold", "Won": "closedWon", "Lost": "closedNotInterested",
}

// mappingFile maps ten content fields with one table, one format and one template.
//
//go:embed plain.yaml
var mappingFile string

// linkLine is a line for the mapping that links every lead, which takes a second request.
const linkLine = "  external_id: \"{crm_id}\"\n"

const sheetName = "Sheet1"
