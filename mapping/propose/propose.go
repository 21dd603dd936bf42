// Package propose writes a mapping file for an input that it has seen a sample
// of: the brain of leadferry init.
//
// It stands before mapping, whose language it writes and whose rules judge the
// outcome, and reads no file itself:
//
//	Input ─▶ table (cells measured) ─▶ parts (which column plays which part)
//	      ─▶ draft (decisions) ─▶ YAML ─▶ mapping.Parse, Bind, Map of the sample ─▶ Proposal
//
// A part is given to a column by its name and by its cells: both have a say, and
// cells that contradict the name win. The words that it knows lie in words/.
//
// Promises: the same Input gives the same Proposal; the YAML is a mapping file
// that loads, and every sampled row is valid under it unless a person has to
// decide something, which a comment and a note then say; no cell of a row stands
// in comments or notes, but for words of a status column that holds few and short
// ones. Any Input is answered, however odd.
package propose

import (
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// Input is a sample of a file. Encoding, Sheet and Delimiter are set where the
// mapping has to say them: flags named them, or the file is not what a reader
// takes it for by itself.
type Input struct {
	File      string // how people call the file; "-" is standard input
	Format    string // csv, tsv, jsonl or xlsx
	Delimiter rune
	Encoding  string
	Sheet     string
	NoHeader  bool // the Columns are made up, and the mapping must list them

	Columns  []string
	Rows     [][]string // a cell for each column; a shorter row has empty ones
	Complete bool       // Rows are all rows of the file
	Bad      int        // rows that could not be read and are not in Rows
}

// FindHeader makes the first line of a table a row where it is a lead and no header:
// it has an e-mail address, or no name that is known and two cells at least that look
// like those below them. The columns have made-up names then.
func (in *Input) FindHeader() {
	if in.Format == "jsonl" || in.NoHeader || !in.headless() {
		return
	}
	in.NoHeader = true
	in.Rows = append([][]string{in.Columns}, in.Rows...)
	in.Columns = make([]string, len(in.Columns))
	for i := range in.Columns {
		in.Columns[i] = "col" + itoa(i+1)
	}
}

// telling are the kinds of cells that no header has for names.
var telling = []kind{kindEmail, kindPhone, kindUUID, kindDate, kindSlashDate, kindURL, kindZeroLed, kindCode, kindNumber}

func (in *Input) headless() bool {
	alike, named := 0, false
	for i, cell := range in.Columns {
		kinds := kindsOf(cell)
		if cell == "" || strings.HasPrefix(cell, reserved) {
			continue
		}
		if kinds.has(kindEmail) {
			return true
		}
		named = named || readName(cell).known
		if slices.ContainsFunc(telling, func(k kind) bool { return kinds.has(k) && in.mostly(i, k) }) {
			alike++
		}
	}
	return !named && alike > 1
}

// mostly reports whether most of the filled cells of a column are of a kind.
func (in *Input) mostly(column int, k kind) bool {
	filled, of := 0, 0
	for _, row := range in.Rows {
		if column < len(row) && row[column] != "" {
			filled++
			if kindsOf(row[column]).has(k) {
				of++
			}
		}
	}
	return of > 0 && 2*of > filled
}

// Proposal is a mapping file of at most 1 MiB, and what people should know of
// it: sentences that say what was decided and what they have to decide.
type Proposal struct {
	YAML  []byte
	Notes []string
}

// Propose writes a mapping file for the sampled input.
func Propose(in Input) Proposal {
	t := newTable(in)
	d := newDraft(t)
	yaml, checked := fit(t, d)
	return Proposal{YAML: yaml, Notes: notes(t, d, checked)}
}

// draft is what was decided, before it is written down.
type draft struct {
	origin       origin
	key          keyChoice
	organization organizationChoice
	status       *statusChoice
	otherStatus  *statusChoice
	parts        map[part]*column
	fields       []field
	rest         rest
}

// newDraft decides from the surest to the least sure: a column that plays one
// part is not looked at for the next.
func newDraft(t *table) *draft {
	d := &draft{origin: t.originOf()}
	taken := map[*column]bool{}
	if d.status, d.otherStatus = t.chooseStatus(); d.status != nil && d.status.live {
		d.status.column.part = partStatus
		taken[d.status.column] = true
	}
	if d.organization = t.chooseOrganization(); d.organization.live {
		d.organization.column.part = partOrganization
		taken[d.organization.column] = true
	}
	d.parts = t.assignParts(taken)
	d.fields = t.contentOf(d.parts)
	d.key = t.chooseKey(d.parts)
	d.decideRest(t)
	return d
}

// decideRest finds what the fields, key and status leave over.
func (d *draft) decideRest(t *table) {
	used := map[*column]bool{}
	for _, f := range d.fields {
		for _, c := range f.columns {
			used[c] = true
		}
	}
	if d.key.column != nil && d.key.external {
		used[d.key.column] = true
	}
	if d.organization.live {
		used[d.organization.column] = true
	}
	if d.status != nil && d.status.live {
		used[d.status.column] = true
	}
	d.rest = t.restOf(used, d.fields)
}

// organizationChoice is how the leads find their dealers.
type organizationChoice struct {
	column *column // names the organization, or nil
	live   bool    // its cells can be the service's IDs; else it is offered in a comment
	why    string
}

// chooseOrganization looks for the column that names the dealer of each lead.
func (t *table) chooseOrganization() organizationChoice {
	var best organizationChoice
	most := 0.0
	for _, c := range t.columns {
		o := t.organizationOf(c)
		if o.column == nil {
			continue
		}
		score := c.name.strength(partOrganization) + c.profile.share(kindUUID) + 0.5*c.profile.fill()
		if o.live {
			score += 2
		}
		if score > most {
			best, most = o, score
		}
	}
	return best
}

// organizationOf judges one column: IDs are few for many leads. Names of dealers
// and the numbers of other systems need a person.
func (t *table) organizationOf(c *column) organizationChoice {
	p, strength := c.profile, c.name.strength(partOrganization)
	if p.filled == 0 && p.rows > 0 {
		return organizationChoice{}
	}
	repeats := p.filled < 20 || p.distinct < p.filled
	empties := t.empties(c)
	switch {
	case strength >= surePart && p.rows == 0:
		return organizationChoice{c, true, "by its name: no row was there to look at"}
	case strength >= leastScore && p.share(kindUUID) >= 0.9 && repeats:
		return organizationChoice{c, true, and("by name and values, "+english.Plural(p.distinct, "dealer", ""), empties)}
	case strength >= leastScore && p.share(kindCode) >= 0.9 && nothingLike(p, kindDate, kindEmail, kindDamaged) && repeats && p.longest <= mostKey:
		return organizationChoice{c, true, and("by name and values, "+english.Plural(p.distinct, "code", "")+": the service's own IDs?", empties)}
	case strength >= surePart && p.share(kindSolid) >= 0.9:
		return organizationChoice{c, false, "another system's numbers, by their looks"}
	case strength >= leastScore && c.name.strength(partCompany) == 0 && nothingLike(p, kindEmail, kindDate, kindYesNo):
		return organizationChoice{c, false, "says where, but not by an ID"}
	case strength == 0 && !c.name.known && !c.name.foreign && p.share(kindUUID) == 1 && p.filled >= 10 && p.distinct*2 <= p.filled:
		return organizationChoice{c, false, "IDs that many rows share: dealers?"}
	}
	return organizationChoice{}
}
