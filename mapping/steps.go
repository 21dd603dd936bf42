package mapping

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// always is a conversion that every text fits.
func always(change func(string) string) texts.Conversion {
	return func(s string) (string, bool) { return change(s), true }
}

// stage is a conversion that values go through, and the rule that a text breaks which
// does not fit it.
type stage struct {
	rule, called string // called: a step as the file has it, or what people call a text that fits
	do           texts.Conversion

	by   *value // of a step whose argument is made of columns
	with func(argument, s string) (string, bool)
}

// through is s after all stages, or the first stage that it does not fit. A text that
// is empty, or becomes so, fits. It is short enough for the compiler to put it where it
// is called, since most values have no stages.
func through(stages []stage, s string, r *row) (result string, broken *stage) {
	if len(stages) == 0 {
		return s, nil
	}
	return throughAll(stages, s, r)
}

func throughAll(stages []stage, s string, r *row) (result string, broken *stage) {
	for i := 0; i < len(stages) && s != ""; i++ {
		var fits bool
		if by := stages[i].by; by != nil {
			s, fits = stages[i].with(by.text.fill(r, by.cells, ""), s)
		} else {
			s, fits = stages[i].do(s)
		}
		if !fits {
			return "", &stages[i]
		}
		s = strings.TrimSpace(s)
	}
	return s, nil
}

// step is a word of apply: a conversion, or the reader of its argument.
type step struct {
	form    string // how it is written, an argument in capitals
	example string // of one with an argument
	do      texts.Conversion
	read    func(p *parser, argument string) (texts.Conversion, *texts.Fault)
	with    func(argument, s string) (string, bool) // of one whose argument may be made of columns
}

func (s step) name() string {
	name, _, _ := strings.Cut(s.form, ":")
	return name
}

// steps are all that apply knows: a new one is an entry here and a function.
var steps = [...]step{
	{form: "trim", do: always(strings.TrimSpace)},
	{form: "lower", do: always(strings.ToLower)},
	{form: "upper", do: always(strings.ToUpper)},
	{form: "title", do: always(title)},
	{form: "squeeze", do: always(squeeze)},
	{form: "digits", do: always(digits)},
	{form: "e164:CC", example: "e164:US", read: from(texts.E164), with: texts.E164In},
	{form: "date:LAYOUT", example: "date:DD.MM.YYYY", read: from(texts.Date)},
	{form: "truncate:N", example: "truncate:80", read: truncate},
	{form: "split:SEP:N", example: "split:,:1", read: splitAt},
	{form: "replace:/RE/TEXT/", example: "replace:/[^0-9]+//", read: replace},
	{form: "extract:/RE/", example: "extract:/([0-9]{5})/", read: extract},
}

// from reads the argument of a step by what the texts themselves are known by.
func from(read func(argument string) (texts.Conversion, *texts.Fault)) func(*parser, string) (texts.Conversion, *texts.Fault) {
	return func(_ *parser, argument string) (texts.Conversion, *texts.Fault) { return read(argument) }
}

// readStep reads a word of apply. A placeholder in it stands at the place at.
func (p *parser) readStep(at position, word string) (stage, *texts.Fault) {
	name, argument, given := strings.Cut(word, ":")
	i := slices.IndexFunc(steps[:], func(s step) bool { return s.name() == name })
	if i < 0 {
		return stage{}, &texts.Fault{Text: "unknown step " + texts.Quote(word), Hint: stepHint(name, argument)}
	}
	var problem *texts.Fault
	s := steps[i]
	switch {
	case s.read == nil && given:
		problem = &texts.Fault{Text: "step " + name + " takes nothing after its name", Hint: "write " + name}
	case s.read != nil && argument == "":
		problem = &texts.Fault{Text: "step " + name + " is not complete: it is written " + s.form, Hint: "for example " + texts.Quote(s.example) + ", with the quotes"}
	case s.with != nil && strings.Contains(argument, "{"):
		by, problem := textBy(at, argument)
		return stage{rule: ruleApply, called: word, by: by, with: s.with}, problem
	case s.read != nil:
		s.do, problem = s.read(p, argument)
	}
	return stage{rule: ruleApply, called: word, do: s.do}, problem
}

// textBy is the argument of a step that is made of columns.
func textBy(at position, argument string) (*value, *texts.Fault) {
	t, problem := split(argument)
	if problem == nil && t.has(itself, rowKey, file, line, run) {
		problem = &texts.Fault{Text: "step " + argument + " takes columns only", Hint: "for example e164:{country}"}
	}
	by := &value{at: at, text: t}
	by.addColumns()
	return by, problem
}

// stepsElsewhere are steps as other programs call them.
var stepsElsewhere = map[string]string{
	"lowercase": "lower", "downcase": "lower", "tolower": "lower", "uppercase": "upper", "toupper": "upper", "titlecase": "title", "capitalize": "title", "strip": "trim",
	"collapse": "squeeze", "left": "truncate:80", "substring": "truncate:80", "slice": "truncate:80", "regex_replace": "replace:/[^0-9]+//", "gsub": "replace:/[^0-9]+//",
	"sub": "replace:/[^0-9]+//", "regex": "extract:/([0-9]{5})/", "match": "extract:/([0-9]{5})/", "normalize_phone": "e164:US", "parse_date": "date:DD.MM.YYYY", "strptime": "date:DD.MM.YYYY",
}

// stepHint says which step may have been meant by a name with this argument.
func stepHint(name, argument string) string {
	var names, forms []string
	for _, s := range steps {
		names, forms = append(names, s.name()), append(forms, s.form)
	}
	if several := strings.FieldsFunc(name, func(r rune) bool { return r == '|' || r == ',' || r == ' ' }); argument == "" && len(several) > 1 {
		return "write each step by itself: [" + strings.Join(several, ", ") + "]"
	}
	bare, _, _ := strings.Cut(name, "(")
	near := spelling.Nearest(bare, names)
	if slices.ContainsFunc(formats[:], func(f formatWord) bool { return f.name == name }) {
		return "that is a format: format: " + name
	}
	if other := stepsElsewhere[strings.ToLower(name)]; other != "" {
		return "did you mean " + texts.Quote(other) + "?"
	}
	if near == "" {
		return "known here: " + strings.Join(forms, ", ")
	}
	switch s := steps[slices.Index(names, near)]; {
	case s.read != nil && argument == "":
		near = s.example
	case s.read != nil:
		near += ":" + argument
	}
	return "did you mean " + texts.Quote(near) + "?"
}

// title begins each word with a capital and goes on in small letters. A Caser has
// state, so every call takes its own.
func title(s string) string { return cases.Title(language.Und).String(s) }

// squeeze makes one space of each run of white space.
func squeeze(s string) string {
	odd := func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
	if !strings.Contains(s, "  ") && !strings.ContainsFunc(s, odd) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// digits keeps the digits, those of other scripts as the ASCII digits that they
// stand for: a number must not lose its digits because of a keyboard.
func digits(s string) string { return strings.Map(texts.ASCIIDigit, s) }

// truncate keeps the first characters of a text, as people count them: a letter
// with its accents is one, and so is an emoji.
func truncate(_ *parser, argument string) (texts.Conversion, *texts.Fault) {
	n, err := strconv.Atoi(argument)
	if err != nil || n < 1 {
		return nil, &texts.Fault{Text: "step truncate needs a number of characters, at least 1", Hint: `for example "truncate:80"`}
	}
	return always(func(s string) string {
		if len(s) <= n {
			return s
		}
		rest, state := s, -1
		for i := 0; i < n && rest != ""; i++ {
			_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		}
		return s[:len(s)-len(rest)]
	}), nil
}

// splitAt takes one part of a text: the argument is a separator, a colon and the
// part's number, so the separator itself may hold colons.
func splitAt(_ *parser, argument string) (texts.Conversion, *texts.Fault) {
	const example = `for example "split:,:1" for what stands before the first comma, "split:,:-1" for what stands after the last`
	i := strings.LastIndexByte(argument, ':')
	if i < 1 {
		return nil, &texts.Fault{Text: "step split needs a separator and a number", Hint: example}
	}
	n, err := strconv.Atoi(argument[i+1:])
	if err != nil || n == 0 {
		return nil, &texts.Fault{Text: "step split needs the number of a part: 1 is the first, -1 the last", Hint: example}
	}
	return always(func(s string) string { return nthPart(s, argument[:i], n) }), nil
}

// nthPart is the n-th part of s from 1, or from the end if n is negative; "" when
// there are fewer.
func nthPart(s, separator string, n int) string {
	if n < 0 {
		n += strings.Count(s, separator) + 2
	}
	i := 0
	for one := range strings.SplitSeq(s, separator) {
		if i++; i == n {
			return one
		}
	}
	return ""
}
