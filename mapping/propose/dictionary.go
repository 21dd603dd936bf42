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
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/spelling"
)

//go:embed dictionary.yaml
var dictionaryText []byte

// part is what a column plays in a lead: a section of headers in dictionary.yaml.
type part string

// rule says which column plays a part and where it goes in the lead. dictionary.yaml has all of them, and
// explains them.
type rule struct {
	Part                   part
	Key, Apply, Format     string // of the content; without key it is joined to another part's
	Place, Marked, Varied  bool
	Like, Some             string
	Unlike, Not            []string
	Weight, Least, Longest float64
	Sure, All              float64
}

// sign is what a phrase says: the part that a header names, the status that a word stands for, or the section that it is
// in; and how surely.
type sign struct {
	part     part
	strength float64 // 1 at most
	whole    bool    // only when it is the whole text
	doubt    bool
}

// dictionary is dictionary.yaml, ready to be asked.
type dictionary struct {
	dictionaryFile
	headers, statuses, words map[string][]sign // by joined words; those for nothing as they are written
	longest                  int               // words of a phrase
	streetEnds               []string
	forms                    map[string][]*regexp.Regexp
	mark                     *regexp.Regexp // before a number
}

// dictionaryFile is dictionary.yaml as it is written.
type dictionaryFile struct {
	Headers, Statuses, Around, Values map[string]map[string]string // phrases by section and language
	Forms                             map[string][]string
	Parts                             []rule
	Dates                             struct{ Days, Times, Languages []string }
}

// known is the dictionary, made when it is first needed: most commands do not.
var known = sync.OnceValue(func() *dictionary {
	d := &dictionary{forms: map[string][]*regexp.Regexp{}}
	if err := yaml.Unmarshal(dictionaryText, &d.dictionaryFile); err != nil {
		panic(err) // it is part of the program
	}
	d.mark = regexp.MustCompile(`^[a-z]{1,2}:([+0-9].*)$`)
	for kind, forms := range d.Forms {
		for _, form := range forms {
			d.forms[kind] = append(d.forms[kind], regexp.MustCompile(form))
		}
	}
	d.headers, d.statuses, d.words = d.phrases(d.Headers), d.phrases(d.Statuses), d.phrases(d.Around, d.Values)
	return d
})

// phrases are what the phrases of some tables say.
func (d *dictionary) phrases(tables ...map[string]map[string]string) map[string][]sign {
	all := map[string][]sign{}
	for _, table := range tables {
		eachPhrase(table, func(section, phrase string, list []string, s sign) {
			word := strings.Join(list, "")
			switch section {
			case "null":
				word = phrase
			case "street end":
				d.streetEnds = append(d.streetEnds, word)
			}
			if word != "" && !slices.Contains(all[word], s) {
				all[word] = append(all[word], s)
				d.longest = max(d.longest, len(list))
			}
		})
	}
	return all
}

// eachPhrase gives all phrases of the sections with their words, spelled in each way, and with how much they say.
func eachPhrase(table map[string]map[string]string, f func(section, phrase string, words []string, s sign)) {
	for _, section := range slices.Sorted(maps.Keys(table)) {
		for _, phrases := range table[section] {
			for phrase := range strings.SplitSeq(phrases, ",") {
				phrase = strings.TrimSpace(phrase)
				text, whole := strings.CutPrefix(strings.TrimSuffix(phrase, "?"), "=")
				s := sign{part: part(section), strength: 1, whole: whole, doubt: strings.HasSuffix(phrase, "?")}
				if strings.HasPrefix(text, "~") {
					s.strength = weakName
				}
				f(section, phrase, words(text), s)
				f(section, phrase, words(spelledOut.Replace(norm.NFC.String(text))), s)
			}
		}
	}
}

func (d *dictionary) has(section part, words string) bool {
	return slices.ContainsFunc(d.words[words], func(s sign) bool { return s.part == section })
}

func (d *dictionary) isStreet(word string) bool {
	return d.has("street", word) || slices.ContainsFunc(d.streetEnds, func(end string) bool {
		return len(word) > len(end)+2 && strings.HasSuffix(word, end)
	})
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
	// wordForm is of digits, of capitals and the letters behind them, and of letters without.
	wordForm = spelling.Form(`\p{Nd}+|\p{Lu}+(?:[^\P{L}\p{Lu}]|\p{Mn})*|(?:[^\P{L}\p{Lu}]|\p{Mn})+`)

	// lastCapital is the I of "CRMId", which begins a word.
	lastCapital = spelling.Form(`(\p{Lu})(\p{Lu}\p{Ll})`)
)

// joined is how names are compared: "E-Mail", "e_mail" and "eMail" are one.
func joined(s string) string { return strings.Join(words(s), "") }

// Known is how many of the columns have names that the dictionary knows.
func Known(columns []string) (n int) {
	for _, header := range columns {
		if readName(header).known {
			n++
		}
	}
	return n
}

// FooterWord is the word or words with which a text begins that are behind tables and not
// in them, as "Grand total", or "".
func FooterWord(text string) (found string) {
	text = text[:min(len(text), maxHeader)]
	for _, at := range wordForm().FindAllStringIndex(text, -1) {
		if known().has("footer", joined(text[:at[1]])) {
			found = text[:at[1]]
		}
	}
	return found
}

// origin is the lead's type, which a person decides: a guess from the file's name.
type origin struct{ Key, Label, Why string }

func (t *table) originOf() origin {
	if list := fileWords(t.In.File); len(list) > 0 {
		label := strings.Join(list, " ") + " lead"
		return origin{strings.Join(list, "-") + "-lead", strings.ToUpper(label[:1]) + label[1:], "from the file's name"}
	}
	return origin{"imported-lead", "Imported lead", "the file does not say where the leads come from"}
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
