package mapping

import "strings"

// value is one compiled value: a text and what is done to it, in the order of the
// fields.
type value struct {
	path   string // how the mapping file calls it: lead.content.email
	at     position
	text   text
	apply  []func(string) string
	table  map[string]string // nil: none
	other  text              // what else says; nil: none
	preset string            // default
	needed string            // the rule that an empty result breaks, or ""
	format string            // email, or ""
	status bool              // the result must be one of the service's statuses

	differs bool // placeholders that differ from run to run are allowed
}

// eval is what the value comes to in a row, and the rule that this breaks, or "".
func (v *value) eval(r *row) (result, broken string) {
	s := v.text.fill(r)
	for _, f := range v.apply {
		s = f(s)
	}
	if v.table != nil && s != "" {
		to, found := v.table[s]
		switch {
		case found:
			s = to
		case v.other != nil:
			r.itself = s
			s = v.other.fill(r)
		default:
			return "", ruleMap
		}
	}
	if s == "" {
		s = v.preset
	}
	switch {
	case s == "":
		return "", v.needed
	case v.format != "" && !isEmail(s):
		return "", ruleFormat
	case v.status:
		key, ok := statusKey(s)
		if !ok {
			return "", ruleStatus
		}
		return key, ""
	}
	return s, ""
}

// problem says how the value breaks the rule.
func (v *value) problem(rule string) Problem {
	var names []string
	for _, p := range v.text {
		if p.kind == column {
			names = append(names, p.text)
		}
	}
	text := v.path
	switch rule {
	case ruleKey:
		text += " is empty, but every row needs one"
	case ruleRequired:
		text += " is empty, but required"
	case ruleMap:
		text += " has a text that its map lacks, and there is no else"
	case ruleFormat:
		text += " is not an e-mail address"
	case ruleStatus:
		text += " is neither a status of the service nor mapped to one"
	}
	return Problem{strings.Join(names, ", "), rule, text}
}
