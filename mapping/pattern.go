package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"

	"leadferry/internal/lazyregexp"
	"leadferry/mapping/texts"
)

const (
	maxPatterns = 100     // regular expressions of a mapping file
	maxPattern  = 1 << 10 // bytes of one

	// maxProgram is the most instructions that a regular expression may become: the
	// time for a text is at most proportional to their number.
	maxProgram = 4096
)

// readSlashed reads a regular expression between slashes. A text fits when a part of
// it matches: ^ and $ stand for its ends.
func (p *parser) readSlashed(word string) (*regexp.Regexp, *texts.Fault) {
	const example = "for example '/^[0-9]{5}$/', with the quotes"
	end := strings.LastIndexByte(word, '/')
	if !strings.HasPrefix(word, "/") {
		return nil, &texts.Fault{Text: "a regular expression stands between slashes", Hint: example}
	}
	pattern, flags := word[1:max(1, end)], word[end+1:]
	switch {
	case end > 0 && flags != "" && strings.TrimFunc(flags, unicode.IsLetter) == "":
		return nil, &texts.Fault{Text: "a regular expression takes no letters after its last slash", Hint: "write (?i) at its beginning to take capitals and small letters alike"}
	case end == 0 || flags != "":
		return nil, &texts.Fault{Text: "the regular expression has no slash at its end", Hint: example}
	case pattern == "":
		return nil, &texts.Fault{Text: "the regular expression is empty", Hint: example}
	}
	return p.readPattern(pattern)
}

// readPattern reads a regular expression of the file, in the syntax of RE2.
func (p *parser) readPattern(pattern string) (*regexp.Regexp, *texts.Fault) {
	if p.patterns++; p.patterns > maxPatterns {
		return nil, &texts.Fault{Text: fmt.Sprintf("a mapping file has at most %d regular expressions", maxPatterns)}
	}
	if len(pattern) > maxPattern {
		return nil, &texts.Fault{Text: "the regular expression is longer than 1 KiB", Hint: "leave out what need not be checked"}
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil && instructions(tree) > maxProgram {
		return nil, &texts.Fault{Text: "the regular expression is too large once its repetitions are written out", Hint: "use * or + in place of large numbers"}
	}
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	text := "the regular expression cannot be read"
	if se := new(syntax.Error); errors.As(err, &se) {
		text += fmt.Sprintf(": %s in %s", se.Code, texts.Quote(se.Expr))
	}
	return nil, &texts.Fault{Text: text, Hint: "the syntax is that of RE2: no look-ahead, no back-references"}
}

// instructions is about how many instructions a program for the expression has;
// to count them must not take the memory that the limit is there to save.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}

// extract takes the first group of the first match; nothing where there is none.
func extract(p *parser, argument string) (texts.Conversion, *texts.Fault) {
	re, problem := p.readSlashed(argument)
	if problem == nil && re.NumSubexp() == 0 {
		problem = &texts.Fault{Text: "step extract has no group in its regular expression", Hint: `put what is to be taken in parentheses: 'extract:/([0-9]{5})/'`}
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

// Bounds of what replace does: a text that goes beyond does not fit.
const (
	maxReplaced = 100_000 // matches of a text
	maxMade     = 1 << 20 // bytes of a text, before and after
)

// replace puts a text in place of each match: $1 stands for a group, $$ for a dollar.
func replace(p *parser, argument string) (texts.Conversion, *texts.Fault) {
	pattern, with, problem := cutReplace(argument)
	if problem != nil {
		return nil, problem
	}
	re, problem := p.readPattern(pattern)
	if problem == nil {
		problem = checkReplacement(re, with)
	}
	if problem != nil {
		return nil, problem
	}
	return func(s string) (string, bool) {
		if len(s) > maxMade {
			return "", false
		}
		matches := re.FindAllStringSubmatchIndex(s, maxReplaced+1)
		if matches == nil || len(matches) > maxReplaced {
			return s, matches == nil
		}
		var b []byte
		end := 0
		for _, at := range matches {
			b = append(b, s[end:at[0]]...)
			b = re.ExpandString(b, with, s, at)
			if end = at[1]; len(b) > maxMade {
				return "", false
			}
		}
		return string(append(b, s[end:]...)), true
	}, nil
}

// cutReplace cuts /RE/TEXT/ at its slashes. One behind a backslash is none.
func cutReplace(argument string) (pattern, with string, problem *texts.Fault) {
	var pieces []string
	begin := 0
	for i := 0; i < len(argument); i++ {
		switch argument[i] {
		case '\\':
			i++
		case '/':
			pieces = append(pieces, argument[begin:i])
			begin = i + 1
		}
	}
	switch {
	case len(pieces) != 3 || pieces[0] != "" || begin != len(argument):
		return "", "", &texts.Fault{Text: "step replace is written replace:/RE/TEXT/", Hint: `for example 'replace:/[^0-9]+//', in single quotes, with \/ for a slash`}
	case pieces[1] == "":
		return "", "", &texts.Fault{Text: "the regular expression is empty", Hint: `for example 'replace:/[^0-9]+//'`}
	}
	return pieces[1], strings.ReplaceAll(pieces[2], `\/`, "/"), nil
}

// references are what package regexp reads behind a dollar.
var references = lazyregexp.New(`\$(\$|\{\w*\}|\w*)`)

// maxGroups bounds what is kept of each match.
const maxGroups = 20

// checkReplacement sees to it that each group is there that the text asks for: one that
// is not would be empty without a word.
func checkReplacement(re *regexp.Regexp, with string) *texts.Fault {
	if re.NumSubexp() > maxGroups {
		return &texts.Fault{Text: fmt.Sprintf("step replace has more than %d groups", maxGroups), Hint: "write (?:…) for groups that are not asked for"}
	}
	found := references().FindAllStringSubmatch(with, -1)
	if len(found) > maxGroups {
		return &texts.Fault{Text: fmt.Sprintf("step replace asks for more than %d groups", maxGroups)}
	}
	for _, found := range found {
		name := strings.Trim(found[1], "{}")
		if name == "$" {
			continue
		}
		if n, err := strconv.Atoi(name); err == nil && n <= re.NumSubexp() || name != "" && re.SubexpIndex(name) >= 0 {
			continue
		}
		return &texts.Fault{Text: "step replace has no group " + texts.Quote(found[0]), Hint: "write ${1} for the first group, ${1}x where a letter follows, and $$ for a dollar"}
	}
	return nil
}
