package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/xlsx"
)

// xlsxRows reads the rows of a workbook's sheet. The first that is not blank is
// the header. A merged area has its value in its first cell only, as the file
// has it; rows and columns that are hidden are read like all others.
type xlsxRows struct {
	layout

	in     *xlsx.Rows
	sheet  string
	max    int // bytes a row
	fields []string
	notes  notes
	fault  *Problem // of the present row
	faults []Fault  // of its cells, by columns of the sheet
	warn   func(...string)
	told   bool  // what was noted
	lost   error // what ended the reading too early
	chunk  chunk
}

// next reads the next row that holds data.
func (x *xlsxRows) next(r *Row) error {
	if x.lost != nil {
		return x.lost
	}
	switch err := x.row(); {
	case errors.Is(err, io.EOF):
		return err
	case err != nil:
		x.lost = &LostError{Line: x.in.Number(), Text: "the workbook cannot be read any further: " + reason(err), Err: err}
		return x.lost
	}
	if x.in.Hidden() {
		x.notes.hidden++
	}
	r.Line, r.Size, r.Cells = x.in.Number(), x.in.Size(), x.chunk.take(r.Cells, len(x.keep))
	r.Problem = x.fault
	if r.Problem == nil {
		r.Problem = x.uncorrected(x.fields, r)
	}
	if r.Problem == nil {
		r.Problem = x.beyond()
	}
	if r.Problem == nil {
		if r.Repeats, x.lost = x.again(x.fields, r.Line); x.lost != nil {
			return x.lost
		}
		x.give(r)
	}
	if (r.Problem != nil || len(r.Faults) > 0) && r.Text == "" {
		r.Text = asCSV(x.fields)
	}
	return nil
}

// give fills the cells of a row, and tells which of them are faulty.
func (x *xlsxRows) give(r *Row) {
	for i, column := range x.keep {
		if column < len(x.fields) {
			r.Cells[i] = x.fields[column]
		}
	}
	r.Faults = nil
	for _, f := range x.faults {
		if i := x.index(f.Column); i >= 0 {
			r.Faults = append(r.Faults, Fault{i, f.Problem})
		}
	}
}

// asCSV writes cells as a record of CSV, for people.
func asCSV(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.ContainsAny(cell, ",\"\r\n") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		b.WriteString(strings.ReplaceAll(cell, "\x00", `\x00`))
	}
	return b.String()
}

// row goes on to the next row that holds something and makes text of its cells.
func (x *xlsxRows) row() error {
	for {
		switch err := x.in.Next(); {
		case errors.Is(err, io.EOF):
			x.tell()
			return io.EOF
		case err != nil:
			return err
		}
		blank, err := x.convert()
		if err != nil {
			return err
		}
		if !blank {
			return nil
		}
		if x.header != nil {
			x.blanks++
		}
	}
}

// tell tells what has been noted, once.
func (x *xlsxRows) tell() {
	if !x.told {
		x.told = true
		x.notes.tell(x.in, x.header, x.keep, x.warn)
	}
}

// convert makes x.fields of the cells of the present row, up to the last that
// holds something.
func (x *xlsxRows) convert() (blank bool, err error) {
	x.fields, x.fault, x.faults = x.fields[:0], nil, x.faults[:0]
	size, long := 0, x.in.Long()
	for column := range x.in.Width() {
		cell, err := x.in.Cell(column)
		if err != nil {
			return false, err
		}
		if size += len(cell.Text); size > x.max {
			long = true
			break
		}
		if cell.Fault != nil {
			x.faults = append(x.faults, Fault{column, x.refuse(column, cell.Fault)})
		}
		if cell.Text != "" {
			for len(x.fields) < column {
				x.fields = append(x.fields, "")
			}
			x.fields = append(x.fields, cell.Text)
		}
		x.notes.see(column, x.in.Number(), cell, x.header != nil)
	}
	if long {
		x.fault = tooLong(x.max)
	}
	return x.fault == nil && len(x.faults) == 0 && x.blank(x.fields), nil
}

// refuse is the problem of a cell that cannot be taken.
func (x *xlsxRows) refuse(column int, f *xlsx.Fault) Problem {
	return Problem{Code: "cell", Text: fmt.Sprintf("%s %s (hint: %s)", x.where(column), f.Text, f.Hint)}
}

// index is the place of a column in the header; -1 where it has none.
func (x *xlsxRows) index(column int) int {
	for i, kept := range x.keep {
		if kept == column {
			return i
		}
	}
	return -1
}

// where names a cell of the present row by its place and its column's name.
func (x *xlsxRows) where(column int) string {
	at := fmt.Sprintf("cell %s%d", xlsx.ColumnName(column), x.in.Number())
	if x.header == nil || x.index(column) < 0 {
		return at
	}
	return fmt.Sprintf("%s of column %s", at, quote(x.header.Names[x.index(column)]))
}

// beyond finds a cell behind the header's last that holds something, but for
// what is no value.
func (x *xlsxRows) beyond() *Problem {
	for column := x.width; column < len(x.fields); column++ {
		faulty := slices.ContainsFunc(x.faults, func(f Fault) bool { return f.Column == column })
		if !faulty && strings.TrimSpace(x.fields[column]) != "" {
			return &Problem{Code: "columns", Text: fmt.Sprintf("%s holds something, but the header has only %s", x.where(column), english.Plural(x.width, "column", ""))}
		}
	}
	return nil
}

// begin takes the columns from the first row that is not blank, or from the
// options where the sheet has no header.
func (x *xlsxRows) begin(o Options) *OpenError {
	names, line := o.Columns, 0
	if !o.NoHeader {
		err := x.row()
		switch {
		case errors.Is(err, io.EOF):
			return &OpenError{Text: "is empty in sheet " + quote(x.sheet) + ": it has no header", Hint: "the first row must name the columns"}
		case err != nil:
			return unusable(err)
		case x.fault != nil:
			return &OpenError{Line: x.in.Number(), Text: "the header cannot be read: " + x.fault.Text}
		case len(x.faults) > 0:
			return &OpenError{Line: x.in.Number(), Text: "the header cannot be read: " + x.faults[0].Text}
		}
		names, line = x.fields, x.in.Number()
	}
	of, e := newLayout(names, line, o)
	x.layout = of
	x.warn(of.warnings...)
	return e
}

// notes gather what a person should know of a sheet that was read.
type notes struct {
	hidden  int // rows with data that are hidden or filtered away
	columns []columnNotes
}

// columnNotes are the notes on one column.
type columnNotes struct {
	plain, exponents, blanked tallied
	long                      int // plain numbers of ten digits or more
	filled                    bool
	zeros                     bool // texts of digits that begin with a zero or a plus
}

// tallied counts cells and remembers where the first stands.
type tallied struct{ cells, row int }

func (t *tallied) add(row int) {
	if t.cells++; t.cells == 1 {
		t.row = row
	}
}

// longNumber has as many digits as phone numbers have, and amounts seldom.
const longNumber = 10

// see notes a cell of a data row.
func (n *notes) see(column, row int, cell xlsx.Cell, data bool) {
	if !data || cell.Fault != nil || cell.Text == "" && !cell.Blanked {
		return
	}
	for len(n.columns) <= column {
		n.columns = append(n.columns, columnNotes{})
	}
	c := &n.columns[column]
	c.filled = true
	digits := strings.Trim(cell.Text, "0123456789") == ""
	switch {
	case cell.Blanked:
		c.blanked.add(row)
	case !cell.Number:
		first := cell.Text[0]
		c.zeros = c.zeros || len(cell.Text) > 2 && strings.Trim(cell.Text[1:], "0123456789") == "" && (first == '0' || first == '+')
	case digits:
		c.plain.add(row)
		if len(cell.Text) >= longNumber {
			c.long++
		}
	}
	if cell.Exponent {
		c.exponents.add(row)
	}
}

// tell makes sentences of the notes.
func (n *notes) tell(in *xlsx.Rows, h *Header, keep []int, warn func(...string)) {
	if n.hidden > 0 {
		warn(fmt.Sprintf("%s of the sheet %s hidden or filtered away in Excel, and read like all others", english.Plural(n.hidden, "row", ""), english.PluralWord(n.hidden, "is", "are")))
	}
	if names := n.hiddenNames(in, h, keep); len(names) > 0 {
		warn(fmt.Sprintf("the sheet hides %s, which %s read like all others", listedColumns(names), english.PluralWord(len(names), "is", "are")))
	}
	if in.Merged() > 0 {
		warn(fmt.Sprintf("the sheet has %s of merged cells: only the first cell of each holds the value, the others are empty", english.Plural(in.Merged(), "area", "")))
	}
	for i, column := range keep {
		if column < len(n.columns) {
			n.columns[column].tell(h.Names[i], warn)
		}
	}
}

// hiddenNames are the names of the columns that are hidden and have something in them.
func (n *notes) hiddenNames(in *xlsx.Rows, h *Header, keep []int) (names []string) {
	for i, column := range keep {
		if in.Hides(column) && column < len(n.columns) && n.columns[column].filled {
			names = append(names, quote(h.Names[i]))
		}
	}
	return names
}

func listedColumns(names []string) string {
	if len(names) == 1 {
		return "column " + names[0]
	}
	return "columns " + listed(names)
}

func (c columnNotes) tell(name string, warn func(...string)) {
	if t := c.plain; t.cells > 0 && (c.zeros || c.long == t.cells || identifies(name)) {
		warn(fmt.Sprintf("column %s looks like phone numbers, postal codes or other identifiers, but %s, first in row %d: zeros at the beginning may be lost (hint: format the column as text before data are entered)",
			quote(name), t.hold("a number", "numbers"), t.row))
	}
	if t := c.exponents; t.cells > 0 {
		warn(fmt.Sprintf("column %s: %s shown with an exponent in Excel, first in row %d; all digits were taken instead", quote(name), t.are(), t.row))
	}
	if t := c.blanked; t.cells > 0 {
		warn(fmt.Sprintf("column %s: %s, first in row %d, hidden by the format of the cell; such a cell counts as empty", quote(name), t.hold("a number", "numbers"), t.row))
	}
}

func (t tallied) hold(one, many string) string {
	if t.cells == 1 {
		return "1 cell holds " + one
	}
	return fmt.Sprintf("%d cells hold %s", t.cells, many)
}

func (t tallied) are() string {
	return english.Plural(t.cells, "cell", "") + " " + english.PluralWord(t.cells, "is", "are")
}

// Words that begin, or are, a part of the names of columns with phone numbers,
// postal codes and other identifiers that may begin with a zero. A plain "id" is none:
// nearly every workbook numbers its rows.
var (
	identifierStems = []string{
		"phone", "telephon", "telefon", "telefoon", "teléfon", "téléphon", "puhelin", "telefax", "mobil", "móvil", "movil", "mobiel", "handy", "celular", "cellul",
		"whatsapp", "fax", "zip", "postal", "postcode", "postleit", "postnum", "postnr", "kodpoczt", "kundennummer", "vertragsnummer",
		"телефон", "мобил", "индекс", "τηλέφων", "κινητό", "ταχυδρομ",
		"電話", "电话", "携帯", "手机", "邮编", "郵便", "郵遞", "邮政", "전화", "휴대", "우편", "هاتف", "جوال", "بريد", "טלפון", "מיקוד", "โทร", "फ़ोन", "फोन", "मोबाइल",
	}
	identifierWords = []string{
		"tel", "tél", "tlf", "gsm", "cell", "msisdn", "sms", "plz", "zip", "cap", "cep", "cp", "pin", "psč", "psc", "irsz", "npa", "pincode",
		"ssn", "ein", "vat", "iban", "siren", "siret", "nif", "cpf", "cnpj",
	}
)

// identifies tells whether a column's name is one of identifiers.
func identifies(name string) bool {
	for _, word := range words(name) {
		if slices.Contains(identifierWords, word) {
			return true
		}
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc(identifierStems, func(stem string) bool { return strings.Contains(lower, stem) })
}

// words parts a name at all that is no letter, and where a small letter goes
// before a big one: "leadID" has two.
func words(name string) []string {
	var out strings.Builder
	var last rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '№' && r != 'º':
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(last):
			out.WriteByte(' ')
		}
		out.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.Fields(out.String())
}
