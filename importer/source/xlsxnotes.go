package source

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// notes gather what a person should know of a sheet that was read.
type notes struct {
	hidden        int    // rows with data that are hidden or filtered away
	merged        int    // areas of merged cells
	hiddenColumns []span // columns that are hidden
	columns       []columnNotes
}

// columnNotes are the notes on one column.
type columnNotes struct {
	plain, written, blanked tallied
	long                    int // plain numbers of ten digits or more
	filled                  bool
	zeros                   bool // texts of digits that begin with a zero or a plus
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
func (n *notes) see(column, row int, cell cellText, data bool) {
	if !data || cell.fault != nil || cell.text == "" && !cell.blanked {
		return
	}
	for len(n.columns) <= column {
		n.columns = append(n.columns, columnNotes{})
	}
	c := &n.columns[column]
	c.filled = true
	digits := strings.Trim(cell.text, "0123456789") == ""
	switch {
	case cell.blanked:
		c.blanked.add(row)
	case !cell.number:
		first := cell.text[0]
		c.zeros = c.zeros || len(cell.text) > 2 && strings.Trim(cell.text[1:], "0123456789") == "" && (first == '0' || first == '+')
	case digits:
		c.plain.add(row)
		if len(cell.text) >= longNumber {
			c.long++
		}
	}
	if cell.written {
		c.written.add(row)
	}
}

// tell makes sentences of the notes.
func (n *notes) tell(h *Header, keep []int, warn func(...string)) {
	if n.hidden > 0 {
		warn(fmt.Sprintf("%s of the sheet %s hidden or filtered away in Excel, and read like all others", count(n.hidden, "row"), isAre(n.hidden)))
	}
	if names := n.veiledNames(h, keep); len(names) > 0 {
		warn(fmt.Sprintf("the sheet hides %s, which %s read like all others", listedColumns(names), isAre(len(names))))
	}
	if n.merged > 0 {
		warn(fmt.Sprintf("the sheet has %s of merged cells: only the first cell of each holds the value, the others are empty", count(n.merged, "area")))
	}
	for i, column := range keep {
		if column < len(n.columns) {
			n.columns[column].tell(h.Names[i], warn)
		}
	}
}

// veiledNames are the names of the columns that are hidden and have something in them.
func (n *notes) veiledNames(h *Header, keep []int) (names []string) {
	for i, column := range keep {
		hidden := slices.ContainsFunc(n.hiddenColumns, func(s span) bool { return s.first <= column && column <= s.last })
		if hidden && column < len(n.columns) && n.columns[column].filled {
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
	if t := c.written; t.cells > 0 {
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

func (t tallied) are() string { return count(t.cells, "cell") + " " + isAre(t.cells) }

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
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
