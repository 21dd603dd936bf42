package propose

import (
	"embed"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed words
var wordFiles embed.FS

// sign is what a header's name says: the part, and how surely (1 at most).
type sign struct {
	part     part
	strength float64
	whole    bool // only when it is the whole header
}

// placing is the status that a word stands for.
type placing struct {
	status string
	doubt  bool
	whole  bool // only when it is the whole text
}

// dictionary holds the tables in words/, ready to be asked.
type dictionary struct {
	systems    map[string][]wordLine      // by section
	shared     map[string]int             // systems that have the header
	headers    map[string][]sign          // by joined words
	statuses   map[string]placing         // by words with blanks between
	sets       map[string]map[string]bool // by section: joined words
	null       map[string]bool            // as written
	streetEnds []string

	longestHeader, longestStatus int // words
}

// known is the dictionary, made when it is first needed: most commands do not.
var known = sync.OnceValue(func() *dictionary {
	d := &dictionary{
		systems: map[string][]wordLine{}, shared: map[string]int{}, headers: map[string][]sign{}, statuses: map[string]placing{},
		sets: map[string]map[string]bool{}, null: map[string]bool{},
	}
	for _, l := range readWords("systems") {
		d.systems[l.section] = append(d.systems[l.section], l)
	}
	for _, lines := range d.systems {
		d.addSystem(lines)
	}
	for _, l := range readWords("headers") {
		for _, p := range l.phrases {
			for _, spelling := range p.spellings() {
				d.addHeader(strings.Join(spelling, ""), sign{part(l.section), p.strength(), p.whole})
				d.longestHeader = max(d.longestHeader, len(spelling))
			}
		}
	}
	for _, l := range readWords("statuses") {
		for _, p := range l.phrases {
			for _, spelling := range p.spellings() {
				d.statuses[strings.Join(spelling, " ")] = placing{l.section, p.doubt, p.whole}
				d.longestStatus = max(d.longestStatus, len(spelling))
			}
		}
	}
	for _, l := range append(readWords("around"), readWords("values")...) {
		for _, p := range l.phrases {
			d.addToSet(l, p)
		}
	}
	return d
})

// has reports whether joined words stand in a section.
func (d *dictionary) has(section, words string) bool { return d.sets[section][words] }

func (d *dictionary) addSystem(lines []wordLine) {
	own := map[string]bool{}
	for _, l := range lines {
		for _, p := range l.phrases {
			own[p.text] = true
		}
	}
	for text := range own {
		d.shared[text]++
	}
}

func (d *dictionary) addHeader(name string, s sign) {
	if name != "" { // "#" has no words
		d.headers[name] = append(d.headers[name], s)
	}
}

func (d *dictionary) addToSet(l wordLine, p phrase) {
	if l.section == "null" {
		d.null[p.text] = true
		return
	}
	if d.sets[l.section] == nil {
		d.sets[l.section] = map[string]bool{}
	}
	for _, spelling := range p.spellings() {
		word := strings.Join(spelling, "")
		d.sets[l.section][word] = true
		if l.label == "ends" {
			d.streetEnds = append(d.streetEnds, word)
		}
	}
}

// wordLine is one line of a table in words/: phrases under a label, mostly a language.
type wordLine struct {
	section, label string
	phrases        []phrase
}

// phrase is one of a line, without the marks around it.
type phrase struct {
	text  string
	whole bool // "=" before it: only when it is the whole text
	weak  bool // "~" before it: a weak sign
	doubt bool // "?" after it: a doubtful guess
}

func (p phrase) strength() float64 {
	if p.weak {
		return weakName
	}
	return 1
}

// readWords reads a table: sections at the margin, in them "label: phrases", which go
// on in lines that stand further in.
func readWords(name string) []wordLine {
	text, _ := wordFiles.ReadFile("words/" + name + ".txt") // it is part of the program
	var table []wordLine
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case line[0] != ' ':
			section = line
		case strings.HasPrefix(line, "    "):
			last := &table[len(table)-1]
			last.phrases = append(last.phrases, phrasesOf(line)...)
		default:
			label, phrases, _ := strings.Cut(line, ": ")
			table = append(table, wordLine{section, strings.TrimSpace(label), phrasesOf(phrases)})
		}
	}
	return table
}

func phrasesOf(s string) []phrase {
	var list []phrase
	for text := range strings.SplitSeq(s, ",") {
		var p phrase
		text, p.whole = strings.CutPrefix(strings.TrimSpace(text), "=")
		text, p.weak = strings.CutPrefix(text, "~")
		if p.text, p.doubt = strings.CutSuffix(text, "?"); p.text != "" {
			list = append(list, p)
		}
	}
	return list
}

// maxHeader is how many bytes of a text are looked at for words.
const maxHeader = 200

// letters are those that do not come apart into a plain letter and an accent.
var letters = strings.NewReplacer(
	"ß", "ss", "ø", "o", "æ", "ae", "œ", "oe", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i",
)

// spelledOut is how those without such keys write them.
var spelledOut = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa")

// fold is s in lower case and without accents.
func fold(s string) string {
	s = strings.ToLower(s)
	if !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return s
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
	return letters.Replace(plain)
}

// words are the words of a header or cell, folded: "LeadStatus", "lead_status"
// and "Lead: Status" have the same two. Digits are words of their own.
func words(s string) []string {
	if len(s) > maxHeader {
		s = strings.ToValidUTF8(s[:maxHeader], "")
	}
	var list []string
	from := 0
	runes := []rune(norm.NFC.String(s))
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !divides(runes, i) {
			continue
		}
		if word := fold(strings.TrimFunc(string(runes[from:i]), notInWord)); word != "" {
			list = append(list, word)
		}
		from = i
	}
	return list
}

// divides reports whether a new word may begin at i, which is not the beginning.
func divides(runes []rune, i int) bool {
	before, here := runes[i-1], runes[i]
	switch {
	case notInWord(before) || notInWord(here):
		return true
	case unicode.IsDigit(before) != unicode.IsDigit(here):
		return true
	case unicode.IsLower(before) && unicode.IsUpper(here):
		return true
	}
	// The last capital of "CRMId" begins a word; those of "LEADID" do not.
	return unicode.IsUpper(before) && unicode.IsUpper(here) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func notInWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)
}

// joined is how names are compared: "E-Mail", "e_mail" and "eMail" are one.
func joined(s string) string { return strings.Join(words(s), "") }

// spellings are the ways in which a phrase may be met.
func (p phrase) spellings() [][]string {
	list := [][]string{words(p.text)}
	if out := spelledOut.Replace(norm.NFC.String(p.text)); out != p.text {
		list = append(list, words(out))
	}
	return list
}
