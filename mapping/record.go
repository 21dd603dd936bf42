package mapping

// Record is a row after mapping: what the service is to hold of it.
type Record struct {
	// Key makes the row the same row on the next run. It is trimmed and never
	// empty. The default is "row-" and 32 hexadecimal digits of SHA-256 over the
	// row's own columns that hold anything, in the order of their names.
	Key string
	// Organization is set, or Locator with the one property that its type searches
	// by (specification, endpoint 5, rule 3); none of them if assign is not given.
	Organization                    string
	Locator, SearchText, PostalCode string
	TypeKey, TypeLabel              string
	// Status is one of the eight status keys, or "" for none (specification,
	// "States and transitions").
	Status     string
	ExternalID string
	// Content is in the order of the mapping file; empty values are left out.
	Content []Field
}

// Field is a key of the content. A Volatile one holds a file's name, a line or a
// run: it is not compared, and never sent by a sync.
type Field struct {
	Name, Value string
	Volatile    bool
}

// Env is what a text may hold beside columns.
type Env struct {
	File string // {@file}
	Line int    // {@line}
	Run  string // {@run}
}

// Problem is why a row cannot be used. Column names the column or columns that
// the value comes from, if any; Text is a sentence without the value. Rule is one
// of key, required, map, format, status and assign.
type Problem struct{ Column, Rule, Text string }

const (
	ruleKey      = "key"
	ruleRequired = "required"
	ruleMap      = "map"
	ruleFormat   = "format"
	ruleStatus   = "status"
	ruleAssign   = "assign"
)
