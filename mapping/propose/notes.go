package propose

import (
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// notes are sentences for the person who asked for the proposal.
func notes(t *table, d *draft, o trial) []string {
	list := []string{t.in.size() + "."}
	if o.plain {
		return append(list, "The columns could not be made sense of: the mapping takes every column as it is.")
	}
	if t.in.NoHeader {
		list = append(list, "The first line looks like a lead and not like a header: the mapping says header: false and names the columns itself. If it is the header after all, take both out of source.")
	}
	list = append(list, keyNote(d), assignNote(d, o), statusNote(d, o))
	if len(t.hidden) > 0 {
		list = append(list, "Left out, since they look like secrets: "+sayNames(headersOf(t.hidden), 20)+".")
	}
	if len(t.nameless) > 0 {
		list = append(list, english.Plural(len(t.nameless), "column", "")+" cannot be named in a mapping; rename them to use them.")
	}
	for _, f := range o.loosened {
		if f != "key" {
			list = append(list, "Some rows do not fit what leads usually have in "+f+", so nothing is asked of it.")
		}
	}
	if len(t.rows) > 0 {
		list = append(list, verdict(t, o))
	}
	return list
}

func keyNote(d *draft) string {
	if d.key.column == nil {
		return "No column can be the key, so a row's own data are: correcting a row makes another lead."
	}
	if d.key.lower {
		return "The key is " + shown(d.key.column.header) + ", for want of a number of the CRM's own; keys are kept in the checkpoint."
	}
	return "The key is " + shown(d.key.column.header) + "."
}

func assignNote(d *draft, o trial) string {
	if !d.organization.live {
		return "A person has to decide who gets the leads: fill in one of the lines under assign. Until then validate and sync work, import does not."
	}
	said := "The organization is " + shown(d.organization.column.header) + ": make sure that these are the service's own IDs."
	if o.unassigned > 0 {
		said += " A person has to decide about " + english.Plural(o.unassigned, "row", "") + " without one: fill in one more line under assign."
	}
	return said
}

func statusNote(d *draft, o trial) string {
	st := d.status
	switch {
	case st == nil:
		return "No status was found: the leads become New."
	case !st.live:
		return shown(st.column.header) + " may be a status, but " + st.silence() + ": the leads become New unless a person fills in its table."
	}
	var open []string
	for _, w := range st.words {
		if w.status < 0 {
			open = append(open, quoted(w.text))
		}
	}
	if len(open) == 0 {
		return "The status is " + shown(st.column.header) + ", and each of its words has a place."
	}
	return "A person has to place " + english.Plural(len(open), "word", "") + " of " + shown(st.column.header) + " under lead.status: " + strings.Join(open, ", ") + "."
}

// verdict says how the sampled rows fare under the mapping.
func verdict(t *table, o trial) string {
	if o.good == len(t.rows) {
		return "Tried on " + t.extent() + ": all good."
	}
	said := "Tried on " + t.extent() + ": " + itoa(o.good) + " good"
	for _, part := range []struct {
		rows int
		why  string
	}{{o.undecided, "with a status that is not mapped yet"}, {o.unassigned, "without organization"}, {o.others, "invalid for another reason"}} {
		if part.rows > 0 {
			said += ", " + itoa(part.rows) + " " + part.why
		}
	}
	return said + "."
}

func itoa(n int) string { return strconv.Itoa(n) }

// extent names the rows that were looked at, for a sentence.
func (t *table) extent() string {
	n := len(t.rows)
	switch {
	case n == 1 && t.in.Complete:
		return "the one row"
	case n == 1:
		return "the first row"
	case n == 2 && t.in.Complete:
		return "both rows"
	case t.in.Complete:
		return "all " + english.Plural(n, "row", "")
	}
	return "the first " + english.Plural(n, "row", "")
}

// empties says in how many rows a column holds nothing, or "".
func (t *table) empties(c *column) string {
	switch p := c.profile; {
	case p.rows == 0 || p.full():
		return ""
	default:
		return "empty in " + strings.TrimSuffix(strings.TrimSuffix(english.Plural(p.rows-p.filled, "row", ""), "rows"), "row") + "of " + english.Plural(p.rows, "row", "")
	}
}

// and joins remarks that hold something.
func and(remarks ...string) string {
	var said []string
	for _, r := range remarks {
		if r != "" {
			said = append(said, r)
		}
	}
	return strings.Join(said, "; ")
}
