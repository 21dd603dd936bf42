package propose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dustin/go-humanize/english"

	"leadferry/mapping"
)

// trial is what the mapping made of the sampled rows.
type trial struct {
	good        int
	unassigned  int // rows without organization: a person has to decide
	undecided   int // rows with a status that a person has to place
	others      int // rows that are invalid for another reason
	loosened    []string
	plain       bool // the draft could not be used, and the plainest mapping stands
	assignLacks bool // the mapping does not say who gets the leads
}

// mostTries is how often a draft is loosened: each time takes away one demand at
// least.
const mostTries = 6

// fit renders the draft and tries it on the sampled rows. It takes back, one after
// another, the demands that some of them do not meet, until all are good; what never
// loads gives way to a mapping that takes every column as it is.
func fit(t *table, d *draft) ([]byte, trial) {
	var loosened []string
	for range mostTries {
		yaml := render(t, d)
		result, broken, err := try(t, yaml)
		if err != nil && t.in.Encoding+t.in.Sheet != "" { // a label that the mapping does not take
			t.in.Encoding, t.in.Sheet = "", ""
			continue
		}
		if err != nil {
			break
		}
		said := d.loosen(t, broken)
		if len(said) == 0 {
			result.loosened = loosened
			return yaml, result
		}
		loosened = append(loosened, said...)
	}
	yaml := renderPlain(t)
	result, _, _ := try(t, yaml)
	result.plain = true
	return yaml, result
}

// brokenRules counts the rows that break a rule, by rule and by the columns of the
// value that broke it.
type brokenRules map[brokenRule]int

type brokenRule struct{ rule, column string }

func (b brokenRules) sorted() []brokenRule {
	return slices.SortedFunc(maps.Keys(b), func(x, y brokenRule) int {
		return cmp.Or(cmp.Compare(x.rule, y.rule), cmp.Compare(x.column, y.column))
	})
}

// try maps the sampled rows. Its error says that the mapping does not load.
func try(t *table, yaml []byte) (trial, brokenRules, error) {
	var o trial
	m, err := mapping.Parse("proposal", yaml)
	if err != nil {
		return o, nil, err
	}
	o.assignLacks = m.ForCreate() != nil
	b, err := m.Bind("input", t.shape())
	if err != nil {
		return o, nil, err
	}
	broken := brokenRules{}
	var rec mapping.Record
	for i := range t.rows {
		problems := b.Map(t.row(i), mapping.Env{File: "input", Line: i + 1, Run: "run"}, &rec)
		o.tally(problems)
		for _, p := range problems {
			broken[brokenRule{p.Rule, p.Column}]++
		}
	}
	return o, broken, nil
}

func (o *trial) tally(problems []mapping.Problem) {
	breaks := func(rule string) bool {
		return slices.ContainsFunc(problems, func(p mapping.Problem) bool { return p.Rule == rule })
	}
	switch {
	case len(problems) == 0:
		o.good++
	case breaks("status"):
		o.undecided++
	case breaks("assign"):
		o.unassigned++
	default:
		o.others++
	}
}

// loosen takes back what rows break, and says so. What a person has to decide
// stays.
func (d *draft) loosen(t *table, broken brokenRules) []string {
	var said []string
	for i := range d.fields {
		f := &d.fields[i]
		for _, b := range broken.sorted() {
			switch {
			case !f.from(b.column):
				continue
			case b.rule == "format" && f.format != "":
				f.format = ""
				f.comment = and(f.comment, "no format: "+english.Plural(broken[b], "row", "")+" would be refused")
			case b.rule == "apply" && f.apply != nil:
				f.apply = nil
			default:
				continue
			}
			said = append(said, f.key)
		}
	}
	if d.key.column != nil && d.breaksKey(broken) {
		said = append(said, "key")
		d.key = keyChoice{why: []string{shown(d.key.column.header) + " does not hold in every row, so a row's own data are its key."}}
		d.decideRest(t)
	}
	return said
}

func (f *field) from(column string) bool {
	return len(f.columns) > 0 && column == joinHeaders(f.columns)
}

// joinHeaders names columns as a mapping.Problem does.
func joinHeaders(columns []*column) string {
	joined := ""
	for i, c := range columns {
		if i > 0 {
			joined += ", "
		}
		joined += c.header
	}
	return joined
}

func (d *draft) breaksKey(broken brokenRules) bool {
	for b := range broken {
		if b.column == d.key.column.header && (b.rule == "key" || b.rule == "required") {
			return true
		}
	}
	return false
}

// renderPlain is a mapping that takes any row: everything goes in as it is.
func renderPlain(t *table) []byte {
	s := &sheet{}
	s.note(0, "leadferry init could not make sense of "+fileShown(t.in.File)+". This takes every column as it is.")
	s.put(0, "version: 1", "")
	s.put(0, "lead:", "")
	s.put(1, "type_key: imported-lead", "")
	s.put(1, "type_label: Imported lead", "")
	s.put(1, "content:", "")
	if len(t.hidden) == 0 && !t.twice {
		s.put(2, `"*": rest`, "")
	}
	s.put(2, `importRef: "{@key}"`, "")
	return s.bytes()
}
