package numfmt

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The days after the last one that Excel shows, 9999-12-31, counted from 1900 and from 1904.
const (
	endOf1900 = 2958466
	endOf1904 = 2957004
)

// Dates in formats that differ from system to system are in ISO 8601.
var isoDate, isoTime, isoBoth = Compile("yyyy-mm-dd"), Compile("hh:mm:ss"), Compile("yyyy-mm-dd hh:mm:ss")

// date writes the date of a number. Excel fills the cell with # for those before the first day and after the last.
func (s *section) date(v float64, from1904 bool) (string, error) {
	if v < 0 || v >= endOf1900 || from1904 && v >= endOf1904 {
		return "", ErrDate
	}
	if s.kind == anyDate {
		switch second := int64(math.Round(v * 86400)); {
		case second%86400 == 0:
			s = &isoDate[0]
		case second < 86400:
			s = &isoTime[0]
		default:
			s = &isoBoth[0]
		}
	}
	return s.clock(v, from1904), nil
}

// day is a date as Excel shows it; the weekday counts from Sunday, 0.
type day struct{ year, month, day, weekday int }

// dayOf is the date of a day's number. Excel takes 1900 for a leap year, and calls the day before the first one
// 1900-01-00; its weekdays go with that.
func dayOf(n int, from1904 bool) day {
	if from1904 {
		n += 1462
	}
	weekday := (n + 6) % 7
	switch {
	case n == 0:
		return day{1900, 1, 0, weekday}
	case n == 60:
		return day{1900, 2, 29, weekday}
	case n < 60:
		n++
	}
	y, m, d := time.Date(1899, 12, 30+n, 0, 0, 0, 0, time.UTC).Date()
	return day{y, int(m), d, weekday}
}

// dateKind reads a section as the code of a date and says of which kind it is. What cannot be written as Excel
// shows it, in words of a language or digits or years of a calendar that are not known here, is written as ISO
// 8601.
func (c *compiler) dateKind() kind {
	c.places.fraction = min(c.places.fraction, 3) // Excel has no more
	last := -1                                    // the token of a date or time before
	for i, t := range c.tokens {
		if strings.IndexByte("ymdhsHMS", t.kind) < 0 {
			continue
		}
		// Months and minutes have one letter: it is the minute behind an hour and before a second.
		if last >= 0 && c.tokens[last].isMonth() && t.kind == 's' {
			c.tokens[last].kind = 'n'
		}
		if last >= 0 && t.isMonth() && strings.IndexByte("hsHS", c.tokens[last].kind) >= 0 {
			c.tokens[i].kind = 'n'
		}
		last = i
	}
	c.words = wordsOf(c.language)
	if c.numerals || otherCalendar(c.language) || !c.writable() {
		return anyDate
	}
	return codedDate
}

// isMonth tells whether the token may be a month, as a number, or a minute.
func (t token) isMonth() bool { return t.kind == 'm' && len(t.text) < 3 }

// writable tells whether all tokens of a date can be written.
func (s *section) writable() bool {
	point := false
	for _, t := range s.tokens {
		named := len(t.text) > 2 && (t.kind == 'm' || t.kind == 'd')
		switch {
		case t.kind == 'e', named && s.words == nil, t.isPlace() && (t.kind != '0' || !point):
			return false
		}
		point = t.kind == '.' || t.isPlace()
	}
	return true
}

// clock writes the date, the time or the duration of a number, rounded to the smallest part that the section shows
// of a second.
func (s *section) clock(v float64, from1904 bool) string {
	parts := int64(math.Pow10(s.places.fraction)) // of a second
	total := int64(math.Round(v * 86400 * float64(parts)))
	second := total / parts
	now := moment{day: dayOf(int(second/86400), from1904), second: second}
	for _, t := range s.tokens {
		now.half = now.half || t.kind == 'a'
	}
	var out strings.Builder
	for i, t := range s.tokens {
		switch {
		case t.kind == '.' && i+1 < len(s.tokens) && s.tokens[i+1].isPlace():
			fmt.Fprintf(&out, ".%0*d", s.places.fraction, total%parts)
		case !t.isPlace():
			out.WriteString(now.token(t, s.words))
		}
	}
	return strings.TrimSpace(out.String())
}

// moment is what a date is written from.
type moment struct {
	day
	second int64 // since the first day
	half   bool  // hours are those of half a day
}

// token writes one part.
func (m moment) token(t token, words *dateWords) string {
	hour := int(m.second / 3600 % 24)
	long := len(t.text) > 2
	number, width := 0, min(len(t.text), 2)
	switch t.kind {
	case 'm':
		return words.month(m.month, len(t.text))
	case 'a':
		return [...]string{"AM", "PM"}[hour/12]
	case 'd':
		if long {
			return words.weekdayName(m.weekday, len(t.text))
		}
		number = m.day.day
	case 'y':
		if number, width = m.year%100, 2; long {
			number, width = m.year, 4
		}
	case 'h':
		if number = hour; m.half {
			number = (hour+11)%12 + 1
		}
	case 'n':
		number = int(m.second / 60 % 60)
	case 's':
		number = int(m.second % 60)
	case 'H':
		number, width = int(m.second/3600), len(t.text)
	case 'M':
		number, width = int(m.second/60), len(t.text)
	case 'S':
		number, width = int(m.second), len(t.text)
	default:
		return t.text
	}
	return fmt.Sprintf("%0*d", width, number)
}

// dateWords are the words of a language for months and weekdays.
type dateWords struct {
	id         uint64 // of Windows: of one country, or, below 0x400, of all
	tag        string
	months     string
	abridged   string // months in short; "" for the first three letters
	weekdays   string
	letters    int // of a weekday in short
	afterShort string
}

// knownDateWords are those that workbooks of the countries around this service have in the codes of their dates.
var knownDateWords = []dateWords{
	{0x09, "en", "January February March April May June July August September October November December", "", "Sunday Monday Tuesday Wednesday Thursday Friday Saturday", 3, ""},
	{0xC07, "de-at", "Jänner Februar März April Mai Juni Juli August September Oktober November Dezember", "", "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag", 2, ""},
	{0x07, "de", "Januar Februar März April Mai Juni Juli August September Oktober November Dezember", "", "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag", 2, ""},
	{0x0C, "fr", "janvier février mars avril mai juin juillet août septembre octobre novembre décembre", "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.", "dimanche lundi mardi mercredi jeudi vendredi samedi", 3, "."},
	{0x0A, "es", "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre", "", "domingo lunes martes miércoles jueves viernes sábado", 3, "."},
	{0x16, "pt", "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro", "", "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado", 3, ""},
	{0x10, "it", "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre", "", "domenica lunedì martedì mercoledì giovedì venerdì sabato", 3, ""},
	{0x13, "nl", "januari februari maart april mei juni juli augustus september oktober november december", "jan feb mrt apr mei jun jul aug sep okt nov dec", "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag", 2, ""},
	{0x06, "da", "januar februar marts april maj juni juli august september oktober november december", "", "søndag mandag tirsdag onsdag torsdag fredag lørdag", 2, ""},
	{0x1D, "sv", "januari februari mars april maj juni juli augusti september oktober november december", "jan. feb. mars apr. maj juni juli aug. sep. okt. nov. dec.", "söndag måndag tisdag onsdag torsdag fredag lördag", 3, ""},
	{0x414, "nb", "januar februar mars april mai juni juli august september oktober november desember", "", "søndag mandag tirsdag onsdag torsdag fredag lørdag", 3, ""},
}

// wordsOf finds the words of a language as a number format names it, by the number of Windows ("407") or by its tag
// ("de-DE"); nil where they are not known.
func wordsOf(language string) *dateWords {
	if language == "" {
		return &knownDateWords[0]
	}
	id, err := strconv.ParseUint(language, 16, 64)
	numbered := err == nil && !strings.HasPrefix(language, "d") // but "de" and "da" are tags
	tag, _, _ := strings.Cut(language, "-")
	for i, w := range knownDateWords {
		if numbered && (w.id == id&0xFFFF || w.id == id&0x3FF) || w.tag == language || w.tag == tag {
			return &knownDateWords[i]
		}
	}
	return nil
}

// otherCalendar tells whether the language of a number format asks for the years of another calendar or for other
// digits than ours; both stand above its number.
func otherCalendar(language string) bool {
	id, err := strconv.ParseUint(language, 16, 64)
	return err == nil && id>>16&0xFF > 1 || err == nil && id>>24 > 1
}

// month writes a month in the length of the code: 1 and 2 are digits, 3 is short, 5 is its first letter.
func (w *dateWords) month(month, length int) string {
	if length < 3 {
		return fmt.Sprintf("%0*d", length, month)
	}
	name := strings.Fields(w.months)[month-1]
	switch {
	case length == 3 && w.abridged != "":
		return strings.Fields(w.abridged)[month-1]
	case length == 3:
		return firstLetters(name, 3)
	case length == 5:
		return firstLetters(name, 1)
	}
	return name
}

// weekdayName writes a weekday, in short where the code is three letters long.
func (w *dateWords) weekdayName(day, length int) string {
	name := strings.Fields(w.weekdays)[day]
	if length == 3 {
		return firstLetters(name, w.letters) + w.afterShort
	}
	return name
}

func firstLetters(name string, n int) string {
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(name[end:])
		end += size
	}
	return name[:end]
}
