package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/xuri/excelize/v2"
)

// runReader is a peer of validate: it reads a file and does nothing with it.
func runReader(args []string, s streams, count func(io.Reader) (int, error)) error {
	path, err := oneFile(flags("reader", s), args)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := count(f)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, rows)
	return err
}

// countCSV counts the rows below the header as fast as encoding/csv can.
func countCSV(r io.Reader) (rows int, err error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	for rows = -1; ; rows++ {
		if _, err := c.Read(); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
	}
}

// countJSONL counts objects as fast as jsontext gives their tokens, and takes the text
// of each name and value: a token by itself is a place in the buffer that the next one
// overwrites, where encoding/csv gives cells.
func countJSONL(r io.Reader) (rows int, err error) {
	d := jsontext.NewDecoder(r)
	cells := make([]string, 0, 2*columns)
	for {
		t, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		switch t.Kind() {
		case '}':
			rows++
			cells = cells[:0]
		case '"':
			cells = append(cells, t.String())
		}
	}
}

// countXLSX counts the rows below the header as excelize reads them one by one.
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
	for rows = -1; sheet.Next(); rows++ {
		if _, err := sheet.Columns(); err != nil {
			return rows, err
		}
	}
	return rows, sheet.Close()
}
