package propose

import (
	_ "embed"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/spelling"
)

//go:embed dictionary.yaml
var dictionaryText []byte

// part is the role of a column in a lead: a section of headers in dictionary.yaml.
type part string

// rule says which column gets a part and where it goes in the lead. dictionary.yaml lists and explains all rules.
type rule struct {
	Part                   part
	Key, Apply, Format     string // of the content; without a key it is joined to another part
	Like                   string
	Unlike, Not            []string
	Weight, Least, Longest float64
	Sure, All              float64
}

// sign is what a phrase says and how surely: the part of a header, the status of a word, or the section of the phrase.
type sign struct {
	part         part
	strength     float64 // 1 at most
	whole, doubt bool    // whole: only if it is the whole text; doubt: it is a doubtful guess
}

// dictionary holds dictionary.yaml as written, and look-up tables made from it.
type dictionary struct {
	Headers, Statuses, Around, Values map[string]map[string]string // phrases by section and language
	Forms                             map[string][]*regexp.Regexp
	Parts                             []rule
	Dates                             struct{ Days, Times, Languages []string }
	Places, Identifiers               []part // of an address; IDs, which only words of own surround
	Null                              []string

	headers, statuses, words map[string][]sign // by joined words
}

// known returns the dictionary, and makes it on the first call: most commands do not need it.
var known = sync.OnceValue(func() *dictionary {
	d := new(dictionary)
	if err := yaml.Unmarshal(dictionaryText, d); err != nil {
		panic(err) // it is part of the program
	}
	d.headers, d.statuses, d.words = phrases(d.Headers), phrases(d.Statuses), phrases(d.Around, d.Values)
	return d
})

// phrases maps the joined words of each phrase, in each spelling, to what the phrase says.
func phrases(tables ...map[string]map[string]string) map[string][]sign {
	all := map[string][]sign{}
	add := func(section, phrase string) {
		text, whole := strings.CutPrefix(strings.TrimSuffix(phrase, "?"), "=")
		s := sign{part: part(section), strength: 1, whole: whole, doubt: strings.HasSuffix(phrase, "?")}
		if strings.HasPrefix(text, "~") {
			s.strength = weakName
		}
		for _, text := range []string{text, spelledOut.Replace(norm.NFC.String(text))} {
			if word := joined(text); word != "" && !slices.Contains(all[word], s) {
				all[word] = append(all[word], s)
			}
		}
	}
	for _, table := range tables {
		for _, section := range slices.Sorted(maps.Keys(table)) {
			for _, list := range table[section] {
				for phrase := range strings.SplitSeq(list, ",") {
					add(section, strings.TrimSpace(phrase))
				}
			}
		}
	}
	return all
}

func (d *dictionary) has(section part, words string) bool {
	return slices.ContainsFunc(d.words[words], func(s sign) bool { return s.part == section })
}

const maxHeader = 200 // bytes of a text in which to look for words

// letters replaces letters that do not split into a plain letter and an accent.
var letters = strings.NewReplacer(
	"ß", "ss", "ø", "o", "æ", "ae", "œ", "oe", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i",
)

// spelledOut writes letters as people do when their keyboards lack them.
var spelledOut = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa")

// fold returns s in lower case and without accents.
func fold(s string) string {
	s = strings.ToLower(s)
	if !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return s
	}
	plain, _, _ := transform.String(transform.Chain(norm.NFKD, runes.Remove(runes.In(unicode.Mn))), s)
	return letters.Replace(plain)
}

// words returns the words of a header or cell, folded: "LeadStatus", "lead_status" and "Lead: Status" have the same
// two. Digits are words of their own.
func words(s string) (list []string) {
	if len(s) > maxHeader {
		s = strings.ToValidUTF8(s[:maxHeader], "")
	}
	s = lastCapital().ReplaceAllString(norm.NFC.String(s), "$1 $2")
	for _, word := range wordForm().FindAllString(s, -1) {
		list = append(list, fold(word))
	}
	return list
}

var (
	// wordForm matches digits, or capitals with the letters that follow, or letters without capitals.
	wordForm = spelling.Form(`\p{Nd}+|\p{Lu}+(?:[^\P{L}\p{Lu}]|\p{Mn})*|(?:[^\P{L}\p{Lu}]|\p{Mn})+`)

	// lastCapital matches the I of "CRMId", which begins a word.
	lastCapital = spelling.Form(`(\p{Lu})(\p{Lu}\p{Ll})`)
)

// joined returns a name in the form that is compared: "E-Mail", "e_mail" and "eMail" are the same.
func joined(s string) string { return strings.Join(words(s), "") }

// Known returns how many of the columns have names that the dictionary knows.
func Known(columns []string) (n int) {
	for _, header := range columns {
		if readName(header).known() {
			n++
		}
	}
	return n
}

// FooterWord returns the first words of a text if they show that the text follows a table, else "".
func FooterWord(text string) string {
	if found := known().Forms["footer"][0].FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

func baseName(file string) string { return path.Base(strings.ReplaceAll(file, "\\", "/")) }

// fileWords returns at most four words of the file's name that mean something, in plain letters.
func fileWords(file string) []string {
	base, _, _ := strings.Cut(baseName(file), ".")
	list := slices.DeleteFunc(words(base), func(w string) bool {
		foreign := strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) })
		return foreign || len(w) == 1 || known().has("generic", w)
	})
	return list[:min(len(list), 4)]
}

// How surely a header's name says its part.
const (
	weakName   = 0.45 // a word with other meanings: the German "Adresse"
	aroundName = 0.92 // words that say nothing are around it
	secondName = 0.25 // subtracted if it is a second one of its kind
	secondMost = 0.65 // a weaker name may mean other things; "Other Phone" is just above it
)

// name is what the words of a header say.
type name struct {
	words   []string
	signs   []sign
	foreign bool // it is about somebody other than the lead
}

// readName looks up a header: as written, else what is before a parenthesis, else a name inside it, as in a question.
func readName(header string) name {
	d, n := known(), name{words: words(header)}
	n.foreign = d.any("foreign", n.words)
	if n.signs = d.headers[strings.Join(n.words, "")]; n.signs == nil {
		outside, _, _ := strings.Cut(header, "(")
		n.signs = d.headers[joined(outside)]
	}
	if n.signs == nil && !n.foreign {
		n.signs = d.inside(n.words)
	}
	return n
}

// known reports whether the dictionary knows the header, even if only as useless.
func (n name) known() bool { return n.signs != nil }

func (n name) strength(parts ...part) float64 {
	best := 0.0
	for _, s := range n.signs {
		if slices.Contains(parts, s.part) {
			best = max(best, s.strength)
		}
	}
	return best
}

// any reports whether one of the words is in a section.
func (d *dictionary) any(section part, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return d.has(section, w) })
}

func (n name) isSecret() bool {
	return known().has("secret", strings.Join(n.words, "")) || known().any("secret word", n.words)
}

// inside returns the signs of the longest name in a header whose other words say nothing about the lead.
func (d *dictionary) inside(words []string) (signs []sign) {
	const longest = 6 // words of a phrase
	for length := min(len(words), longest); length > 0 && signs == nil; length-- {
		for from := range len(words) - length + 1 {
			around := slices.Concat(words[:from], words[from+length:])
			strength := d.strengthAmong(around)
			own := !slices.ContainsFunc(around, func(w string) bool { return !d.has("own", w) })
			address := d.any("address", around)
			for _, s := range d.headers[strings.Join(words[from:from+length], "")] {
				s.strength *= strength
				if strength > 0 && !s.whole && (own || !slices.Contains(d.Identifiers, s.part)) &&
					(!address || slices.Contains(d.Places, s.part)) {
					signs = append(signs, s)
				}
			}
		}
	}
	return signs
}

// strengthAmong says how sure a name still is among other words. Beside words for a second one ("Other Phone"), it is
// less sure. Beside a word that is neither that nor noise, it is 0.
func (d *dictionary) strengthAmong(around []string) float64 {
	strength := aroundName
	for _, w := range around {
		switch {
		case w == "1" || w == "0" || d.has("noise", w):
		case d.has("second", w) || strings.Trim(w, "0123456789") == "":
			strength -= secondName
		default:
			return 0
		}
	}
	return strength
}
