package inputs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/mapping/propose"
)

// unread is the first row that is no text, or whose quotes are broken. It may be the header, so nothing is proposed for a file that has
// one among the rows that init looks at.
type unread struct {
	line    int // 0: there is none
	problem source.Problem
}

func (u *unread) note(row *source.Row) {
	if p := row.Problem; p != nil && u.line == 0 && slices.Contains([]string{"encoding", "nul", "quote"}, p.Code) {
		*u = unread{row.Line, *p}
	}
}

func (u *unread) isText() bool { return u.line == 0 || u.problem.Code == "quote" }

// refusal is why no mapping is proposed.
func (l *layout) refusal(u unread, o source.Options) error {
	hint := cmp.Or(u.problem.Hint, "mend the quotes of this line, or where quotes are text, write the mapping by hand with source: {quote: none}")
	if fit := l.encodings(o); !u.isText() && len(fit) > 0 {
		hint = "set the encoding that the file was written in, by its words: --encoding " + strings.Join(fit, " or --encoding ") + ", or save it as UTF-8"
	}
	return exit.Usage(fmt.Sprintf("%s:%d: %s; no mapping was written, since a header or leads would be missed", l.name, u.line, u.problem.Text), hint)
}

// candidates are encodings that tables are exported in. Of those that fit equally well, the first is named first.
var candidates = []string{
	"windows-1252", "windows-1250", "windows-1253", "windows-1251", "windows-1254", "macintosh", "koi8-r", "ibm866", "shift_jis", "gb18030", "euc-kr", "big5",
	"utf-16le", "utf-16be",
}

// encodings are the candidates that fit the words of the file best.
func (l *layout) encodings(o source.Options) (labels []string) {
	const most, equal = 3, 0.02
	o.Format, o.Frame = source.CSV, source.Frame{}
	isForeignLine := func(text string) bool { return strings.ContainsFunc(text, isForeign) }
	if named, _ := l.lines(o, isForeignLine); len(named) > 0 {
		return nil // some lines are text beyond ASCII: the file mixes encodings
	}
	fits := map[string]float64{}
	best := 0.0
	for _, label := range candidates {
		o.Encoding = label
		lines, unread := l.lines(o, isForeignLine)
		wide := strings.HasPrefix(label, "utf-16")
		if unread.line > 0 || wide && len(lines) < 2 {
			continue
		}
		fits[label] = lines.fit()
		best = max(best, fits[label])
	}
	for _, label := range candidates {
		if fits[label] > 0 && fits[label]+equal >= best && len(labels) < most {
			labels = append(labels, label)
		}
	}
	return labels
}

func isForeign(r rune) bool { return r >= utf8.RuneSelf }

// rare are letters of windows-1252 that few languages use, and that others have other letters for.
const rare = "ÐðÞþÝýÿ"

// fit is the share of the characters beyond ASCII that a word may hold: letters of one script, small behind the first or all capital.
// Names of columns that are known count double.
func (lines rawLines) fit() float64 {
	good, all, known := 0.0, 0.0, 0
	for _, line := range lines {
		for word := range strings.FieldsFuncSeq(line.text, func(r rune) bool { return !isForeign(r) && !unicode.IsLetter(r) }) {
			n := float64(utf8.RuneCountInString(strings.Map(onlyForeign, word)))
			all += n
			if isWord(word) {
				good += n
			}
		}
	}
	cells, _, _ := lines.table(0)
	for _, row := range cells[:min(len(cells), 2)] {
		known += propose.Known(row)
	}
	return (good + float64(known)) / max(all, 1)
}

func onlyForeign(r rune) rune {
	if isForeign(r) {
		return r
	}
	return -1
}

// isWord says that a text of letters may be a word of a language.
func isWord(word string) bool {
	scripts := []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hangul}
	same := func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー' || r == '々'
	}
	for _, script := range scripts {
		if first, _ := utf8.DecodeRuneInString(word); unicode.Is(script, first) {
			same = func(r rune) bool { return unicode.Is(script, r) }
		}
	}
	runes := []rune(word)
	upper, foreign := 0, 0
	for i, r := range runes {
		halfWidth := r >= '\uFF61' && r <= '\uFF9F'
		within := r == 'ς' && i < len(runes)-1 // which only ends words
		if !same(r) || within || halfWidth || strings.ContainsRune(rare, r) || i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(runes[i-1]) {
			return false
		}
		if unicode.IsUpper(r) {
			upper++
		}
		if isForeign(r) {
			foreign++
		}
	}
	latin := unicode.Is(unicode.Latin, runes[0])
	return (upper <= 1 || upper == len(runes)) && (!latin || 2*foreign <= len(runes) || foreign == 1)
}
