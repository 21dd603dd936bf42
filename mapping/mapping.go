// Package mapping reads a mapping file and turns the rows of an input into records for the lead service.
//
// It takes rows from source and gives Records to the engine, which plans from them:
//
//	Parse a file ─▶ Mapping ─▶ Bind to a header ─▶ Binding ─▶ Map each row ─▶ Record
//
// The file is YAML or JSON in UTF-8: one document, at most 1 MiB and 64 levels. Aliases, anchors, tags, merge keys and
// repeated keys are refused. A constant is the text as written: 01234 keeps its zero, and no is not false.
//
// A value is made in these steps, one after another: the text with its placeholders filled in, or the expression; trim;
// apply; map with else; default; required; format; as. Only default and required apply to an empty text.
//
// Expressions are those of expr-lang/expr over the cells of the row: name and $env["any name"]. Each cell is a trimmed
// text, "" when empty. The language has the library's operators and some of its functions (see package expression), but
// none that reads the clock or the machine. Texts are counted in characters. The result is a text, a number, true,
// false or nil, which counts as empty. An expression that fails makes the row invalid, unless all columns that it names
// are empty. Then its result is empty, or false for skip_if.
//
// Promises: errors of a mapping file come all at once, each with its place. Neither errors nor problems hold a row's
// values, except Problem.Word. The same row gives the same Record: nothing here uses a clock, the network or a file.
package mapping

import (
	"cmp"
	_ "embed" // for the schema
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"go.yaml.in/yaml/v4"

	"leadferry/internal/rowkey"
	"leadferry/internal/spelling"
)

// Mapping is a checked mapping file. It does not change and may be shared.
type Mapping struct {
	Source      Source        // how to read the inputs
	Target      Target        // the only service that its rows may be sent to
	Conflicts   ConflictRules // what the keys conflict say
	Tests       []Test        // in the order of the file
	Unconfirmed []Error       // guesses of leadferry init: lines whose comment begins with a question mark, at most 100
	Warnings    []Error       // remarks about a good file; they never hold a constant that looks like a secret

	name       string
	plan       plan
	names      []string          // of the columns that values name
	pull       map[string]string // by status; nil: each status is its own word
	root, lead position          // of the file's first key, and of the section lead or else root
}

// Source is the section source of a mapping file. A field that the file leaves out is empty: the reader detects it.
type Source struct {
	Format    string   // csv, tsv, jsonl or xlsx
	Delimiter rune     // 0: the format's own
	NoQuotes  bool     // quote: none, quotes are text like any other
	Encoding  string   // a label of the WHATWG Encoding Standard, as written; the reader of the input checks it
	NoHeader  bool     // the first line is a row
	Columns   []string // the columns' names, set if and only if NoHeader
	Null      []string // cells that count as empty, compared after trimming
	Sheet     string   // of an xlsx workbook
	List      string   // the member of a JSON document that holds the rows

	SkipRows   int            // lines, or rows of a sheet, before the header
	SkipFooter int            // lines, or rows of a sheet, at the end
	Footer     *regexp.Regexp // matches the first row of a footer; nil: there is none
	Comment    string         // begins lines that are skipped
	Backslash  bool           // escape: a backslash escapes a quote
}

// Columns lists the columns that values name, each once.
func (m *Mapping) Columns() []string { return m.names }

// Paths lists the columns whose names hold a dot, each once: in a JSONL row they may be inside objects and lists.
func (m *Mapping) Paths() []string {
	return slices.DeleteFunc(slices.Clone(m.names), func(name string) bool { return !strings.Contains(name, ".") })
}

// Composed returns the keys of the content that are objects or lists.
func (m *Mapping) Composed() (names []string) {
	for _, f := range m.plan.content {
		if f.value != nil && f.value.parts != nil && f.value.parts.isJSON() {
			names = append(names, f.name)
		}
	}
	return names
}

// PullWord returns the CRM's word for a status of the service: from pull, else the first word that map turns into it.
// Without both, it is the status itself. known is false if there is no word. "" leaves the lead out.
func (m *Mapping) PullWord(status string) (word string, known bool) {
	if m.pull != nil {
		word, known = m.pull[status]
		return word, known
	}
	_, known = StatusKey(status)
	return status, known
}

// Rule says whose value wins if others changed a field on the service. Its words are also those of --conflict.
type Rule string

// The rules.
const (
	RuleReport  Rule = "report"  // or "": a person decides
	RuleFile    Rule = "file"    // send the file's value
	RuleService Rule = "service" // keep the service's value
)

// ConflictRules are the rules of single fields, "" for a field without one.
type ConflictRules struct {
	All        Rule            // of the command: --conflict, for all fields without a rule
	Status     map[string]Rule // by the status that the service shows
	Content    map[string]Rule // by content key
	ExternalID Rule
}

// Or returns a field's own rule, else the rule of the command, else RuleReport.
func (c *ConflictRules) Or(own Rule) Rule { return cmp.Or(own, c.All, RuleReport) }

// ForStatus returns the rule if the service shows this status. If the status could not be read, a person decides.
func (c *ConflictRules) ForStatus(service string) Rule {
	if service == "" {
		return RuleReport
	}
	return c.Or(c.Status[service])
}

// HasLeadID reports whether the mapping reads the service's own lead IDs from the file: sync then needs no checkpoint.
func (m *Mapping) HasLeadID() bool { return m.plan.leadID != nil }

// ForCreate returns Errors that name what the mapping lacks to create leads, or nil (specification, endpoint 5).
func (m *Mapping) ForCreate() error {
	var errs Errors
	lacks := func(missing bool, at position, key, hint string) {
		if missing {
			text := key + " is missing, and leads cannot be created without it"
			errs = append(errs, Error{m.name, at.line, at.column, text, hint})
		}
	}
	lacks(m.plan.assign == nil, m.root, "assign", `say who gets the leads, by the service's ID of `+
		`an organization: assign: [{organization: ID}], or a column that holds such IDs: "{column}"`)
	lacks(m.plan.typeKey == nil, m.lead, "lead.type_key", "for example type_key: contact-form")
	lacks(m.plan.typeLabel == nil, m.lead, "lead.type_label", "for example type_label: Contact form")
	return errs.orNil(m.name)
}

// ForSync returns an error if no value of the mapping can find the lead of a changed row.
func (m *Mapping) ForSync() error {
	if m.KeyForm() == "" && !m.HasLeadID() {
		return errors.New("the mapping has neither key nor external_id nor lead_id, so a changed row finds no lead\n" +
			"hint: name the column that makes a row the same row on the next run: key: \"{column}\"")
	}
	return nil
}

// Shard is the part of the input that a worker takes: part Index (from 0) of Of parts. The zero Shard is all of it.
type Shard struct{ Index, Of int }

// ForShards returns an error if two workers could get rows of one lead. Each row must find its lead by one value: by
// lead_id alone, or by its key, where key and external_id have the same text if both are given.
func (m *Mapping) ForShards() error {
	key, external := m.plan.key, m.plan.externalID
	byID := m.plan.leadID != nil && key == nil && external == nil
	byKey := m.plan.leadID == nil && (key == nil || external == nil || key.form() == external.form())
	if !byID && !byKey {
		return errors.New("the rows of this mapping may find their lead by several values, so that workers of a fleet " +
			"could meet at one lead\n" +
			"hint: use lead_id alone, or use key and leave external_id out or give it the same text")
	}
	return nil
}

// Has reports whether a row is in the part, by the hash of its lead ID, else of its folded key: keys that look alike
// share a part. A row that has neither goes by its place in the input. All versions of the program must agree.
func (s Shard) Has(row *Record, place int) bool {
	part := uint64(place)
	switch {
	case s.Of <= 1:
		return true
	case row.LeadID != "":
		part = xxhash.Sum64String(row.LeadID)
	case row.Key != "":
		part = xxhash.Sum64String(rowkey.Fold(row.Key))
	}
	return int(part%uint64(s.Of)) == s.Index
}

// KeyIn is [Mapping.KeyForm], with the places of its columns if the mapping names the columns of the file. If the row's
// own data are the key, KeyIn lists the format, the encoding and the settings that change cells, and so the key.
func (m *Mapping) KeyIn(format, encoding string) string {
	var settings spelling.Texts
	encoding, null := strings.ToLower(encoding), strings.Join(m.Source.Null, ", ")
	if v := cmp.Or(m.plan.key, m.plan.externalID); v != nil {
		settings.Add(true, "%s", v.form())
		for _, name := range namesOf(v.uses()) {
			at := slices.Index(m.Source.Columns, name)
			settings.Add(at >= 0, "column %d", at+1)
		}
		return strings.Join(settings, "; ")
	}
	settings.Add(m.Source.NoHeader, "columns %s", strings.ReplaceAll(strings.Join(m.Source.Columns, ", "), "{", "("))
	settings.Add(format == "xlsx" || format == "jsonl", "format %s", format) // dates differ
	settings.Add(encoding != "" && !strings.HasPrefix(encoding, "utf-"), "encoding %s", encoding)
	settings.Add(m.Source.NoQuotes, "quote none")
	settings.Add(m.Source.Backslash, "escape backslash")
	settings.Add(null != "", "null %s", null)
	return strings.Join(settings, "; ")
}

// KeyForm says what the key of a row is made of: the text of key, or of external_id if there is no key, and the steps
// that change it. "" means the row's own data. Two mappings with the same form give a row the same key.
func (m *Mapping) KeyForm() string {
	if v := cmp.Or(m.plan.key, m.plan.externalID); v != nil {
		return v.form()
	}
	return ""
}

// Namespace is the namespace of the mapping, or "".
func (m *Mapping) Namespace() string { return m.plan.namespace }

// Target is a service. An empty field allows any service; Line is 0 if the mapping names no target.
type Target struct {
	TrunkID, LeadsURL string
	Line              int
}

// plan is the compiled mapping: all that Map needs to make a Record. A value is nil if the file does not give it.
type plan struct {
	namespace                  string
	skip                       *value // a condition
	key, leadID, externalID    *value
	typeKey, typeLabel, status *value
	assign                     []assignment
	content                    []field
	rest                       *rest
}

// assignment is one entry of assign: an organization, or a locator and what the locator searches by.
type assignment struct {
	organization, locator, searchText, postalCode *value
}

func (t *assignment) values() []*value {
	return []*value{t.organization, t.locator, t.searchText, t.postalCode}
}

// field is a key of the content. Without a value it is "*", the place of all columns that nothing else uses.
type field struct {
	name     string
	value    *value
	volatile bool
}

func (f *field) isRest() bool { return f.value == nil }

// values returns the values that the file gives.
func (p *plan) values() []*value {
	all := []*value{p.skip, p.key, p.leadID, p.externalID, p.typeKey, p.typeLabel, p.status}
	for i := range p.assign {
		all = append(all, p.assign[i].values()...)
	}
	for _, f := range p.content {
		all = append(all, f.value)
	}
	return slices.DeleteFunc(all, func(v *value) bool { return v == nil })
}

//go:embed schema.json
var schema string

// Schema is the JSON Schema (draft 2020-12) of the mapping file, for editors. It covers every key and word of the
// language. Only Parse checks what depends on an input, on several places of the file or on the inside of a text.
func Schema() []byte { return []byte(schema) }

var (
	// token matches a JSON Web Token (RFC 7519), or a header that carries any token.
	token = spelling.Form(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|` +
		`(?i:\bbearer +[a-z0-9._~+/-]{16,})`)

	secretKey = spelling.Form(`(?i)(?:secret|password|passwd|passphrase|(?:api|private)[ _.-]?key|` +
		`(?:access|refresh|auth)[ _.-]?token|authorization)$`)
)

// secrets warns of constants in n that look like secrets. named says that the key of n looks like the name of a secret.
// A mapping file is shared, and its constants are sent with each lead.
func (p *parser) secrets(n *yaml.Node, named bool) {
	transparent := []string{"from", "default", "expr", "else", "first", "join", "list"}
	isWord := n.Kind == yaml.ScalarNode && n.Value != "" && !strings.ContainsAny(n.Value, "{ \t\n")
	if (token().MatchString(n.Value) || named && isWord) && len(p.m.Warnings) < maxErrors {
		p.m.Warnings = append(p.m.Warnings, Error{
			p.file, n.Line, n.Column, "the mapping file holds what looks like a secret",
			"take it out; leadferry reads its own secret from LEADFERRY_CLIENT_SECRET or --client-secret-file",
		})
	}
	for i, child := range n.Content {
		below := named
		if n.Kind == yaml.MappingNode {
			key := n.Content[i-i%2].Value
			below = i%2 == 1 && (secretKey().MatchString(key) || named && slices.Contains(transparent, key))
		}
		p.secrets(child, below)
	}
}
