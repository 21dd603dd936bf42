package propose

import (
	"embed"
	"path"
	"slices"
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
	systems    map[string]*system
	shared     map[string]int     // systems that have the header
	headers    map[string][]sign  // by joined words
	statuses   map[string]placing // by words with blanks between
	sets       map[[2]string]bool // by section and joined words, or what stands for nothing as it is written
	streetEnds []string

	longestHeader, longestStatus int // words
}

// system is one that leads are exported from, and headers of its exports; "…" stands for any end.
type system struct {
	key, label string
	headers    []string
}

// known is the dictionary, made when it is first needed: most commands do not.
var known = sync.OnceValue(func() *dictionary {
	d := &dictionary{
		systems: map[string]*system{}, shared: map[string]int{}, headers: map[string][]sign{}, statuses: map[string]placing{}, sets: map[[2]string]bool{},
	}
	for _, l := range readWords("systems") {
		if d.systems[l.section] == nil {
			d.systems[l.section] = &system{key: l.section, label: l.label}
		}
		s := d.systems[l.section]
		for _, p := range l.phrases {
			if !slices.Contains(s.headers, p.text) {
				s.headers = append(s.headers, p.text)
				d.shared[p.text]++
			}
		}
	}
	eachSpelling("headers", func(l wordLine, p phrase, words []string) {
		if name := strings.Join(words, ""); name != "" { // "#" has no words
			d.headers[name] = append(d.headers[name], sign{part(l.section), p.strength(), p.whole})
		}
		d.longestHeader = max(d.longestHeader, len(words))
	})
	eachSpelling("statuses", func(l wordLine, p phrase, words []string) {
		d.statuses[strings.Join(words, " ")] = placing{l.section, p.doubt, p.whole}
		d.longestStatus = max(d.longestStatus, len(words))
	})
	for _, table := range []string{"around", "values"} {
		eachSpelling(table, func(l wordLine, p phrase, words []string) {
			word := strings.Join(words, "")
			if l.section == "null" {
				word = p.text
			}
			d.sets[[2]string{l.section, word}] = true
			if l.label == "ends" {
				d.streetEnds = append(d.streetEnds, word)
			}
		})
	}
	return d
})

func (d *dictionary) has(section, words string) bool { return d.sets[[2]string{section, words}] }

// eachSpelling calls f with the words of all ways in which the phrases of a table may be met.
func eachSpelling(table string, f func(l wordLine, p phrase, words []string)) {
	for _, l := range readWords(table) {
		for _, p := range l.phrases {
			for _, words := range p.spellings() {
				f(l, p, words)
			}
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

// origin is where the leads come from, as far as the file tells.
type origin struct {
	Key, Label string // of the lead's type
	Why        string
}

// Known is how many of the columns have names that the dictionary knows.
func Known(columns []string) (n int) {
	for _, header := range columns {
		if readName(header).known {
			n++
		}
	}
	return n
}

// FooterWord is the word or words with which a text begins that stand behind tables and not
// in them, as "Grand total", or "".
func FooterWord(text string) string {
	text = text[:min(len(text), maxHeader)]
	found := ""
	for i, r := range text + " " {
		if i <= len(text) && notInWord(r) && known().has("footer", joined(text[:i])) {
			found = text[:i]
		}
	}
	return found
}

func (t *table) originOf() origin {
	const leastSigns = 1.5 // of a system; a header that no other one has is one sign
	var headers []string
	for _, header := range append(headersOf(t.Numbered), t.In.Columns...) {
		headers = append(headers, strings.ToLower(header))
	}
	var best *system
	most, second := 0.0, 0.0
	for _, s := range known().systems {
		if signs := s.signs(headers); signs > most {
			best, most, second = s, signs, most
		} else {
			second = max(second, signs)
		}
	}
	if most >= leastSigns && most > second {
		return origin{best.key, best.label, "the columns look like an export of " + strings.Fields(best.label)[0]}
	}
	if list := fileWords(t.In.File); len(list) > 0 {
		label := strings.Join(list, " ") + " lead"
		return origin{strings.Join(list, "-") + "-lead", strings.ToUpper(label[:1]) + label[1:], "from the file's name"}
	}
	return origin{"imported-lead", "Imported lead", "nothing tells where the leads come from"}
}

// signs adds up the headers that the system's exports have. Of those that begin alike the first three count.
func (s *system) signs(headers []string) (signs float64) {
	for _, own := range s.headers {
		found, most := 0, 1
		prefix, begins := strings.CutSuffix(own, "…")
		if begins {
			most = 3
		}
		for _, header := range headers {
			if header == prefix || begins && strings.HasPrefix(header, prefix) {
				found++
			}
		}
		signs += float64(min(found, most)) / float64(known().shared[own])
	}
	return signs
}

func baseName(file string) string { return path.Base(strings.ReplaceAll(file, "\\", "/")) }

// fileWords are the words of the file's name that say something, in plain letters and no more than four.
func fileWords(file string) []string {
	base, _, _ := strings.Cut(baseName(file), ".")
	list := slices.DeleteFunc(words(base), func(w string) bool {
		foreign := strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
		return foreign || len(w) == 1 || known().has("generic", w)
	})
	return list[:min(len(list), 4)]
}
