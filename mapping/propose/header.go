package propose

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How surely a header's name says its part.
const (
	weakName     = 0.45 // a word with other meanings: the German "Adresse"
	aroundName   = 0.92 // words that say nothing stood around it
	withinName   = 0.5  // the name stands somewhere in a longer header
	secondName   = 0.25 // taken off a second one of its kind
	secondMost   = 0.65 // what a second one of its kind comes to: "Other Phone"
	shortestName = 4    // characters of a name that is looked for in longer headers
)

// name is what a header says by its words.
type name struct {
	words   []string
	signs   []sign
	foreign bool // it speaks of somebody other than the lead
	known   bool // the dictionary knows the header, if only as nothing of use
}

// readName looks a header up: as it is, without what stands in parentheses, without
// the words around, and last for a known name inside.
func readName(header string) name {
	d, n := known(), name{words: words(header)}
	n.foreign = slices.ContainsFunc(n.words, func(w string) bool { return d.has("foreign", w) })
	if n.signs = d.headers[strings.Join(n.words, "")]; n.signs == nil {
		outside, _, _ := strings.Cut(header, "(")
		n.signs = d.headers[joined(outside)]
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.bare(n.words)
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.within(n.words)
	}
	n.known = n.signs != nil
	return n
}

// strength is how surely the name says the part.
func (n name) strength(p part) float64 {
	best := 0.0
	for _, s := range n.signs {
		if s.part == p {
			best = max(best, s.strength)
		}
	}
	return best
}

// isKey reports whether the header speaks of an identifier of any kind.
func (n name) isKey() bool {
	return len(n.words) > 0 && known().has("keys", n.words[len(n.words)-1])
}

// isSecret reports whether the header names what no lead should carry.
func (n name) isSecret() bool {
	d := known()
	return d.has("secret", strings.Join(n.words, "")) ||
		slices.ContainsFunc(n.words, func(w string) bool { return d.has("secret word", w) })
}

// identifiers are parts that any word in front makes another table's: a "Form ID" is
// not the lead's.
var identifiers = []part{partRecordID, partOtherID, partRowNumber, partOrganization, partStatusID}

// bare looks up the words without those that say nothing, which cost a little,
// and without those that make it a second one, which cost more.
func (d *dictionary) bare(words []string) []sign {
	var left []string
	strength, address, own := aroundName, false, true
	for _, w := range words {
		noise, second := d.has("noise", w), d.has("second", w)
		own = own && (d.has("own", w) || !noise && !second)
		switch {
		case isNumber(w):
			if w != "1" && w != "0" {
				strength -= secondName
			}
		case noise:
			address = address || isAddress(w)
		case second:
			strength -= secondName
		default:
			left = append(left, w)
		}
	}
	var signs []sign
	for _, s := range d.headers[strings.Join(left, "")] {
		if !s.whole && (!address || ruleOf(s.part).place) && (own || !slices.Contains(identifiers, s.part)) {
			s.strength *= strength
			signs = append(signs, s)
		}
	}
	return signs
}

// within looks for the longest name inside a header such as a form's question.
func (d *dictionary) within(words []string) []sign {
	var best []sign
	longest := shortestName
	for from := range words {
		for to := from + 1; to <= min(len(words), from+d.longestHeader); to++ {
			text := strings.Join(words[from:to], "")
			if utf8.RuneCountInString(text) < longest || text == "name" {
				continue
			}
			address := slices.ContainsFunc(words[:from], isAddress) || slices.ContainsFunc(words[to:], isAddress)
			if signs := d.asked(text, address); signs != nil {
				best, longest = signs, utf8.RuneCountInString(text)
			}
		}
	}
	return best
}

// asked are the signs of a name that forms ask for in sentences; next to the word
// address only those of places count.
func (d *dictionary) asked(text string, address bool) []sign {
	var signs []sign
	for _, s := range d.headers[text] {
		if r := ruleOf(s.part); r.asked && !s.whole && s.strength == 1 && (!address || r.place) {
			s.strength = withinName
			signs = append(signs, s)
		}
	}
	return signs
}

func isAddress(word string) bool {
	return strings.HasPrefix(word, "addr") || strings.HasPrefix(word, "adr")
}

func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// origin is where the leads come from, as far as the file tells.
type origin struct {
	Key, Label string // of the lead's type
	Why        string
}

// leastSigns is what a file must have of a system's headers to be taken for its export. A
// header that no other system has is one sign.
const leastSigns = 1.5

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

// originOf knows the system by its headers, else the file by its name.
func (t *table) originOf() origin {
	var headers []string
	for _, header := range append(headersOf(t.Numbered), t.In.Columns...) {
		headers = append(headers, strings.ToLower(header))
	}
	var best wordLine
	most, second := 0.0, 0.0
	for _, lines := range known().systems {
		if signs := signsOf(lines, headers); signs > most {
			best, most, second = lines[0], signs, most
		} else {
			second = max(second, signs)
		}
	}
	if most >= leastSigns && most > second {
		return origin{best.section, best.label, "the columns look like an export of " + strings.Fields(best.label)[0]}
	}
	if list := fileWords(t.In.File); len(list) > 0 {
		label := strings.Join(list, " ") + " lead"
		return origin{strings.Join(list, "-") + "-lead", strings.ToUpper(label[:1]) + label[1:], "from the file's name"}
	}
	return origin{"imported-lead", "Imported lead", "nothing tells where the leads come from"}
}

// signsOf adds up the headers that a system's exports have. Of those that begin alike the
// first three count.
func signsOf(lines []wordLine, headers []string) (signs float64) {
	counted := map[string]bool{}
	for _, l := range lines {
		for _, p := range l.phrases {
			if counted[p.text] {
				continue
			}
			counted[p.text] = true
			n, most := 0, 1
			prefix, begins := strings.CutSuffix(p.text, "…")
			if begins {
				most = 3
			}
			for _, header := range headers {
				if n < most && (header == prefix || begins && strings.HasPrefix(header, prefix)) {
					n++
				}
			}
			signs += float64(n) / float64(known().shared[p.text])
		}
	}
	return signs
}

// baseName is the file's name without its folders.
func baseName(file string) string { return path.Base(strings.ReplaceAll(file, "\\", "/")) }

// fileWords are the words of the file's name that say something, in plain
// letters and no more than four.
func fileWords(file string) []string {
	base, _, _ := strings.Cut(baseName(file), ".")
	list := slices.DeleteFunc(words(base), func(w string) bool {
		foreign := strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
		return foreign || len(w) == 1 || known().has("generic", w)
	})
	return list[:min(len(list), 4)]
}
