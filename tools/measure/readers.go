package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/xuri/excelize/v2"

	"leadferry/tools/must"
)

// readers count the rows of a file as fast as a library reads them. They are what validate is compared with.
var readers = map[string]func(io.Reader) (int, error){
	"readcsv": countCSV, "readjsonl": countJSONL, "readxlsx": countXLSX,
}

func runReader(name string, args []string, s streams) (err error) {
	defer must.Catch(&err)
	f := openFile(flags(name, s), args)
	defer f.Close()
	rows, err := readers[name](f)
	if errors.Is(err, io.EOF) {
		_, err = fmt.Fprintln(s.out, rows)
	}
	return err
}

func countCSV(r io.Reader) (rows int, err error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	for rows = -1; err == nil; rows++ { // the header is not a row
		_, err = c.Read()
	}
	return rows - 1, err
}

// countJSONL copies the text of each name and value, as encoding/csv does with cells. A token alone is only a place in
// a buffer, which the next token overwrites.
func countJSONL(r io.Reader) (rows int, err error) {
	d := jsontext.NewDecoder(r)
	cells := make([]string, 0, 2*columns)
	for err == nil {
		var t jsontext.Token
		t, err = d.ReadToken()
		switch t.Kind() {
		case '}':
			rows++
			cells = cells[:0]
		case '"':
			cells = append(cells, t.String())
		}
	}
	return rows, err
}

func countXLSX(r io.Reader) (rows int, err error) {
	book, err := excelize.OpenReader(r)
	if err != nil {
		return 0, err
	}
	defer book.Close()
	sheet, err := book.Rows(sheetName)
	if err != nil {
		return 0, err
	}
	for rows = -1; err == nil && sheet.Next(); rows++ {
		_, err = sheet.Columns()
	}
	return rows, cmp.Or(err, sheet.Close(), io.EOF)
}
