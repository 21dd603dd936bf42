package mapping

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/lazyregexp"
	"leadferry/mapping/expression"
	"leadferry/mapping/texts"
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
		return where, notYAML + "a regular expression without quotes means something else in it", "write it in quotes: '" + texts.Shortened(pattern, texts.MaxQuoted) + "'"
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
		return where, notYAML + "a colon and a blank stand in a text without quotes", "write " + found[1] + `: "` + texts.Shortened(strings.TrimSpace(found[2]), texts.MaxQuoted) + `"`
	case noBlank().MatchString(begun), noBlank().MatchString(line):
		found := noBlank().FindStringSubmatch(cmp.Or(begun, line))
		if found == nil {
			found = noBlank().FindStringSubmatch(line)
		}
		return where, text, "write a blank behind the colon: " + found[1] + ": " + texts.Shortened(found[2], texts.MaxQuoted)
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
		return "write " + key + ": '" + expression.Naming(quoted[1:len(quoted)-1]) + texts.Shortened(strings.ReplaceAll(rest, "'", `"`), texts.MaxQuoted) + "'"
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
			return "did you mean " + texts.Quote(name) + "?"
		}
	}
	if place := elsewhere[key]; place != "" {
		return key + " stands " + place
	}
	return ""
}
