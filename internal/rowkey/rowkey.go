// Package rowkey defines the key of a row: its form with a namespace, the characters at its ends that do not count, and
// its fold. Keys that a person, a spreadsheet or another program would confuse have the same fold. mapping makes keys
// with it, the importer orders rows with it, and the checkpoint finds look-alikes. It also says what a lead ID can be.
// All of it is pure. A change needs a higher checkpoint.Format, because checkpoints hold keys and folds.
package rowkey

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"leadferry/internal/spelling"
)

// MaxNamespace is the longest namespace, Longest the longest key and the longest ExternalID, in bytes.
const MaxNamespace, Longest = 64, 1024

const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// IsNamespace reports whether s can be a namespace: 1 to 64 ASCII letters, digits, dots, underscores and hyphens.
func IsNamespace(s string) bool {
	return s != "" && len(s) <= MaxNamespace && strings.Trim(s, plainLetters) == ""
}

// IsLeadID reports whether s can be an ID of the service in a path: 1 to 128 of these characters, not only dots.
func IsLeadID(s string) bool {
	return len(s) <= 128 && strings.Trim(s, ".") != "" && strings.Trim(s, plainLetters) == ""
}

// separator is between a namespace and a key. No key holds it: control characters in a key make the row invalid.
const separator = "\x1f"

// Effective returns the key that the checkpoint knows a row by: with its namespace, if it has one. [Split] undoes it.
func Effective(namespace, key string) string {
	if namespace == "" {
		return key
	}
	return namespace + separator + key
}

// Split returns the namespace of an effective key, or "", and the key, both as people see them.
func Split(effective string) (namespace, key string) {
	if namespace, key, found := strings.Cut(effective, separator); found {
		return namespace, key
	}
	return "", effective
}

// Own returns the key without its namespace, as people see it.
func Own(effective string) string {
	_, key := Split(effective)
	return key
}

// Trim removes white space and invisible characters at the ends of a key, such as zero-width spaces of web pages.
func Trim(key string) string {
	if n := len(key); n > 0 && !isOdd(rune(key[0])) && !isOdd(rune(key[n-1])) {
		return key
	}
	return strings.TrimFunc(key, func(r rune) bool { return Shown(r) < 0 })
}

// Fold returns the fold of an effective key: all keys of its namespace that look alike share it. A fold has no blanks
// and invisible characters, one Unicode form (NFKC), no leading zeros if it is all digits, lower case if it holds an @
// or is a UUID, and nothing that spreadsheets and CRMs add, see [plain]. Most keys, and all folds, are their own fold.
func Fold(key string) string {
	namespace, own := Split(key)
	folded := fold(own)
	if folded == own {
		return key
	}
	for range 8 { // a fold may fold again; once is nearly always enough
		folded = fold(folded)
	}
	return Effective(namespace, folded)
}

func fold(s string) string {
	if strings.ContainsFunc(s, isOdd) {
		s = norm.NFKC.String(strings.Map(Shown, s))
	}
	switch s = plain(s); {
	case isDigits(s):
		return cmp.Or(strings.TrimLeft(s, "0"), "0")
	case strings.Contains(s, "@"), IsUUID(s):
		return strings.ToLower(s)
	}
	return s
}

const digits = "0123456789"

func isDigits(s string) bool { return s != "" && !strings.ContainsFunc(s, isNoDigit) }

func isNoDigit(r rune) bool { return r < '0' || r > '9' }

// isOdd reports whether a character is a blank, a control character, or beyond ASCII.
func isOdd(r rune) bool { return r <= ' ' || r >= 0x7F }

// plain removes what programs add to a key: quotes, if quote: none keeps them as text; the formula ="00012" and the
// apostrophe that stop a spreadsheet from calculating; decimals of a number that are all 0; separators of thousands
// (100,001); the plus of a phone number; the braces of a GUID; and the three letters that Salesforce adds to IDs.
func plain(s string) string {
	s = strings.TrimPrefix(s, "'")
	if text, found := strings.CutPrefix(strings.TrimPrefix(s, "="), `"`); found && strings.HasSuffix(text, `"`) {
		s = strings.TrimSuffix(text, `"`)
	}
	if text, found := strings.CutPrefix(s, "{"); found && strings.HasSuffix(text, "}") && IsUUID(text[:len(text)-1]) {
		return text[:len(text)-1]
	}
	if text, found := strings.CutPrefix(s, "+"); found && strings.Trim(text, digits+`'="{}+.,`) == "" {
		s = text
	}
	if at := strings.LastIndexAny(s, ".,"); at > 0 && len(s)-at > 1 && strings.Trim(s[at+1:], "0") == "" {
		mayBeThousands := len(s)-at == 4 && at <= 3 // 1.000
		if !mayBeThousands && isDigits(s[:at]) || len(s)-at != 4 && grouped().MatchString(s[:at]) {
			s = s[:at]
		}
	}
	if n := len(s); n > 4 && isDigits(s[:1]) && isDigits(s[n-3:]) && !isDigits(s) && grouped().MatchString(s) {
		return ungrouped.Replace(s)
	}
	if len(s) == 18 && s[15:] == salesforceSuffix(s[:15]) {
		return s[:15]
	}
	return s
}

// grouped matches a number with a comma, a point or an apostrophe between its thousands, and Indian lakhs.
var grouped = spelling.Form(`^[0-9]{1,3}(?:(?:,[0-9]{2,3})*,[0-9]{3}|(?:\.[0-9]{3})+|(?:['’][0-9]{3})+)$`)

var ungrouped = strings.NewReplacer(",", "", ".", "", "'", "", "’", "")

// salesforceSuffix returns the three letters that follow an ID of 15 characters, or "" for any other text. They say
// which letters of the ID are capitals, so that IDs differ even where case is lost.
func salesforceSuffix(id string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	var bits [3]byte // of five letters each
	for i, c := range []byte(id) {
		switch {
		case 'A' <= c && c <= 'Z':
			bits[i/5] |= 1 << (i % 5)
		case (c < 'a' || c > 'z') && (c < '0' || c > '9'):
			return ""
		}
	}
	return string([]byte{letters[bits[0]], letters[bits[1]], letters[bits[2]]})
}

// cut matches a number that a spreadsheet shortened: with a point or a comma or, from twelve digits on, without. It
// also matches the errors of spreadsheets, and the signs that they show if a column is too narrow.
var cut = spelling.Form(`^(?:[0-9](?:[.,][0-9]+E\+[0-9]+|E\+(?:1[1-9]|[2-9][0-9]))|` +
	`#(?:N/[ADV]|NV|[A-Z]+/?0?[!?]|##+))$`)

// CutText says what is wrong with a key that IsCut matches.
const CutText = "was cut by a spreadsheet (as in 1.23457E+11), or is its error (#N/A)"

// IsCut reports whether a key is a number that a spreadsheet cut (1.23457E+11), or an error (#N/A): many rows share it.
func IsCut(key string) bool {
	return (strings.Contains(key, "E+") || strings.HasPrefix(key, "#")) && cut().MatchString(key)
}

// Shown returns -1 for white space and invisible characters, so that [strings.Map] drops them.
func Shown(r rune) rune {
	if unicode.IsSpace(r) || isInvisible(r) {
		return -1
	}
	return r
}

// IsUUID reports whether s is a UUID of any version, in the text form of RFC 9562.
func IsUUID(s string) bool { _, is := UUID(s); return is }

// UUID returns the bytes of a UUID.
func UUID(s string) (id [16]byte, is bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	return id, err == nil
}

// isInvisible reports whether a character shows nothing and takes no room: Unicode says that programs ignore it if they
// cannot show it (Default_Ignorable_Code_Point).
func isInvisible(r rune) bool {
	at, found := slices.BinarySearch(invisible[:], r)
	return found || at%2 == 1 // after the first of a range
}

// invisible has the first and last of each range. Unlike the library's tables it does not grow with Unicode.
var invisible = [...]rune{
	0x00AD, 0x00AD, 0x034F, 0x034F, 0x061C, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200F,
	0x202A, 0x202E, 0x2060, 0x206F, 0x3164, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF, 0xFFA0, 0xFFA0, 0xFFF0, 0xFFF8,
	0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0000, 0xE0FFF,
}
