package mapping

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/lazyregexp"
)

// What people write that YAML takes for something else, line by line.
var (
	tabIndent       = lazyregexp.New(`^ *\t`)
	barePlaceholder = lazyregexp.New(`[:,\[] *\{[^{}:,'"]*\}`)
	barePattern     = lazyregexp.New(`[:,\[] *(/[^'"]*[{\[:#][^'"]*/)`)
	colonInText     = lazyregexp.New(`^ *(?:- )?([\w*.-]+): +([^'"{\[|>].*: .*)$`)
	noBlank         = lazyregexp.New(`^ *(?:- )?([\w*.-]+):(["'{\[].*)$`)
	bareStar        = lazyregexp.New(`(?:^|[{, ])\* *:`)
	openQuote       = lazyregexp.New(`^ *(?:- )?[\w*. -]+: *(?:"[^"]*|'[^']*)$`)
	behindQuote     = lazyregexp.New(`^ *(?:- )?([\w*.-]+): +("[^"]*"|'[^']*')( +[^#\s].*)$`)
)

const notYAML = "the mapping file is not YAML: "

// syntaxFault is the YAML reader's error in words, and where it is: at the mark, unless
// what is wrong began elsewhere.
func (p *parser) syntaxFault(le *yaml.LoadError) (where position, text, hint string) {
	where = position{max(1, le.Mark.Line), max(1, le.Mark.Column)}
	text = notYAML + le.Message
	if le.ContextMsg != "" {
		text += " " + le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark.Line != le.Mark.Line {
			text += " that begins on line " + strconv.Itoa(le.ContextMark.Line)
		}
	}
	line, begun, above := p.line(where.line), p.line(le.ContextMark.Line), strings.TrimRight(p.line(where.line-1), "\r")
	switch first := p.characterAt(where); {
	case tabIndent().MatchString(line):
		return where, notYAML + "a tab stands at the beginning of the line", "write spaces at the beginning of lines"
	case bareStar().MatchString(line):
		return where, notYAML + "a star without quotes means something else in it", `write the star in quotes: "*": rest`
	case barePattern().MatchString(line):
		pattern := barePattern().FindStringSubmatch(line)[1]
		return where, notYAML + "a regular expression without quotes means something else in it", "write it in quotes: '" + shortened(pattern, maxQuoted) + "'"
	case strings.Contains(le.ContextMsg, "quoted scalar"):
		return p.unclosedQuote(le)
	case openQuote().MatchString(above):
		where = position{where.line - 1, 1 + utf8.RuneCountInString(above[:strings.IndexAny(above, "\"'")])}
		return where, notYAML + "a quote opens here that is not closed on its line", "close the quote"
	case behindQuote().MatchString(line):
		found := behindQuote().FindStringSubmatch(line)
		return where, notYAML + "something stands behind the quote that closes a text", onePairHint(found[1], found[2], found[3])
	case barePlaceholder().MatchString(line):
		return where, text, quoteHint
	case colonInText().MatchString(line):
		found := colonInText().FindStringSubmatch(line)
		return where, notYAML + "a colon and a blank stand in a text without quotes", "write " + found[1] + `: "` + shortened(strings.TrimSpace(found[2]), maxQuoted) + `"`
	case noBlank().MatchString(begun), noBlank().MatchString(line):
		found := noBlank().FindStringSubmatch(cmp.Or(begun, line))
		if found == nil {
			found = noBlank().FindStringSubmatch(line)
		}
		return where, text, "write a blank behind the colon: " + found[1] + ": " + shortened(found[2], maxQuoted)
	case first == "@" || first == "%" || first == "`":
		return where, notYAML + "a text that begins with " + first + " needs quotes", `write "` + first + `…", or "{@key}" for the row's key`
	case strings.Contains(le.Message, "max depth"):
		return where, text, "objects and lists stand in one another more deeply than any mapping needs"
	case strings.Contains(le.Message, "mapping values are not allowed"):
		hint = "keys that belong together begin in the same column: look at the line above, too"
	}
	return where, text, cmp.Or(hint, "look at this line and the one above: quotes, brackets, colons, and how far in they begin")
}

// onePairHint is what to write for a key whose text stands partly in quotes.
func onePairHint(key, quoted, rest string) string {
	if key == "skip_if" || key == "expr" {
		return "write " + key + ": '" + columnIn(quoted[1:len(quoted)-1]) + shortened(strings.ReplaceAll(rest, "'", `"`), maxQuoted) + "'"
	}
	return "put all of it into one pair of quotes: " + key + `: "{first} {last}"`
}

// unclosedQuote is the fault of a quote that nothing closes, at the place where it was opened.
func (p *parser) unclosedQuote(le *yaml.LoadError) (where position, text, hint string) {
	where = position{max(1, le.Mark.Line), max(1, le.Mark.Column)}
	if le.ContextMark.Line > 0 {
		where = position{le.ContextMark.Line, max(1, le.ContextMark.Column)}
	}
	return where, notYAML + "a quote opens here that is not closed, or a backslash stands in it that means nothing", `close the quote; in 'single quotes' a backslash is itself`
}

// characterAt is the character of the file at a place; "" where there is none.
func (p *parser) characterAt(at position) string {
	characters := []rune(p.line(at.line))
	if at.column > len(characters) {
		return ""
	}
	return string(characters[at.column-1])
}

// elsewhere says where keys stand that people put in the wrong place.
var elsewhere = map[string]string{
	"content": "under lead", "status": "under lead", "type_key": "under lead", "type_label": "under lead", "external_id": "under lead",
	"organization": "in an entry of assign", "locator": "in an entry of assign", "search_text": "in an entry of assign beside its locator",
	"postal_code": "in an entry of assign beside its locator", "delimiter": "under source", "encoding": "under source", "header": "under source",
	"columns": "under source", "null": "under source", "sheet": "under source", "skip_rows": "under source", "skip_footer": "under source",
	"map": `beside from: {from: "{column}", map: {…}}`, "apply": `beside from: {from: "{column}", apply: [lower]}`,
	"format": `beside from: {from: "{column}", format: email}`, "required": `beside from: {from: "{column}", required: true}`,
	"default": `beside from: {from: "{column}", default: …}`, "key": "at the beginning of a line", "assign": "at the beginning of a line",
	"conflict": "under lead.status", "pull": "under lead.status",
}

// meant are keys as other programs call them, and what they are called here; the first one counts
// that is known where the key stands.
var meant = map[string][]string{
	"separator": {"sep", "delimiter"}, "sep": {"delimiter"}, "glue": {"sep"}, "column": {"from", "key"}, "field": {"from", "key"}, "template": {"from"}, "text": {"from"},
	"expression": {"expr"}, "formula": {"expr"}, "script": {"expr"}, "coalesce": {"first"}, "any": {"first"}, "concat": {"join"}, "mapping": {"map"}, "lookup": {"map"},
	"table": {"map"}, "values": {"map"}, "transform": {"apply"}, "steps": {"apply"}, "functions": {"apply"}, "type": {"as", "format"}, "regex": {"format"}, "pattern": {"format"},
	"validate": {"format"}, "fallback": {"default"}, "otherwise": {"else"}, "optional": {"required"}, "mandatory": {"required"}, "skip": {"skip_rows", "skip_if"},
	"skip_lines": {"skip_rows"}, "header_row": {"skip_rows"}, "charset": {"encoding"}, "na": {"null"}, "filter": {"skip_if"}, "where": {"skip_if"}, "fields": {"content"},
	"data": {"content"}, "attributes": {"content"}, "id": {"key"}, "path": {"file"}, "columns": {"key"}, "ignore_case": {"fold"},
}

// misplaced is the hint for a key that is known elsewhere, or here by another name, or "".
func misplaced(key string, known []string) string {
	for _, name := range meant[strings.ToLower(key)] {
		if slices.Contains(known, name) {
			return "did you mean " + quote(name) + "?"
		}
	}
	if place := elsewhere[key]; place != "" {
		return key + " stands " + place
	}
	return ""
}

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

// expressionHint says what may have been meant by an expression that cannot be read.
func expressionHint(s, text string) string {
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
	case strings.Contains(text, "unrecognized character") && strings.ContainsAny(s, curlyQuotes):
		return `write straight quotes: "text"`
	case strings.Contains(text, "not terminated"):
		return `close the quote: "text"`
	case braced().MatchString(s):
		column := braced().FindStringSubmatch(s)[1]
		return "columns have no braces in an expression: " + columnIn(column)
	case otherwise[token] != "":
		return otherwise[token]
	case name != "" && strings.HasPrefix(text, "unexpected"):
		return "write " + columnIn(name) + " for a column whose name is no single word"
	case strings.Contains(text, "operation: - (") && hyphened().MatchString(s):
		return "write " + columnIn(hyphened().FindString(s)) + " for the column, or int(a) - int(b) for a difference"
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

// columnIn is a column as expressions name it.
func columnIn(name string) string {
	if isIdentifier().MatchString(name) {
		return name
	}
	return `$env["` + shortened(name, maxQuoted) + `"]`
}

var isIdentifier = lazyregexp.New(`^[A-Za-z_]\w*$`)

// missingHint says what may have been meant by a column of an expression that an input
// does not have.
func missingHint(name string) string {
	switch {
	case slices.Contains([]string{"null", "nil", "none", "undefined", "empty"}, strings.ToLower(name)):
		return `a cell is a text and never missing: ` + name + ` is written ""`
	case utf8.RuneCountInString(name) <= maxQuoted && isIdentifier().MatchString(name):
		return `if the text is meant, it needs quotes: "` + name + `"`
	}
	return ""
}
