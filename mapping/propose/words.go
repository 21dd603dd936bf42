package propose

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed words/headers.txt
var headerWords string

//go:embed words/around.txt
var aroundWords string

//go:embed words/statuses.txt
var statusWords string

//go:embed words/values.txt
var valueWords string

// sign is what a header's name says: the part, and how surely (1 at most).
type sign struct {
	part     part
	strength float64
	whole    bool // only when it is the whole header
}

// placing is the status that a word stands for.
type placing struct {
	status int // index in statuses
	doubt  bool
	whole  bool // only when it is the whole text
}

// dictionary holds the tables in words/, ready to be asked.
type dictionary struct {
	headers map[string][]sign // by joined words
	longest int               // words in a header's name

	noise, own, second, foreign, keys map[string]bool // by word

	statuses      map[string]placing // by words with blanks between
	longestStatus int

	null                    map[string]bool // as written
	yesno, country, state   map[string]bool // by joined words
	street, negation, given map[string]bool // by word
	streetEnds              []string
}

// known is the dictionary, made when it is first needed: most commands do not.
var known = sync.OnceValue(func() *dictionary {
	d := &dictionary{headers: map[string][]sign{}, statuses: map[string]placing{}}
	d.readHeaders()
	d.readStatuses()
	around, values := parseWords(aroundWords), parseWords(valueWords)
	d.noise, d.own, d.second = around.set("noise", true), around.set("own", true), around.set("second", true)
	d.foreign, d.keys = around.set("foreign", true), around.set("keys", true)
	d.null = values.set("null", false)
	d.yesno, d.country, d.state = values.set("yesno", true), values.set("country", true), values.set("state", true)
	d.negation, d.given = values.set("negation", true), values.set("given", true)
	d.street = values.set("street", true)
	for _, l := range values {
		if l.section == "street" && l.language == "ends" {
			for _, phrase := range l.phrases {
				d.streetEnds = append(d.streetEnds, joined(words(phrase)))
			}
		}
	}
	return d
})

func (d *dictionary) readHeaders() {
	for _, l := range parseWords(headerWords) {
		for _, phrase := range l.phrases {
			s := sign{part: part(l.section), strength: 1}
			phrase, s.whole = strings.CutPrefix(phrase, "=")
			phrase, weak := strings.CutPrefix(phrase, "~")
			if weak {
				s.strength = weakName
			}
			for _, spelling := range spellings(phrase) {
				d.addHeader(joined(spelling), s)
				d.longest = max(d.longest, len(spelling))
			}
		}
	}
}

// addHeader takes in a name once for each part, as the strongest that it is told.
func (d *dictionary) addHeader(name string, s sign) {
	for i, other := range d.headers[name] {
		if other.part == s.part {
			if s.strength > other.strength {
				d.headers[name][i] = s
			}
			return
		}
	}
	if name == "" { // "#" has no words, and is only ever the whole header
		return
	}
	d.headers[name] = append(d.headers[name], s)
}

func (d *dictionary) readStatuses() {
	for _, l := range parseWords(statusWords) {
		for _, phrase := range l.phrases {
			p := placing{status: statusIndex(l.section)}
			phrase, p.whole = strings.CutPrefix(phrase, "=")
			phrase, p.doubt = strings.CutSuffix(phrase, "?")
			for _, spelling := range spellings(phrase) {
				d.statuses[strings.Join(spelling, " ")] = p
				d.longestStatus = max(d.longestStatus, len(spelling))
			}
		}
	}
}

// wordLine is one line of a table in words/: phrases of a language.
type wordLine struct {
	section, language string
	phrases           []string
}

type wordTable []wordLine

// parseWords reads a table: sections at the margin, in them "language: phrases",
// which go on in lines that stand further in.
func parseWords(text string) wordTable {
	var table wordTable
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case line[0] != ' ':
			section = line
		case strings.HasPrefix(line, "    "):
			last := &table[len(table)-1]
			last.phrases = append(last.phrases, phrasesOf(line)...)
		default:
			language, phrases, _ := strings.Cut(line, ": ")
			table = append(table, wordLine{section, strings.TrimSpace(language), phrasesOf(phrases)})
		}
	}
	return table
}

func phrasesOf(s string) []string {
	var list []string
	for phrase := range strings.SplitSeq(s, ",") {
		if phrase = strings.TrimSpace(phrase); phrase != "" {
			list = append(list, phrase)
		}
	}
	return list
}

// set is a section's phrases, folded and joined or as they are written.
func (t wordTable) set(section string, folded bool) map[string]bool {
	set := map[string]bool{}
	for _, l := range t {
		if l.section != section {
			continue
		}
		for _, phrase := range l.phrases {
			if !folded {
				set[phrase] = true
				continue
			}
			for _, spelling := range spellings(phrase) {
				set[joined(spelling)] = true
			}
		}
	}
	return set
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
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(s)) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return letters.Replace(b.String())
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
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
	for i := 0; i <= len(runes); i++ {
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

// divides reports whether a new word may begin at i.
func divides(runes []rune, i int) bool {
	if i == 0 {
		return false
	}
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
func joined(list []string) string { return strings.Join(list, "") }

// spellings are the ways in which a phrase of the dictionary may be met.
func spellings(phrase string) [][]string {
	plain := words(phrase)
	if out := spelledOut.Replace(norm.NFC.String(phrase)); out != phrase {
		return [][]string{plain, words(out)}
	}
	return [][]string{plain}
}
