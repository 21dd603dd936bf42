package mapping

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// addChecks adds the checks of the role and of as. Constants of map, else and default must pass these, but no format.
func (r *valueReader) addChecks() {
	before := len(r.checks)
	switch {
	case r.parts != nil && r.parts.isJSON():
	case r.role == leadIDRole && r.inside == nothing:
		r.checks = append(r.checks, onlyIf(ruleLeadID, "", rowkey.IsLeadID))
	case r.role == statusRole && r.inside == nothing:
		r.checks = append(r.checks, stage{rule: ruleStatus, called: aStatus, do: StatusKey})
	case r.literal != nil:
		r.checks = append(r.checks, *r.literal)
	}
	last := r.checks[before:]
	for _, c := range r.constants {
		if _, broken := through(last, c.text, nil); broken != nil {
			hint := ""
			if broken.rule == ruleStatus {
				hint = statusHint(c.text)
			}
			r.failIn(c.file, c.at, hint, "%s: %s is not %s", c.path, texts.Quote(c.text), broken.called)
		}
	}
	r.readPull()
}

const aStatus = "a status of the service"

// checkFixed checks a value that names no column. It is the same in every row: if it breaks a rule, the file is wrong.
func (r *valueReader) checkFixed(n node) {
	var once row
	r.eval(&once)
	for _, problem := range once.problems {
		hint := columnHint
		if problem.Rule == ruleStatus.name {
			hint = statusHint(problem.Word)
		}
		r.fail(n, hint, "%s", problem.Text)
	}
}

// readPull reads the words of pull. map and else must turn each word back into its status; what an expr does is not
// known before a row comes. An empty word leaves out the leads of that status. A status without a word gets the first
// word that map turns into it.
func (r *valueReader) readPull() {
	if r.role != statusRole || r.inside != nothing || r.pull.Node == nil && r.table == nil {
		return
	}
	r.m.pull = map[string]string{}
	if r.pull.Node != nil {
		r.byStatus(r.pull, func(status string, n node) {
			word := r.fixed(n)
			to, found := word, true
			if r.table != nil {
				to, found = r.table.find(word)
			}
			if !found && r.elseText != nil {
				to, found = r.elseText.fill(nil, word)
			}
			if back, _ := StatusKey(to); word != "" && r.expr == nil && (!found || back != status) {
				r.fail(n, "take a word of the file that stands for "+status, "%s: the mapping does not turn %s into this status",
					n.path, texts.Quote(n.Value))
			}
			r.m.pull[status] = word
		})
	}
	if r.table == nil {
		return
	}
	for _, entry := range r.table.entries {
		status, known := StatusKey(entry.text)
		if _, has := r.m.pull[status]; known && !has {
			r.m.pull[status] = entry.word
		}
	}
}

// readConflict reads whose value wins if both sides changed a field. status has a rule for each status of the service.
func (r *valueReader) readConflict(n node) {
	rules := &r.m.Conflicts
	rule := func(n node) Rule {
		var word string
		set(r.parser, &word, oneOf("report", "file", "service"))(n)
		return Rule(word)
	}
	switch {
	case r.role == statusRole:
		r.byStatus(n, func(status string, n node) { rules.Status[status] = rule(n) })
	case r.path == externalID:
		rules.ExternalID = rule(n)
	default:
		rules.Content[strings.TrimPrefix(r.path, "lead.content.")] = rule(n)
	}
}

// byStatus calls f for each status that the object n has as a key.
func (p *parser) byStatus(n node, f func(status string, n node)) {
	p.each(n, func(key, child node) {
		if status, known := StatusKey(key.Value); known {
			f(status, child)
		} else {
			p.fail(key, statusHint(key.Value), "%s: %s is not %s", key.path, texts.Quote(key.Value), aStatus)
		}
	})
}

// formats are the words of format and what people call texts that fit. To add one, add an entry and a function.
var formats = [...]struct {
	name, called string
	fits         func(string) bool
}{
	{"email", "an e-mail address", texts.IsEmail},
	{"phone", "a phone number", texts.IsPhone},
	{"uuid", "a UUID", rowkey.IsUUID},
	{"url", "a web address", texts.IsURL},
	{"date", "a date such as 2006-01-02", texts.IsDate},
	{"integer", "a whole number", texts.IsInteger},
	{"number", "a number", texts.IsNumber},
}

// onlyIf returns a stage that accepts only texts that fit.
func onlyIf(broken rule, called string, fits func(string) bool) stage {
	return stage{rule: broken, called: called, do: func(s string) (string, bool) { return s, fits(s) }}
}

func readFormat(word string) (stage, *texts.Fault) {
	if strings.HasPrefix(word, "/") {
		re, problem := readSlashed(word)
		if problem != nil {
			return stage{}, problem
		}
		return onlyIf(ruleFormat, "a text that matches "+texts.Shortened(word, maxShown), re.MatchString), nil
	}
	var names []string
	for _, f := range formats {
		if f.name == word {
			return onlyIf(ruleFormat, f.called, f.fits), nil
		}
		names = append(names, f.name)
	}
	return stage{}, texts.Unknown("format "+texts.Quote(word), word, append(names, "/regular expression/"))
}

// literals are the words of as that do not make a text, and how each writes the value into a request.
var literals = map[string]*stage{
	"number":  literalOf("a number as JSON writes it: 7, -0.5 or 1e3, without leading zeros", jsonNumber),
	"boolean": literalOf("a boolean: true or false, yes or no, on or off, y or n, 1 or 0", boolean),
	"json":    literalOf("one JSON value without repeated names", jsonOf),
}

var asJSON = literals["json"]

func literalOf(called string, do texts.Conversion) *stage {
	return &stage{rule: ruleAs, called: called, do: do}
}

func readAs(word string) (*stage, *texts.Fault) {
	_, fault := oneOf("string", "number", "boolean", "json")(word)
	return literals[word], fault
}

// jsonNumber accepts a number of JSON (RFC 8259, 6) and keeps its digits. JSON allows neither a plus nor leading zeros.
func jsonNumber(s string) (literal string, ok bool) {
	v := jsontext.Value(s)
	return s, v.Kind() == '0' && v.IsValid()
}

// plainNumber returns one text for all JSON numbers with the same exact value, for example 1.50 and 15e-1: sign, digits
// without zeros at either end, and power of ten. A number whose power is out of range stays as written.
func plainNumber(number string) string {
	rest, isNegative := strings.CutPrefix(strings.ToLower(number), "-")
	mantissa, power, _ := strings.Cut(rest, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	n, err := strconv.Atoi(cmp.Or(power, "0"))
	n += len(all) - len(digits) - len(fraction)
	switch {
	case digits == "":
		isNegative, n = false, 0
	case err != nil:
		isNegative, digits, n = false, number, 0
	}
	return fmt.Sprintf("{%t %s %d}", isNegative, digits, n) // never change this text: checkpoints hold its digest
}

var booleans = map[string]string{
	"true": "true", "yes": "true", "on": "true", "y": "true", "1": "true",
	"false": "false", "no": "false", "off": "false", "n": "false", "0": "false",
}

func boolean(s string) (literal string, ok bool) {
	literal, ok = booleans[strings.ToLower(s)]
	return literal, ok
}

// jsonOf returns the JSON value s without white space around and in it.
func jsonOf(s string) (literal string, ok bool) {
	v := jsontext.Value(s)
	err := v.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	if err != nil {
		return "", false
	}
	return string(v), true
}

// statuses are the statuses that a lead may have, by key and label (specification, "States and transitions").
var statuses = [...]struct{ key, label string }{
	{"open", "New"},
	{"contacted", "Contact Attempted"},
	{"inProgress", "In Progress"},
	{"onHold", "On Hold"},
	{"closedWon", "Closed | Won"},
	{"closedNotInterested", "Closed | Not Interested"},
	{"closedBoughtUsed", "Closed | Bought Used"},
	{"closedBoughtOtherBrand", "Closed | Bought Other Brand"},
}

// StatusKey returns the key of the status whose key or label is s, in upper or lower case.
func StatusKey(s string) (key string, ok bool) {
	for _, st := range statuses {
		if strings.EqualFold(s, st.key) || strings.EqualFold(s, st.label) {
			return st.key, true
		}
	}
	return "", false
}

// Statuses returns the keys of the service's statuses in the order of its specification ("States and transitions").
func Statuses() (keys []string) {
	for _, st := range statuses {
		keys = append(keys, st.key)
	}
	return keys
}

func statusHint(s string) string {
	names := Statuses()
	for _, st := range statuses {
		names = append(names, st.label)
	}
	return cmp.Or(spelling.Hint(s, names), "the statuses are "+strings.Join(Statuses(), ", "))
}
