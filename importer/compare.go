package importer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Reads says which leads a sync reads before it decides about their rows.
type Reads uint8

const (
	ReadNothing Reads = iota // the default
	ReadChanged              // those that the sync would change
	ReadAll
)

func (p *planner) readable(known *checkpoint.Entry) bool {
	return known.LeadID != "" && (known.ExternalID != "" || !p.o.ReadByExternalID)
}

// field is a field of a lead with its three values: in the file, as last confirmed, and on the service. "" means that
// the row has no value, nothing was confirmed, or the service did not show it. The rest is of earlier runs.
type field struct {
	file      string
	confirmed string // as last confirmed
	seen      string // on the service

	sought  string // what an update without an answer asked for, or ""
	kept    string // the service's value that won over the file's, or ""
	against string // the file's value at that time
}

type decision struct {
	byFile, byService bool // who changed it since it was confirmed
	choice            choice
}

func (d decision) changed() bool { return d.byFile || d.byService }

type choice uint8

const (
	agrees choice = iota // nothing: the values agree, or the row is silent
	sends                // send the row's value
	keeps                // keep the service's value; the row has another one, or none
	asks                 // let a person decide
)

// decide says what to do about one field: before a read, after a read or an update, and in reconcile (see compare).
//
//	file  confirmed  service   changed by
//	A     A          A         nobody
//	B     A          A         the file
//	A, –  A          B         the service
//	C     A          B         both
//	B     A          B         nobody any more
//	B     –          A         the file: nothing was confirmed, or nothing was seen
//
// Once the service's value has won over the file's, this pair is no change; another value on either side is one. If the
// service shows what our own unanswered update asked for, nobody else changed the field.
func decide(f field, rule mapping.Rule) (d decision) {
	said := f.file != ""
	switch {
	case said && f.file == f.seen:
	case f.kept != "":
		d.byFile = said && f.file != f.against
		d.byService = !d.byFile || f.seen != f.kept
	case f.confirmed == "", f.seen == "", f.seen == f.sought:
		d.byFile = said
	default:
		d.byFile, d.byService = said && f.file != f.confirmed, f.seen != f.confirmed
	}
	switch {
	case d.byService && rule == mapping.RuleReport:
		d.choice = asks
	case d.byService && rule == mapping.RuleService:
		d.choice = keeps
	case said && f.file != f.seen:
		d.choice = sends
	}
	return d
}

// compare compares a row with its lead: the status, and the fields that the row sends. shown is the lead as the service
// shows it now; nil: as it was last seen. all: compare content that the file did not change, too: that is for the
// answer to an update, which may confirm it, and for runs that ask for all that others changed.
func (p *planner) compare(it *item, before *checkpoint.Entry, shown *leadapi.Lead, all bool) (cs changes) {
	sums := it.contentDigests(p.digests)
	if d := decide(statusOf(before, it.rec.Status, shown), p.rules.ForStatus(shownStatus(before, shown))); d.changed() {
		cs = append(cs, change{at: atStatus, name: "Status", decision: d})
	}
	own := p.rules.Or(p.rules.ExternalID)
	d := decide(externalOf(before, it.rec.ExternalID, shown), own)
	if it.rec.ExternalID != "" && d.changed() {
		cs = append(cs, change{at: atExternal, name: "ExternalID", own: own, decision: d})
	}
	if shown == nil && before.State.HasLead() && before.Unsettled == "" && slices.Equal(before.Content, sums) {
		return cs
	}
	n := 0 // index in sums
	for i := range it.rec.Content {
		name := it.rec.Content[i].Name
		if it.rec.Content[i].Volatile {
			continue
		}
		sum := sums[n]
		n++
		f := field{file: string(sum.Value[:])} // the values are digests
		at := indexOf(before.Content, sum.Name)
		if at >= 0 && before.State.HasLead() && before.Content[at].Value != [4]byte{} {
			f.confirmed = string(before.Content[at].Value[:])
			f.seen = f.confirmed
		}
		if shown != nil && shown.Content != nil {
			if !all && f.file == f.confirmed {
				continue
			}
			value := p.digests.SumValue(name, mapping.Canonical(shown.Content[name]))
			f.seen = string(value[:])
		}
		own := p.rules.Content[name]
		cs = append(cs, change{i, name, sum, own, decide(f, p.rules.Or(own))})
	}
	return cs
}

// shownStatus is the status that the service shows, or was seen to show last.
func shownStatus(b *checkpoint.Entry, shown *leadapi.Lead) string {
	if shown != nil {
		return shown.Status
	}
	return cmp.Or(b.Seen.Status, b.Status)
}

// statusOf returns the status as a field. shown is the lead in an answer; nil: what was seen before counts.
func statusOf(b *checkpoint.Entry, file string, shown *leadapi.Lead) field {
	f := field{file: file, seen: b.Seen.Status}
	if b.State.HasLead() {
		f.confirmed = b.Status
	}
	if b.Seen.Against != "" {
		f.kept, f.against = b.Seen.Status, b.Seen.Against
	}
	if b.Unsettled != "" && b.Sought != "" { // what was seen or kept is older than that update
		if f.sought, f.seen = b.Sought, ""; shown == nil || shown.Status != f.kept {
			f.kept = ""
		}
	}
	switch {
	case shown != nil:
		f.seen = cmp.Or(shown.Status, "?") // "" would mean that the service did not show it
	case f.seen == "" && (b.Unsettled == "" || b.Sought == ""):
		f.seen = f.confirmed
	}
	return f
}

// external returns an ExternalID as the value of its field. A lead without ExternalID has the value "=", not "".
func external(id string) string { return "=" + id }

// externalOf returns the ExternalID as a field; shown as in statusOf.
func externalOf(b *checkpoint.Entry, file string, shown *leadapi.Lead) field {
	f := field{file: external(file), confirmed: external(b.ConfirmedLink())}
	if b.WantLink != "" && !b.Moved() {
		f.sought = external(b.WantLink)
	}
	switch {
	case shown != nil && shown.HasExternal:
		f.seen = external(shown.ExternalID)
	case b.Moved():
		f.seen = external(b.ExternalID)
	case b.Unsettled == "" || b.WantLink == "":
		f.seen = f.confirmed
	}
	return f
}

// change is what the comparison of a field shows: who changed it, and what to do about it.
type change struct {
	at   int    // its index in the Content of the Record, or one of those below
	name string // for people
	sum  checkpoint.ContentDigest
	own  mapping.Rule // the rule of the ExternalID, or of this content key alone; "": it has none
	decision
}

// Indexes of the fields that are not content.
const (
	atStatus   = -1
	atExternal = -2
)

// changes is how a row differs from its lead: all content that was compared; status and ExternalID only if changed.
type changes []change

// of returns the decision about a field; it is zero if nobody changed the field.
func (cs changes) of(at int) decision {
	if i := slices.IndexFunc(cs, func(c change) bool { return c.at == at }); i >= 0 {
		return cs[i].decision
	}
	return decision{}
}

// chosen returns the indexes (change.at) of the fields with this choice.
func (cs changes) chosen(what choice) (fields []int) {
	for _, c := range cs {
		if c.choice == what {
			fields = append(fields, c.at)
		}
	}
	return fields
}

func (cs changes) names(are func(change) bool) (names []string) {
	for _, c := range cs {
		if are(c) {
			names = append(names, c.name)
		}
	}
	return names
}

func (cs changes) byFile() bool {
	return slices.ContainsFunc(cs, func(c change) bool { return c.byFile })
}

// named returns the names of the fields with this choice. For the status it returns the words in status.
func (cs changes) named(what choice, status string) []string {
	names := cs.names(func(c change) bool { return c.choice == what })
	if names != nil && cs.of(atStatus).choice == what {
		names[0] = status
	}
	return names
}

func listed(prefix string, names []string) string {
	if names == nil {
		return ""
	}
	return prefix + spelling.List(names, mostListed, nil)
}

const byOthers, serviceWins = "changed on the service: ", "the service's value is kept: "

// changedTo tells people what others changed the status to.
func changedTo(b *checkpoint.Entry, service string) string {
	return fmt.Sprintf("Status (%s was confirmed on %s, now it is %s)", b.Status,
		spelling.Time(b.ConfirmedAt(), spelling.Seconds), cmp.Or(service, "not readable"))
}

func indexOf(list []checkpoint.ContentDigest, name [4]byte) int {
	return slices.IndexFunc(list, func(d checkpoint.ContentDigest) bool { return d.Name == name })
}

// answer is what the service shows of a lead, now or in an earlier run.
type answer struct {
	*leadapi.Lead
	at   time.Time
	sent []int // indexes of the fields that were sent (change.at)
}

// remembered returns what an earlier run saw of the lead, as an answer without content.
func remembered(b *checkpoint.Entry, rec *mapping.Record) *answer {
	lead := &leadapi.Lead{
		ID: b.LeadID, Status: b.Seen.Status, OwnerID: b.Seen.Organization, ExternalID: b.ExternalID,
		HasExternal: b.Moved() && rec.ExternalID != "",
	}
	return &answer{Lead: lead, at: b.Seen.At}
}

// see stores the status in an answer. A status that won over the file's wins as long as answers show it. When an answer
// shows another one, the winner becomes the confirmed status, unless the row still has the value that lost.
func see(e, before *checkpoint.Entry, rec *mapping.Record, a *answer) {
	was := before.Seen
	if e.Seen = was; a.Status == "" {
		return
	}
	e.Seen = checkpoint.Sight{
		At: a.at.UTC().Truncate(time.Millisecond), Status: a.Status, Organization: a.OwnerID, Content: was.Content,
	}
	if was.Status == a.Status {
		e.Seen.Against = was.Against
	} else if was.Against != "" && rec.Status != "" && rec.Status != was.Against {
		e.Status = was.Status
	}
}

// takeSeen stores what the service shows of a lead in the entry, beside what was confirmed. A partial lead that has an
// ExternalID becomes created. If others changed the ExternalID, the entry has theirs, and in WantLink the confirmed
// one, or the row's if theirs wins: rows find the lead by both.
func (cs changes) takeSeen(e *checkpoint.Entry, rec *mapping.Record, before *checkpoint.Entry, a *answer) {
	if see(e, before, rec, a); a.Status != "" && cs.of(atStatus).choice == keeps {
		e.Seen.Against = cmp.Or(rec.Status, before.Seen.Against, before.Status) // or what it won against before
	}
	if a.Content != nil {
		e.Seen.Content = slices.ContainsFunc(cs, func(c change) bool { return c.at >= 0 && c.byService })
	}
	cs.takeExternal(e, rec, before, a)
}

// takeExternal does what takeSeen does, for the ExternalID alone.
func (cs changes) takeExternal(e *checkpoint.Entry, rec *mapping.Record, before *checkpoint.Entry, a *answer) {
	confirmed := before.ConfirmedLink()
	if e.State == checkpoint.Partial {
		confirmed = e.WantLink
	}
	e.AsksLink = e.AsksLink && !a.HasExternal // the answer shows whether that was applied
	switch shown := a.ExternalID; {
	case !a.HasExternal, e.State == checkpoint.Partial && shown == "":
		return
	case shown == confirmed, rec.ExternalID == "", rec.ExternalID == shown:
		e.ExternalID, e.WantLink = shown, ""
	case cs.of(atExternal).choice == keeps:
		e.ExternalID, e.WantLink = shown, rec.ExternalID
	default:
		e.ExternalID, e.WantLink = shown, cmp.Or(confirmed, rec.ExternalID)
	}
	if e.State == checkpoint.Partial { // the row's or, if others linked it, another one
		e.State = checkpoint.Created
	}
}

// takeConfirmed stores the values of an answer as the confirmed ones and removes the mark. A status that others set and
// that was not sent is stored as seen.
func (cs changes) takeConfirmed(e *checkpoint.Entry, rec *mapping.Record, before *checkpoint.Entry, a *answer) {
	cs.takeSeen(e, rec, before, a)
	e.Unsettled, e.Sought, e.AsksLink, e.Confirmed = "", "", false, a.at
	if a.Status != "" && (slices.Contains(a.sent, atStatus) || !cs.of(atStatus).byService) {
		e.Status, e.Seen = a.Status, checkpoint.Sight{Content: e.Seen.Content}
	}
	if e.Seen.Status != "" { // the confirmed status is older than this answer
		e.Confirmed = before.ConfirmedAt()
	}
	e.Organization, e.Location = cmp.Or(a.OwnerID, e.Organization), cmp.Or(a.LocationName, e.Location)
	e.Synced, e.Content = true, slices.Clone(e.Content)
	for _, c := range cs { // a field that was sent and came back different is dropped: its value is not known
		at := indexOf(e.Content, c.sum.Name)
		switch {
		case c.at < 0:
		case c.choice == agrees && at >= 0:
			e.Content[at] = c.sum
		case c.choice == agrees:
			e.Content = append(e.Content, c.sum)
		case at >= 0 && slices.Contains(a.sent, c.at):
			e.Content = slices.Delete(e.Content, at, at+1)
		}
	}
}

// takeRead stores what is seen of a lead that needs no update, and reports whether more is confirmed than before.
func (cs changes) takeRead(e *checkpoint.Entry, rec *mapping.Record, a *answer) (more bool) {
	before := *e
	cs.takeConfirmed(e, rec, &before, a)
	if before.Unsettled != "" || e.Status != before.Status || !slices.Equal(e.Content, before.Content) {
		return true
	}
	*e = before
	cs.takeSeen(e, rec, &before, a)
	return false
}

// mustStoreSeen reports whether the entry changes if this row is compared with what earlier runs saw (StoreSeen).
func (cs changes) mustStoreSeen(it *item) bool {
	known := &it.entry
	if known.Unsettled != "" || (known.Seen.Status == "" || known.Seen.Status == known.Status) && !known.Moved() {
		return false
	}
	e := *known
	return cs.takeRead(&e, &it.rec, remembered(known, &it.rec)) || e.Seen.Against != known.Seen.Against ||
		e.ExternalID != known.ExternalID || e.WantLink != known.WantLink
}
