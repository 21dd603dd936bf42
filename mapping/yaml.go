package mapping

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"leadferry/internal/lazyregexp"
	"leadferry/mapping/expression"
	"leadferry/mapping/texts"
)

const (
	maxBytes = 1 << 20 // of a mapping file
	maxDepth = 64      // of objects and lists in one another

	// maxCost bounds what the YAML reader makes of the file, in units of about 300 bytes: without it, 1 MiB of
	// brackets takes it 600 MiB (faults 104). A table of 40,000 lines stays below it.
	maxCost = 180_000
)

// document reads the one document of data as nodes: decoding would turn 01234
// into a number. It is false after an error.
func (p *parser) document(data []byte) (doc node, ok bool) {
	begin := position{1, 1}
	data = bytes.TrimLeft(data, "\uFEFF") // byte order marks, of which some programs add one
	switch bad := firstUnreadable(data); {
	case len(data) > maxBytes:
		p.failAt(begin, "", "the mapping file is longer than 1 MiB")
		return node{}, false
	case bad >= 0:
		p.failAt(positionOf(data, bad), "save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)", "the mapping file is not text in UTF-8")
		return node{}, false
	case readerCost(data) > maxCost:
		p.failAt(begin, "leave out what is not needed, or write one entry a line without brackets", "the mapping file has too many entries")
		return node{}, false
	}
	p.lines = bytes.Split(data, []byte("\n"))
	switch docs, err := load(data); {
	case err != nil:
		p.syntax(err)
	case len(docs) == 0:
		p.failAt(begin, "begin with version: 1", "the mapping file is empty")
	case len(docs) > 1:
		p.fail(node{Node: docs[1]}, "keep one document a file", "a second document begins here")
	default:
		p.plain(docs[0])
		return node{Node: docs[0]}, len(p.errs) == 0
	}
	return node{}, false
}

// load reads the first two documents of data: the second is read to be refused.
func load(data []byte) ([]*yaml.Node, error) {
	limit := yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
	loader, err := yaml.NewLoader(bytes.NewReader(data), limit)
	if err != nil {
		return nil, err
	}
	var docs []*yaml.Node
	for len(docs) < 2 {
		var doc yaml.Node
		if err := loader.Load(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, doc.Content[0])
	}
	return docs, nil
}

// readerCost is about what the YAML reader spends on data, measured by what it makes a token or a node of. What
// stands in brackets costs it more than lines do, and so does a second key on a line.
func readerCost(data []byte) int {
	cost, quotes, keyed := 0, 0, false
	for i, c := range data {
		switch c {
		case '\n', '\r':
			cost++
			keyed = false
		case '"', '\'':
			quotes++
		case '&', '*', '!', '#':
			cost += 3
		case '[', '{':
			cost += 8
		case ',':
			cost += 5
		case ':':
			cost += 3
			if keyed {
				cost += 3
			}
			keyed = true
		case '-', '?':
			if i+1 < len(data) && (data[i+1] <= ' ' || data[i+1] >= utf8.RuneSelf) {
				cost += 3
			}
		}
	}
	return cost + quotes + quotes/4
}

func firstUnreadable(data []byte) int {
	for i, r := range string(data) {
		bad := unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != 0x85
		if bad || r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return -1
}

func positionOf(data []byte, i int) position {
	before := data[:i]
	start := bytes.LastIndexByte(before, '\n') + 1
	return position{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])}
}

// line is a line of the file, counted from 1; "" where it has none.
func (p *parser) line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	return string(p.lines[n-1])
}

// plain takes down what YAML offers and a mapping file must not use, in n and
// below: a reader would have to know YAML well to see what is meant.
func (p *parser) plain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.fail(node{Node: n}, "write the value out", "aliases are not allowed")
	case n.Anchor != "":
		p.fail(node{Node: n}, "write the value out where it is used", "anchors are not allowed")
	case n.Style&yaml.TaggedStyle != 0:
		p.fail(node{Node: n}, "leave the tag out: every constant is text", "tags are not allowed")
	}
	for i, child := range n.Content {
		switch isKey := n.Kind == yaml.MappingNode && i%2 == 0; {
		case isKey && child.Kind != yaml.ScalarNode && child.Kind != yaml.AliasNode:
			p.fail(node{Node: child}, quoteHint, "a key must be a text")
		case isKey && child.ShortTag() == "!!merge":
			p.fail(node{Node: child}, "write the keys out", "merge keys are not allowed")
		}
		p.plain(child)
	}
}

// placeIn is the place of a character of the scalar n, counted from 0, where the file
// shows the scalar as it is; of others it is the place of n.
func (p *parser) placeIn(n node, i int) position {
	characters := []rune(n.Value)
	before := string(characters[:min(i, len(characters))])
	begin := strings.LastIndexByte(before, '\n') + 1 // of the line that holds it
	piece, _, _ := strings.Cut(n.Value[begin:], "\n")
	line := n.Line + strings.Count(before, "\n")
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line++ // the text begins below its indicator
	}
	column := p.columnOf(n, line, piece)
	if column == 0 {
		return n.at()
	}
	return position{line, column + utf8.RuneCountInString(before[begin:])}
}

// columnOf is where the line shows this piece of the scalar n, or 0.
func (p *parser) columnOf(n node, line int, piece string) int {
	const maxShownLine = 8 << 10 // bytes of a line in which a place is looked for
	shown := p.line(line)
	if piece == "" || len(shown) > maxShownLine {
		return 0
	}
	before := 0 // characters before the scalar
	if line == n.Line {
		before = n.Column - 1
	}
	characters := []rune(shown)
	before = min(before, len(characters))
	i := strings.Index(string(characters[before:]), piece)
	if i < 0 {
		return 0
	}
	return before + i + 1 // between stand a quote or blanks, of a byte each
}

// slip is what people write in a line that YAML takes for something else.
type slip struct {
	form func() *regexp.Regexp
	text string // "": what the reader says
	hint func(found []string) string
}

func says(hint string) func([]string) string { return func([]string) string { return hint } }

// slips are looked for in this order.
var slips = [...]slip{
	{lazyregexp.New(`^ *\t`), "a tab stands at the beginning of the line", says("write spaces at the beginning of lines")},
	{lazyregexp.New(`(?:^|[{, ])\* *:`), "a star without quotes means something else in it", says(`write the star in quotes: "*": rest`)},
	{lazyregexp.New(`[:,\[] *(/[^'"]*[{\[:#][^'"]*/)`), "a regular expression without quotes means something else in it", func(found []string) string {
		return "write it in quotes: '" + texts.Shortened(found[1], texts.MaxQuoted) + "'"
	}},
	{lazyregexp.New(`^ *(?:- )?([\w*.-]+): +("[^"]*"|'[^']*')( +[^#\s].*)$`), "something stands behind the quote that closes a text", onePairHint},
	{lazyregexp.New(`[:,\[] *\{[^{}:,'"]*\}`), "", says(quoteHint)},
	{lazyregexp.New(`^ *(?:- )?([\w*.-]+): +([^'"{\[|>].*: .*)$`), "a colon and a blank stand in a text without quotes", func(found []string) string {
		return "write " + found[1] + `: "` + texts.Shortened(strings.TrimSpace(found[2]), texts.MaxQuoted) + `"`
	}},
	{noBlank, "", blankHint},
}

var (
	noBlank   = lazyregexp.New(`^ *(?:- )?([\w*.-]+):(["'{\[].*)$`)
	openQuote = lazyregexp.New(`^ *(?:- )?[\w*. -]+: *(?:"[^"]*|'[^']*)$`)
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

// Guess is a guess of leadferry init that nobody has confirmed, by its place in the mapping
// file: Of is what the file says there, "" of all that follows, and Why what the guess rests on.
type Guess struct {
	Line, Column int
	Of, Why      string
}

// Unconfirmed are the lines of the mapping file whose comment begins with a question mark,
// "# ?", at most 100 of them. Whoever finds a guess right takes the mark away.
func (m *Mapping) Unconfirmed() []Guess { return m.unconfirmed }

const (
	mark        = "? "
	mostOfGuess = 60 // characters of a line that are told with its mark
)

// marks takes down the guesses that are marked. The comment of a line of its own may go
// on in the next ones, further in.
func (p *parser) marks() {
	for i := 0; i < len(p.lines) && len(p.m.unconfirmed) < maxErrors; i++ {
		body, comment := commentOf(p.line(i + 1))
		text, marked := strings.CutPrefix(comment, " "+mark)
		if !marked {
			continue
		}
		guess := Guess{Line: i + 1, Column: utf8.RuneCountInString(body) + 1}
		for body == "" {
			next, more := commentOf(p.line(i + 2))
			if next != "" || !strings.HasPrefix(more, "   ") {
				break
			}
			text, i = text+" "+strings.TrimSpace(more), i+1
		}
		if named, isAbove := strings.CutSuffix(text, ":"); isAbove && body == "" { // the line below is meant
			body, _ = commentOf(p.line(i + 2))
			text = named
		}
		guess.Of, guess.Why = texts.Shortened(strings.TrimSpace(body), mostOfGuess), strings.TrimSpace(text)
		p.m.unconfirmed = append(p.m.unconfirmed, guess)
	}
}

// commentOf parts a line of YAML at the # of its comment, which is left out; both are ""
// where there is nothing. The body of a line that is all comment is "".
func commentOf(line string) (body, comment string) {
	quote := rune(0)
	escaped, before := false, ' '
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && r == '\\':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '#' && (before == ' ' || before == '\t'):
			return strings.TrimRight(line[:i], " \t"), strings.TrimRight(line[i+1:], " \t\r")
		case (r == '"' || r == '\'') && strings.ContainsRune(" \t[{,:'", before):
			quote = r
		}
		before = r
	}
	return strings.TrimRight(line, " \t\r"), ""
}
