package mapping

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
