package mapping

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Record is a row after mapping: what the service is to hold of it.
type Record struct {
	// Key makes the row the same row on the next run. It is trimmed and never
	// empty; with a namespace it is "namespace/key", and no other key begins so (see
	// rowkey.Effective). The default is "row-" and 32 hexadecimal digits of SHA-256 over the row's own columns that hold anything,
	// in the order of their names.
	Key string
	// LeadID is the service's own ID of the lead, or "" when the file does not know
	// it: letters, digits, dots, underscores and hyphens, at most 128.
	LeadID string
	// Skip says that skip_if leaves the row out: nothing else of the Record counts.
	Skip bool
	// Entry is the number, from 1, of the entry of assign that was used, or 0.
	Entry int
	// Organization is set, or Locator with the one property that its type searches
	// by (specification, endpoint 5, rule 3); none of them if assign is not given.
	Organization                    string
	Locator, SearchText, PostalCode string
	TypeKey, TypeLabel              string
	// Status is one of the eight status keys, or "" for none (specification,
	// "States and transitions").
	Status     string
	ExternalID string
	// Content is in the order of the mapping file, "*" at its place and there in the
	// order of the input's columns. Empty values are left out unless the mapping says
	// empty: clear.
	Content []Field
}

// Field is a key of the content. Value is a text for a String, else the literal as
// it stands in the request. A Volatile one holds a file's name, a line or a run: it
// is not compared, and never sent by a sync.
type Field struct {
	Name, Value string
	Volatile    bool
	Kind        Kind
}

// Kind is how a Field's value stands in the request.
type Kind uint8

const (
	String  Kind = iota // a text, which may be empty
	Number              // a JSON number, its digits as they were written
	Boolean             // true or false
	JSON                // a whole JSON value without white space around or in it
)

// Env is what a text may hold beside columns.
type Env struct {
	File string // {@file}
	Line int    // {@line}
	Run  string // {@run}
}

// Problem is why a row cannot be used. Column names the column or columns that
// the value comes from, if any; Text is a sentence without the value. Rule is one
// of key, control, required, map, format, status, assign, apply, as, expr and lead_id.
// Status is set for the rule status only: the word that is neither a status of the
// service nor mapped to one, so that a run can list such words.
type Problem struct{ Column, Rule, Text, Status string }

const (
	ruleKey      = "key"
	ruleControl  = "control"
	ruleRequired = "required"
	ruleMap      = "map"
	ruleFormat   = "format"
	ruleStatus   = "status"
	ruleAssign   = "assign"
	ruleApply    = "apply"
	ruleAs       = "as"
	ruleExpr     = "expr"
	ruleLeadID   = "lead_id"
)

// kinds are the words of as, and kindNames what people call them.
var (
	kinds     = map[string]Kind{"string": String, "number": Number, "boolean": Boolean, "json": JSON}
	kindNames = map[Kind]string{
		Number:  "a number as JSON writes it: 7, -0.5 or 1e3, without leading zeros",
		Boolean: "a boolean: true or false, yes or no, on or off, y or n, 1 or 0",
		JSON:    "one JSON value without repeated names, at most 64 levels deep",
	}
)

// literalOf is how the trimmed text s stands in a request as a Kind other than
// String, if it can. A number keeps its digits.
func literalOf(k Kind, s string) (literal string, ok bool) {
	switch k {
	case Number:
		return s, isJSONNumber(s)
	case Boolean:
		return booleanOf(s)
	case JSON:
		return jsonOf(s)
	}
	return s, true
}

// isJSONNumber reports whether s is a number by the grammar of JSON (RFC 8259, 6):
// it takes neither a plus before it nor zeros that could be left out.
func isJSONNumber(s string) bool {
	whole := strings.TrimPrefix(s, "-")
	zeros := len(whole) > 1 && whole[0] == '0' && isDigit(whole[1])
	return !zeros && !strings.HasPrefix(s, "+") && isNumber(s)
}

func booleanOf(s string) (literal string, ok bool) {
	for _, yes := range [...]string{"true", "yes", "on", "y", "1"} {
		if strings.EqualFold(s, yes) {
			return "true", true
		}
	}
	for _, no := range [...]string{"false", "no", "off", "n", "0"} {
		if strings.EqualFold(s, no) {
			return "false", true
		}
	}
	return "", false
}

// jsonOf is the JSON value s without white space around and in it.
func jsonOf(s string) (literal string, ok bool) {
	if levels(s) > maxDepth {
		return "", false
	}
	v := jsontext.Value(s)
	err := v.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	return string(v), err == nil
}

// levels is how deep objects and lists stand in one another in the JSON text s.
func levels(s string) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++
		case inText:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

// statuses are the statuses that a lead may have, by key and label
// (specification, "States and transitions").
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

// statusKey is the key of the status that has s, in any case, as key or label.
func statusKey(s string) (key string, ok bool) {
	for i := range statuses {
		if strings.EqualFold(s, statuses[i].key) || strings.EqualFold(s, statuses[i].label) {
			return statuses[i].key, true
		}
	}
	return "", false
}

// statusHint says what may have been meant by s, or what there is.
func statusHint(s string) string {
	var names, keys []string
	for _, st := range statuses {
		names, keys = append(names, st.key, st.label), append(keys, st.key)
	}
	if hint := didYouMean(s, names); hint != "" {
		return hint
	}
	return "the statuses are " + strings.Join(keys, ", ")
}
