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
	status int // index in statuses
	doubt  bool
	whole  bool // only when it is the whole text
}

// dictionary holds the tables in words/, ready to be asked.
type dictionary struct {
	systems    wordTable
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
		systems: readWords("systems"), headers: map[string][]sign{}, statuses: map[string]placing{},
		sets: map[string]map[string]bool{}, null: map[string]bool{},
	}
	for _, l := range readWords("headers") {
		d.addHeaders(l)
	}
	for _, l := range readWords("statuses") {
		d.addStatuses(l)
	}
	for _, l := range append(readWords("around"), readWords("values")...) {
		d.addSet(l)
	}
	return d
})

// has reports whether joined words stand in a section.
func (d *dictionary) has(section, words string) bool { return d.sets[section][words] }

func (d *dictionary) addHeaders(l wordLine) {
	for _, phrase := range l.phrases {
		s := sign{part: part(l.section), strength: 1}
		phrase, s.whole = strings.CutPrefix(phrase, "=")
		phrase, weak := strings.CutPrefix(phrase, "~")
		if weak {
			s.strength = weakName
		}
		for _, spelling := range spellings(phrase) {
			if name := strings.Join(spelling, ""); name != "" { // "#" has no words
				d.headers[name] = append(d.headers[name], s)
			}
			d.longestHeader = max(d.longestHeader, len(spelling))
		}
	}
}

func (d *dictionary) addStatuses(l wordLine) {
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

func (d *dictionary) addSet(l wordLine) {
	if d.sets[l.section] == nil {
		d.sets[l.section] = map[string]bool{}
	}
	for _, phrase := range l.phrases {
		if l.section == "null" {
			d.null[phrase] = true
			continue
		}
		for _, spelling := range spellings(phrase) {
			word := strings.Join(spelling, "")
			d.sets[l.section][word] = true
			if l.label == "ends" {
				d.streetEnds = append(d.streetEnds, word)
			}
		}
	}
}

// wordLine is one line of a table in words/: phrases under a label, mostly a language.
type wordLine struct {
	section, label string
	phrases        []string
}

type wordTable []wordLine

// readWords reads a table: sections at the margin, in them "label: phrases", which go
// on in lines that stand further in.
func readWords(name string) wordTable {
	text, _ := wordFiles.ReadFile("words/" + name + ".txt") // it is part of the program
	var table wordTable
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

func phrasesOf(s string) []string {
	var list []string
	for phrase := range strings.SplitSeq(s, ",") {
		if phrase = strings.TrimSpace(phrase); phrase != "" {
			list = append(list, phrase)
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

// spellings are the ways in which a phrase of the dictionary may be met.
func spellings(phrase string) [][]string {
	list := [][]string{words(phrase)}
	if out := spelledOut.Replace(norm.NFC.String(phrase)); out != phrase {
		list = append(list, words(out))
	}
	return list
}
