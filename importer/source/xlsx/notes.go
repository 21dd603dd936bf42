package xlsx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/source/rows"
)

// notes gather what a person should know of a sheet that was read.
type notes struct {
	name    string // of the sheet
	hidden  int    // rows with data that are hidden or filtered away
	columns []columnNotes
}

// columnNotes are the notes on one column.
type columnNotes struct {
	plain, exponents, blanked tally
	long                      int  // plain numbers of ten digits or more
	filled                    bool // something stands in it
	zeros                     bool // texts of digits that begin with a zero or a plus
}

// tally counts cells and remembers where the first stands.
type tally struct{ cells, row int }

func (t *tally) add(row int) {
	if t.cells++; t.cells == 1 {
		t.row = row
	}
}

// longNumber has as many digits as phone numbers have, and amounts seldom.
const longNumber = 10

// see notes a cell.
func (n *notes) see(column, row int, cell cell) {
	if cell.fault != nil || cell.Text == "" && !cell.Blanked {
		return
	}
	for len(n.columns) <= column {
		n.columns = append(n.columns, columnNotes{})
	}
	c := &n.columns[column]
	c.filled = true
	switch {
	case cell.Blanked:
		c.blanked.add(row)
	case !cell.Number:
		first := cell.Text[0]
		c.zeros = c.zeros || len(cell.Text) > 2 && (first == '0' || first == '+') && allDigits(cell.Text[1:])
	case allDigits(cell.Text):
		c.plain.add(row)
		if len(cell.Text) >= longNumber {
			c.long++
		}
	}
	if cell.Exponent {
		c.exponents.add(row)
	}
}

func allDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// tell makes warnings of the notes.
func (n *notes) tell(s *sheetReader, columns *rows.Columns, found *rows.Found) {
	if n.hidden > 0 {
		found.Warn("%s of the sheet %s hidden or filtered away in Excel, and read like all others", english.Plural(n.hidden, "row", ""), are(n.hidden))
	}
	var hidden []string
	for i, column := range columns.Keep {
		if column < len(n.columns) && n.columns[column].filled && s.hides(column) {
			hidden = append(hidden, strconv.Quote(columns.Header.Names[i]))
		}
	}
	if len(hidden) > 0 {
		found.Warn("the sheet hides %s %s, which %s read like all others", english.PluralWord(len(hidden), "column", ""), listed(hidden), are(len(hidden)))
	}
	if s.merged > 0 {
		found.Warn("the sheet has %s of merged cells: only the first cell of each holds the value, the others are empty", english.Plural(s.merged, "area", ""))
	}
	for i, column := range columns.Keep {
		if column < len(n.columns) {
			n.columns[column].tell(columns.Header.Names[i], found)
		}
	}
}

func (c columnNotes) tell(name string, found *rows.Found) {
	if t := c.plain; t.cells > 0 && (c.zeros || c.long == t.cells || identifies(name)) {
		found.Warn("column %q looks like phone numbers, postal codes or other identifiers, but %s, first in row %d: zeros at the beginning may be lost (hint: format the column as text before data are entered)",
			name, t.holdNumbers(), t.row)
	}
	if t := c.exponents; t.cells > 0 {
		found.Warn("column %q: %s %s shown with an exponent in Excel, first in row %d; all digits were taken instead", name, english.Plural(t.cells, "cell", ""), are(t.cells), t.row)
	}
	if t := c.blanked; t.cells > 0 {
		found.Warn("column %q: %s, first in row %d, hidden by the format of the cell; such a cell counts as empty", name, t.holdNumbers(), t.row)
	}
}

func (t tally) holdNumbers() string {
	if t.cells == 1 {
		return "1 cell holds a number"
	}
	return fmt.Sprintf("%d cells hold numbers", t.cells)
}

func are(n int) string { return english.PluralWord(n, "is", "are") }

// Words that begin, or are, a part of the names of columns with phone numbers, postal codes and other identifiers
// that may begin with a zero. A plain "id" is none: nearly every workbook numbers its rows.
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

// words parts a name at all that is no letter, and where a small letter goes before a big one: "leadID" has two.
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
