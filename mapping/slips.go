package mapping

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/spelling"
	"leadferry/mapping/expression"
	"leadferry/mapping/texts"
)

// slip is what people write in a line that YAML takes for something else.
type slip struct {
	form func() *regexp.Regexp
	text string // "": what the reader says
	hint func(found []string) string
}

func says(hint string) func([]string) string { return func([]string) string { return hint } }

// slips are looked for in this order.
var slips = [...]slip{
	{spelling.Form(`^ *\t`), "a tab stands at the beginning of the line", says("write spaces at the beginning of lines")},
	{spelling.Form(`(?:^|[{, ])\* *:`), "a star without quotes means something else in it", says(`write the star in quotes: "*": rest`)},
	{spelling.Form(`[:,\[] *(/[^'"]*[{\[:#][^'"]*/)`), "a regular expression without quotes means something else in it", func(found []string) string {
		return "write it in quotes: '" + texts.Shortened(found[1], texts.MaxQuoted) + "'"
	}},
	{spelling.Form(`^ *(?:- )?([\w*.-]+): +("[^"]*"|'[^']*')( +[^#\s].*)$`), "something stands behind the quote that closes a text", onePairHint},
	{spelling.Form(`[:,\[] *\{[^{}:,'"]*\}`), "", says(quoteHint)},
	{spelling.Form(`^ *(?:- )?([\w*.-]+): +([^'"{\[|>].*: .*)$`), "a colon and a blank stand in a text without quotes", func(found []string) string {
		return "write " + found[1] + `: "` + texts.Shortened(strings.TrimSpace(found[2]), texts.MaxQuoted) + `"`
	}},
	{noBlank, "", blankHint},
}

var (
	noBlank   = spelling.Form(`^ *(?:- )?([\w*.-]+):(["'{\[].*)$`)
	openQuote = spelling.Form(`^ *(?:- )?[\w*. -]+: *(?:"[^"]*|'[^']*)$`)
)

// syntax takes down the error of the YAML reader in words, and where it is: at the mark, unless what is wrong began
// elsewhere.
func (p *parser) syntax(err error) {
	le, known := errors.AsType[*yaml.LoadError](err)
	if !known {
		p.failAt(position{1, 1}, "", "the mapping file is not YAML: %v", err)
		return
	}
	where := position{max(1, le.Mark.Line), max(1, le.Mark.Column)}
	text, hint := le.Message, ""
	if le.ContextMsg != "" {
		text += " " + le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark.Line != le.Mark.Line {
			text += " that begins on line " + strconv.Itoa(le.ContextMark.Line)
		}
	}
	above := strings.TrimRight(p.line(where.line-1), "\r")
	switch _, cut := cutShort(p.line(le.ContextMark.Line)); {
	case strings.Contains(le.ContextMsg, "quoted scalar"):
		if le.ContextMark.Line > 0 {
			where = position{le.ContextMark.Line, max(1, le.ContextMark.Column)}
		}
		text, hint = "a quote opens here that is not closed, or a backslash stands in it that means nothing", "close the quote; in 'single quotes' a backslash is itself"
	case openQuote().MatchString(above):
		where = position{where.line - 1, 1 + utf8.RuneCountInString(above[:strings.IndexAny(above, "\"'")])}
		text, hint = "a quote opens here that is not closed on its line", "close the quote"
	case cut > 0:
		where = position{le.ContextMark.Line, cut}
		text, hint = "a # behind a blank begins a comment", commentHint
	default:
		text, hint = p.slipAt(where, le, text)
	}
	p.failAt(where, hint, "the mapping file is not YAML: %s", text)
}

// slipAt says what may have been meant at a place, or else what the reader says.
func (p *parser) slipAt(where position, le *yaml.LoadError, said string) (text, hint string) {
	for _, s := range slips {
		if found := s.form().FindStringSubmatch(p.line(where.line)); found != nil {
			return cmp.Or(s.text, said), s.hint(found)
		}
	}
	first := p.characterAt(where)
	switch found := noBlank().FindStringSubmatch(p.line(le.ContextMark.Line)); {
	case found != nil:
		return said, blankHint(found)
	case first == "@" || first == "%" || first == "`":
		return "a text that begins with " + first + " needs quotes", `write "` + first + `…", or "{@key}" for the row's key`
	case strings.Contains(le.Message, "max depth"):
		return said, "objects and lists stand in one another more deeply than any mapping needs"
	case strings.Contains(le.Message, "mapping values are not allowed"):
		return said, "keys that belong together begin in the same column: look at the line above, too"
	}
	return said, "look at this line and the one above: quotes, brackets, colons, and how far in they begin"
}

const commentHint = "put quotes around the text if it goes on there; a blank behind the # says that it is a comment"

// cutShort is the body of a line and the column of the comment behind it, where that may be meant as text, for no blank
// follows its sign: item #5. Column 0 says that there is none.
func cutShort(line string) (body string, column int) {
	body, comment := commentOf(line)
	if sign, _ := utf8.DecodeRuneInString(comment); body == "" || !unicode.IsLetter(sign) && !unicode.IsDigit(sign) {
		return "", 0
	}
	return body, 1 + utf8.RuneCountInString(line[:strings.LastIndex(line, "#"+comment)])
}

// endedByComment warns of a text without quotes that may go on in the comment behind it.
func (p *parser) endedByComment(n node) {
	const longest = 1 << 10 // bytes of a line that is looked at
	line := p.line(n.Line)
	if !n.isPlain() || len(line) > longest {
		return
	}
	if body, column := cutShort(line); column > 0 && strings.HasSuffix(body, n.Value) {
		p.warn(position{n.Line, column}, n.path+" ends before a # behind a blank, which begins a comment", commentHint)
	}
}

// blankHint is for what noBlank has found.
func blankHint(found []string) string {
	return "write a blank behind the colon: " + found[1] + ": " + texts.Shortened(found[2], texts.MaxQuoted)
}

// onePairHint is what to write for a key whose text stands partly in quotes: found are key, quoted part and rest.
func onePairHint(found []string) string {
	key, quoted, rest := found[1], found[2], found[3]
	if key == "skip_if" || key == "expr" {
		return "write " + key + ": '" + expression.Naming(quoted[1:len(quoted)-1]) + texts.Shortened(strings.ReplaceAll(rest, "'", `"`), texts.MaxQuoted) + "'"
	}
	return "put all of it into one pair of quotes: " + key + `: "{first} {last}"`
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
			return "did you mean " + texts.Quote(name) + "?"
		}
	}
	if place := elsewhere[key]; place != "" {
		return key + " stands " + place
	}
	return ""
}
