package main

import (
	"fmt"
	"io"

	"github.com/xuri/excelize/v2"
)

const sheetName = "Sheet1"

// writeWorkbook makes a workbook of the same rows, each text once among the shared
// ones, as Excel writes it.
func (f leadFile) writeWorkbook(out io.Writer) error {
	book := excelize.NewFile()
	defer book.Close()
	number := 0
	put := func(row *[columns]string) error {
		number++
		cells := row[:]
		return book.SetSheetRow(sheetName, fmt.Sprint("A", number), &cells)
	}
	names := columnNames()
	if err := put(&names); err != nil {
		return err
	}
	if err := f.each(put); err != nil {
		return err
	}
	return book.Write(out)
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
