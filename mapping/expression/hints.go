package expression

import (
	"slices"
	"strings"
	"unicode/utf8"

	"leadferry/internal/lazyregexp"
	"leadferry/mapping/texts"
)

// What people write in expressions as other languages have it.
var (
	braced       = lazyregexp.New(`\{ *([^{}"':]+?) *\}`)
	severalWords = lazyregexp.New(`(?:^|[^\w"'])([A-Za-z]\w*(?: +[A-Za-z]\w*)+) *(?:[=!<>+)]|$)`)
	hyphened     = lazyregexp.New(`[A-Za-z]\w*(?:-[A-Za-z]\w*)+`)
	operators    = lazyregexp.New(` (?:and|or|not|in|matches|contains|startsWith|endsWith|if|else|let) `)
)

// otherwise are functions and operators of other languages, and how this one says it.
var otherwise = map[string]string{
	"=": `== compares: column == "yes"`, "<": "!= asks whether two differ", "&": `and asks whether both are so; + puts texts together: first + " " + last`,
	"then": `write: stage == "Won" ? "yes" : "no"`, "concat": `+ puts texts together: first + " " + last`, "substring": "write column[0:3] for the first three characters",
	"substr": "write column[0:3] for the first three characters", "contains": `write: column contains "text"`, "startsWith": `write: column startsWith "text"`,
	"endsWith": `write: column endsWith "text"`, "ifnull": "write coalesce(a, b)", "nvl": "write coalesce(a, b)", "isnull": `write: column == ""`, "length": "write len(column)",
	"if": `write: stage == "Won" ? "yes" : "no"`, "toUpper": "write upper(column)", "toLower": "write lower(column)", "toInt": "write int(column)", "parseInt": "write int(column)",
	"parseFloat": "write float(column)", "toString": "write string(number)", "strip": "write trim(column)", "regex": `write: column matches "^[0-9]+$"`,
	"is": `== compares: column == "yes"`, "eq": `== compares: column == "yes"`, "ne": "!= asks whether two differ", "like": `write: column matches "^W"`,
	"AND": "write and in small letters", "OR": "write or in small letters", "NOT": "write not in small letters", "IN": `write: column in ["one", "two"]`,
	"isblank": `write: column == ""`, "isempty": `write: column == ""`, "~": `write: column matches "^[0-9]+$"`,
	"now": "there is no clock in an expression: the same row gives the same lead at all times", "today": "there is no clock in an expression: the same row gives the same lead at all times",
}

// hintFor says what may have been meant by an expression that cannot be read.
func hintFor(s, text string) string {
	_, token, _ := strings.Cut(text, `unexpected "`)
	token = strings.TrimSuffix(token, `"`)
	switch {
	case token == ">" && strings.Contains(s, "<>"):
		token = "<"
	case token == "=" && strings.Contains(s, "=~"):
		token = "~"
	}
	name := ""
	if found := severalWords().FindStringSubmatch(s); found != nil && !operators().MatchString(" "+found[1]+" ") {
		name = found[1]
	}
	switch {
	case strings.Contains(text, "unrecognized character") && strings.ContainsAny(s, texts.CurlyQuotes):
		return `write straight quotes: "text"`
	case strings.Contains(text, "not terminated"):
		return `close the quote: "text"`
	case braced().MatchString(s):
		column := braced().FindStringSubmatch(s)[1]
		return "columns have no braces in an expression: " + Naming(column)
	case otherwise[token] != "":
		return otherwise[token]
	case name != "" && strings.HasPrefix(text, "unexpected"):
		return "write " + Naming(name) + " for a column whose name is no single word"
	case strings.Contains(text, "operation: - (") && hyphened().MatchString(s):
		return "write " + Naming(hyphened().FindString(s)) + " for the column, or int(a) - int(b) for a difference"
	case truth().MatchString(text):
		return emptyHint
	case strings.Contains(text, "type"):
		return cellsHint
	case strings.Contains(text, "ends where"):
		return "write what follows, or take the last operator out"
	case !strings.HasPrefix(text, "unexpected"):
		return ""
	}
	return `for example: stage == "Won" ? first + " " + last : coalesce(nick, "?")`
}

// Naming is a column as expressions name it.
func Naming(name string) string {
	if isIdentifier().MatchString(name) {
		return name
	}
	return `$env["` + texts.Shortened(name, texts.MaxQuoted) + `"]`
}

var isIdentifier = lazyregexp.New(`^[A-Za-z_]\w*$`)

// MissingHint says what may have been meant by a column of an expression that an input
// does not have.
func MissingHint(name string) string {
	switch {
	case slices.Contains([]string{"null", "nil", "none", "undefined", "empty"}, strings.ToLower(name)):
		return `a cell is a text and never missing: ` + name + ` is written ""`
	case utf8.RuneCountInString(name) <= texts.MaxQuoted && isIdentifier().MatchString(name):
		return `if the text is meant, it needs quotes: "` + name + `"`
	}
	return ""
}
