package propose

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

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
