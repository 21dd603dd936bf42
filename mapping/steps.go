package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// always makes a conversion that accepts every text.
func always(change func(string) string) texts.Conversion {
	return func(s string) (string, bool) { return change(s), true }
}

// stage is a conversion of values, and the rule that a text breaks if the conversion refuses it.
type stage struct {
	rule   rule
	called string // a step as the file writes it, or what people call a text that fits
	do     texts.Conversion

	by text // for the step e164 only: the country, if columns name it
}

// through returns s after all stages, or the first stage that refuses it. Once the text is empty, it skips the rest.
func through(stages []stage, s string, r *row) (result string, broken *stage) {
	for i := 0; i < len(stages) && s != ""; i++ {
		var fits bool
		if by := stages[i].by; by != nil {
			country, _ := by.fill(r, "")
			s, fits = texts.E164In(country, s)
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

// steps are the steps of apply: how each is written, and the function that reads what follows its colon.
var steps = [...]struct {
	form string
	read func(argument string) (texts.Conversion, *texts.Fault)
}{
	{"trim", bare(strings.TrimSpace)},
	{"lower", bare(strings.ToLower)},
	{"upper", bare(strings.ToUpper)},
	{"title", bare(title)},
	{"squeeze", bare(squeeze)},
	{"digits", bare(digits)},
	{"e164:CC", texts.E164},
	{"date:LAYOUT", texts.Date},
	{"truncate:N", truncate},
	{"split:SEP:N", splitAt},
	{"replace:/RE/TEXT/", replace},
	{"extract:/RE/", extract},
}

// bare returns a reader for a step without an argument.
func bare(change func(string) string) func(string) (texts.Conversion, *texts.Fault) {
	return func(argument string) (texts.Conversion, *texts.Fault) {
		if argument != "" {
			return nil, texts.NewFault("this step takes nothing after its name", "leave "+texts.Quote(argument)+" out")
		}
		return always(change), nil
	}
}

// readStep reads a word of apply.
func readStep(word string) (stage, *texts.Fault) {
	name, argument, _ := strings.Cut(word, ":")
	var names, forms []string
	for _, s := range steps {
		known, _, _ := strings.Cut(s.form, ":")
		names, forms = append(names, known), append(forms, s.form)
	}
	i := slices.Index(names, name)
	switch {
	case i < 0:
		hint := cmp.Or(spelling.Hint(name, names), "known here: "+strings.Join(forms, ", "))
		return stage{}, texts.NewFault("unknown step "+texts.Quote(word), hint)
	case name == "e164" && strings.Contains(argument, "{"):
		by, fault := split(argument)
		if fault == nil && by.has(itself, rowKey, file, line, run) {
			fault = texts.NewFault("step "+argument+" takes columns only", "for example e164:{country}")
		}
		return stage{rule: ruleApply, called: word, by: by}, fault
	}
	do, fault := steps[i].read(argument)
	return stage{rule: ruleApply, called: word, do: do}, fault
}

// title begins each word with a capital and lowers the rest. A Caser has state, so every call makes its own.
func title(s string) string { return cases.Title(language.Und).String(s) }

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// digits keeps the digits. Digits of other scripts become ASCII digits: a foreign keyboard must not lose any.
func digits(s string) string { return strings.Map(texts.ASCIIDigit, s) }

// truncate keeps the first characters of a text, as people count them: an accented letter or an emoji is one.
func truncate(argument string) (texts.Conversion, *texts.Fault) {
	n, err := strconv.Atoi(argument)
	if err != nil || n < 1 {
		return nil, texts.NewFault("step truncate needs a number of characters, at least 1",
			`for example "truncate:80"`)
	}
	return always(func(s string) string {
		if len(s) <= n {
			return s
		}
		end, characters := 0, uniseg.NewGraphemes(s)
		for i := 0; i < n && characters.Next(); i++ {
			_, end = characters.Positions()
		}
		return s[:end]
	}), nil
}

// splitAt keeps one part of a text. The argument is a separator, which may hold colons, a colon and the part's number.
func splitAt(argument string) (texts.Conversion, *texts.Fault) {
	const example = `"split:,:1" is for what is before the first comma, "split:,:-1" for what is after the last`
	i := max(0, strings.LastIndexByte(argument, ':'))
	n, err := strconv.Atoi(strings.TrimPrefix(argument[i:], ":"))
	if i == 0 || err != nil || n == 0 {
		return nil, texts.NewFault("step split needs a separator and the number of a part: 1 is the first, -1 the last",
			example)
	}
	return always(func(s string) string {
		parts, at := strings.Split(s, argument[:i]), n-1
		if n < 0 {
			at = len(parts) + n
		}
		if at < 0 || at >= len(parts) {
			return ""
		}
		return parts[at]
	}), nil
}

// readSlashed reads a regular expression between slashes. A text fits if any part of it matches; ^ and $ are its ends.
func readSlashed(word string) (*regexp.Regexp, *texts.Fault) {
	pattern, begins := strings.CutPrefix(word, "/")
	pattern, ends := strings.CutSuffix(pattern, "/")
	if !begins || !ends || pattern == "" {
		return nil, texts.NewFault("a regular expression is written between slashes, with nothing after them",
			"for example '/^[0-9]{5}$/', with the quotes; (?i) at its beginning takes capitals and small letters alike")
	}
	return readPattern(pattern)
}

// readPattern reads a regular expression of the file, in the syntax of RE2.
func readPattern(pattern string) (*regexp.Regexp, *texts.Fault) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	text := "the regular expression cannot be read"
	if se := new(syntax.Error); errors.As(err, &se) {
		text += fmt.Sprintf(": %s in %s", se.Code, texts.Quote(se.Expr))
	}
	return nil, texts.NewFault(text, "the syntax is that of RE2: no look-ahead, no back-references")
}

// extract keeps the first group of the first match, "" if there is no match.
func extract(argument string) (texts.Conversion, *texts.Fault) {
	re, problem := readSlashed(argument)
	if problem == nil && re.NumSubexp() == 0 {
		problem = texts.NewFault("step extract has no group in its regular expression",
			`put what is to be taken in parentheses: 'extract:/([0-9]{5})/'`)
	}
	if problem != nil {
		return nil, problem
	}
	return always(func(s string) string {
		if at := re.FindStringSubmatchIndex(s); at != nil && at[2] >= 0 {
			return s[at[2]:at[3]]
		}
		return ""
	}), nil
}

// replace puts a text in place of each match. In it $1 means a group and $$ a dollar.
func replace(argument string) (texts.Conversion, *texts.Fault) {
	parts := replaceForm().FindStringSubmatch(argument)
	if parts == nil {
		return nil, texts.NewFault("step replace is written replace:/RE/TEXT/",
			`for example 'replace:/[^0-9]+//', in single quotes, with \/ for a slash`)
	}
	with := strings.ReplaceAll(parts[2], `\/`, "/")
	re, problem := readPattern(parts[1])
	if problem == nil {
		problem = checkReplacement(re, with)
	}
	if problem != nil {
		return nil, problem
	}
	return always(func(s string) string { return re.ReplaceAllString(s, with) }), nil
}

// replaceForm matches /RE/TEXT/. A slash after a backslash is part of the text.
var replaceForm = spelling.Form(`(?s)^/((?:\\.|[^/\\])+)/((?:\\.|[^/\\])*)/$`)

// references match what package regexp reads after a dollar.
var references = spelling.Form(`\$(\$|\{\w*\}|\w*)`)

// checkReplacement refuses a text with a group that the expression lacks: package regexp would silently use "".
func checkReplacement(re *regexp.Regexp, with string) *texts.Fault {
	for _, found := range references().FindAllStringSubmatch(with, -1) {
		name := strings.Trim(found[1], "{}")
		n, err := strconv.Atoi(name)
		if name == "$" || err == nil && n <= re.NumSubexp() || name != "" && re.SubexpIndex(name) >= 0 {
			continue
		}
		return texts.NewFault("step replace has no group "+texts.Quote(found[0]),
			"write ${1} for the first group, ${1}x where a letter follows, and $$ for a dollar")
	}
	return nil
}
