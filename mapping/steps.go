package mapping

import (
	"slices"
	"strings"
)

// step is one step of apply, given a text trimmed and not empty; what it gives is
// trimmed too. It is false for a text that does not fit the step.
type step func(string) (string, bool)

// stepWord is a word that apply knows. One with a form takes an argument after a
// colon.
type stepWord struct {
	name, form, example string
	change              func(string) string
	read                func(argument string) (f step, fault, hint string)
}

func stepWords() []stepWord {
	return []stepWord{
		{name: "trim", change: strings.TrimSpace},
		{name: "lower", change: strings.ToLower},
		{name: "upper", change: strings.ToUpper},
		{name: "title", change: title},
		{name: "squeeze", change: squeeze},
		{name: "digits", change: digits},
		{name: "e164", form: "e164:CC", example: "e164:US", read: e164},
		{name: "date", form: "date:LAYOUT", example: "date:DD.MM.YYYY", read: date},
		{name: "truncate", form: "truncate:N", example: "truncate:80", read: truncate},
		{name: "split", form: "split:SEP:N", example: "split:,:1", read: splitAt},
	}
}

// parseStep reads a word of apply; a fault is a sentence, f nil then. Empty texts
// stay empty and fit every step.
func parseStep(word string) (f step, fault, hint string) {
	words := stepWords()
	name, argument, given := strings.Cut(word, ":")
	i := slices.IndexFunc(words, func(w stepWord) bool { return w.name == name })
	if i < 0 {
		return nil, "unknown step " + quote(word), stepHint(words, name, word[len(name):])
	}
	var fit step
	switch w := words[i]; {
	case w.form == "" && given:
		return nil, "step " + name + " takes nothing after its name", "write " + name
	case w.form == "":
		fit = func(s string) (string, bool) { return w.change(s), true }
	case argument == "":
		return nil, "step " + name + " is not complete: it is written " + w.form, "for example " + quote(w.example) + ", with the quotes"
	default:
		if fit, fault, hint = w.read(argument); fault != "" {
			return nil, fault, hint
		}
	}
	return func(s string) (string, bool) {
		if s == "" {
			return "", true
		}
		return fit(s)
	}, "", ""
}

// stepHint says which step may have been meant by name, which goes on with rest.
func stepHint(words []stepWord, name, rest string) string {
	names, forms := make([]string, len(words)), make([]string, len(words))
	for i, w := range words {
		names[i], forms[i] = w.name, w.form
		if w.form == "" {
			forms[i] = w.name
		}
	}
	near := Nearest(name, names)
	if near == "" {
		return "known here: " + strings.Join(forms, ", ")
	}
	w := words[slices.Index(names, near)]
	switch {
	case w.form == "":
		rest = ""
	case len(rest) < 2:
		return "did you mean " + quote(w.example) + "?"
	}
	return "did you mean " + quote(near+rest) + "?"
}
