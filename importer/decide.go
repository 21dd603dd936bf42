package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Rule says whose value stands where others have changed a field of a lead on the service, in the word of --conflict
// and of the mapping.
type Rule string

// RuleReport, or none, leaves that to a person, RuleFile sends the file's value, and RuleService keeps the service's.
const (
	RuleReport  Rule = "report"
	RuleFile    Rule = "file"
	RuleService Rule = "service"
)

// Reads says which leads a sync reads before it decides about their rows.
type Reads uint8

// ReadNothing reads none, ReadChanged those that it is about to change, and ReadAll every one.
const (
	ReadNothing Reads = iota
	ReadChanged
	ReadAll
)

// conflicts is what a run does about fields that others have changed on the service.
type conflicts struct {
	rule         Rule
	rules        mapping.ConflictRules // of single fields, which go before
	holdReopen   bool
	reads        Reads
	byExternalID bool // a lead is read by an update of the ExternalID that it has
	dry          bool // nothing is sent
}

func newConflicts(o *Options) conflicts {
	return conflicts{
		rule: o.Conflict, rules: o.Mapping.Conflicts(), holdReopen: o.HoldReopen, reads: o.CheckRemote,
		byExternalID: o.ReadByExternalID, dry: o.DryRun,
	}
}

// forStatus is the rule where the service shows this status. One that could not be read is for a person.
func (p *conflicts) forStatus(service string) Rule {
	if service == "" {
		return RuleReport
	}
	return cmp.Or(Rule(p.rules.Status[service]), p.rule, RuleReport)
}

func (p *conflicts) forExternalID() Rule { return cmp.Or(Rule(p.rules.ExternalID), p.rule, RuleReport) }

func (p *conflicts) forContent(key string) Rule {
	return cmp.Or(Rule(p.rules.Content[key]), p.rule, RuleReport)
}

// readable says whether a lead can be read that is known.
func (p *conflicts) readable(known *checkpoint.Entry) bool {
	return known.LeadID != "" && (known.ExternalID != "" || !p.byExternalID)
}

// field is a field of a lead as its three sides have it. All values are texts, and "" is none of them: the row says
// nothing, nobody knows, it was not shown.
type field struct {
	file string
	held string // by both sides, as last confirmed
	seen string // on the service

	sought  string // what an update without an answer asked for; "": there was none
	kept    string // what the service held when its value was let stand; "": it was not
	against string // what the file said then
}

// decision is what becomes of a field.
type decision struct {
	byFile, byService bool // who has changed it since it was confirmed
	then              then
}

type then uint8

const (
	leaves then = iota // it is what the row says, or the row says nothing
	sends              // the row's is to be sent
	keeps              // the service's stands against the row's
	asks               // a person decides
)

// decide says what becomes of a field: before a read, after one, after the answer to an update, and in a reconciliation
// alike. What an update without an answer asked for was not changed by others.
func decide(f field, rule Rule) (d decision) {
	said := f.file != ""
	switch {
	case said && f.file == f.seen:
	case f.kept != "":
		d.byFile = said && f.file != f.against
		d.byService = !d.byFile || f.seen != f.kept
	case f.held == "", f.seen == "", f.seen == f.sought:
		d.byFile = said
	default:
		d.byFile, d.byService = said && f.file != f.held, f.seen != f.held
	}
	switch {
	case d.byService && rule == RuleReport:
		d.then = asks
	case d.byService && rule == RuleService:
		d.then = keeps
	case said && f.file != f.seen:
		d.then = sends
	}
	return d
}

// leadBefore is what was known of a lead before something was done about it.
type leadBefore checkpoint.Entry

// confirmed is when the status was.
func (b *leadBefore) confirmed() time.Time { return confirmedAt((*checkpoint.Entry)(b)) }

func confirmedAt(known *checkpoint.Entry) time.Time {
	if known.Confirmed.IsZero() {
		return known.Updated
	}
	return known.Confirmed
}

// moved says that others were seen to change the ExternalID: it is the service's then, and what was confirmed, or what
// the file said when the service's was let stand, is the one that the lead is to have.
func (b *leadBefore) moved() bool {
	return b.State == checkpoint.Created && b.Unsettled == "" && b.WantLink != "" && b.WantLink != b.ExternalID
}

// linked is the ExternalID that both sides were last known to hold.
func (b *leadBefore) linked() string {
	if b.moved() {
		return b.WantLink
	}
	return b.ExternalID
}

// unreadable stands for a status that a lead lacks that was shown.
const unreadable = "?"

// status is that field, beside what is shown of the lead or, where that is nil, what was seen before.
func (b *leadBefore) status(file string, shown *leadapi.Lead) field {
	f := field{file: file, seen: b.Seen.Status}
	if b.State.HasLead() {
		f.held = b.Status
	}
	if b.Seen.Kept {
		f.kept, f.against = b.Seen.Status, b.Seen.Against
	}
	if b.Unsettled != "" {
		f.sought = b.Sought
	}
	switch {
	case shown != nil:
		f.seen = cmp.Or(shown.Status, unreadable)
	case f.seen == "" && b.Unsettled == "":
		f.seen = f.held
	}
	return f
}

// against is what the file says when the service's status is let stand: of a row without one what it said last.
func (b *leadBefore) against(file string) string {
	switch {
	case file != "":
		return file
	case b.Seen.Kept:
		return b.Seen.Against
	}
	return b.Status
}

// external is an ExternalID among the values of the field; a lead may have none.
func external(id string) string { return "=" + id }

// externalOf is what a row says of it.
func externalOf(rec *mapping.Record) string {
	if rec.ExternalID == "" && !rec.Unlinks {
		return ""
	}
	return external(rec.ExternalID)
}

// external is that field, as status is.
func (b *leadBefore) external(file string, shown *leadapi.Lead) field {
	f := field{file: file, held: external(b.linked())}
	if b.WantLink != "" && !b.moved() {
		f.sought = external(b.WantLink)
	}
	switch {
	case shown != nil && shown.HasExternal:
		f.seen = external(shown.ExternalID)
	case b.moved():
		f.seen = external(b.ExternalID)
	case b.Unsettled == "" || b.WantLink == "":
		f.seen = f.held
	}
	return f
}

// content is a content key by its digests. The service shows none of it before a read.
func (b *leadBefore) content(file checkpoint.ContentDigest) field {
	f := field{file: string(file.Value[:])}
	at := slices.IndexFunc(b.Content, func(d checkpoint.ContentDigest) bool { return d.Name == file.Name })
	if at >= 0 && b.Unsettled == "" && b.State.HasLead() {
		f.held = string(b.Content[at].Value[:])
		f.seen = f.held
	}
	return f
}

// Changes are the parts of a Record that are to be sent. Volatile fields are never among them.
type Changes struct {
	Status, ExternalID bool
	Fields             []int // of the Record's Content
}

func (s Changes) none() bool { return !s.Status && !s.ExternalID && len(s.Fields) == 0 }

// diff is a row beside its lead, field by field.
type diff struct {
	Send              Changes
	status, external  decision
	byFile, byService bool     // who has changed any field since it was confirmed
	asks              []string // for people: what others have changed that a person decides about
	stands            []string // names of the fields, but Status, of which the service's value is let stand
	differ            []int    // content that the service holds otherwise than the row, as far as is known
	keys              []string // names of the content keys that were changed
	ahead             []ahead  // the content that others have changed
}

// ahead is a field of the Record's Content that others have changed, and perhaps the file, too.
type ahead struct {
	field int
	both  bool
}

func (d *diff) add(one decision) decision {
	d.byFile, d.byService = d.byFile || one.byFile, d.byService || one.byService
	return one
}

// For people: a field, and what others have changed.
const (
	externalField = "ExternalID"

	externalMoved = "its ExternalID was changed on the service"
	contentMoved  = "its content was changed on the service"
)

// compare holds a row against its lead: against what the service shows of it or, where that is nil, what was seen
// before. Content that the row would not change is looked at only where all is. Fields that the row does not send are
// the service's own business, but for the status.
func (p *conflicts) compare(it *item, before *leadBefore, shown *leadapi.Lead, all bool, sums sums) (d diff) {
	service := before.Seen.Status
	if shown != nil {
		service = shown.Status
	}
	d.status = d.add(decide(before.status(it.rec.Status, shown), p.forStatus(service)))
	if d.Send.Status = d.status.then == sends; d.status.then == asks {
		d.asks = append(d.asks, fmt.Sprintf("the lead's status on the service is %s; %s was confirmed on %s",
			cmp.Or(service, "not readable"), before.Status, clock(before.confirmed())))
	}
	if file := externalOf(&it.rec); file != "" {
		d.external = d.add(decide(before.external(file, shown), p.forExternalID()))
		switch d.external.then {
		case sends:
			d.Send.ExternalID = true
		case asks:
			d.asks = append(d.asks, externalMoved)
		case keeps:
			d.stands = append(d.stands, externalField)
		}
	}
	if shown == nil && before.State.HasLead() && before.Unsettled == "" && slices.Equal(before.Content, it.sums) {
		return d
	}
	p.compareContent(&d, it, before, shown, all, sums)
	return d
}

func (p *conflicts) compareContent(d *diff, it *item, before *leadBefore, shown *leadapi.Lead, all bool, sums sums) {
	var asked []string
	n := -1
	for i := range it.rec.Content {
		f := &it.rec.Content[i]
		if f.Volatile {
			continue
		}
		n++
		c := before.content(it.sums[n])
		if shown != nil && shown.Content != nil {
			if !all && c.file == c.held {
				continue
			}
			value := sums.SumValue(f.Name, canonical(shown.Content[f.Name]))
			c.seen = string(value[:])
		}
		one := d.add(decide(c, p.forContent(f.Name)))
		if one.byFile || one.byService {
			d.keys = append(d.keys, f.Name)
		}
		if one.byService {
			d.ahead = append(d.ahead, ahead{i, one.byFile})
		}
		switch one.then {
		case sends:
			d.Send.Fields = append(d.Send.Fields, i)
		case asks:
			asked = append(asked, f.Name)
		case keeps:
			d.stands = append(d.stands, fmt.Sprintf("%q", f.Name))
		}
		if one.then != leaves {
			d.differ = append(d.differ, i)
		}
	}
	if asked != nil {
		d.asks = append(d.asks, contentMoved+": "+spelling.List(asked, mostListed, nil))
	}
}

// standing says which of the service's values are let stand against the row's, or nothing.
func (d *diff) standing(status string) string {
	var list []string
	if d.status.then == keeps {
		list = append(list, "the service's status is kept: "+status)
	}
	if d.stands != nil {
		list = append(list, "the service's value is kept: "+spelling.List(d.stands, mostListed, nil))
	}
	return strings.Join(list, "; ")
}

// answer is what the service shows of a lead, or was seen to show.
type answer struct {
	*leadapi.Lead
	at         time.Time
	sent       Changes // what it is the answer to
	remembered bool    // by an earlier run: its content is not known
}

// remembered is what an earlier run has seen that was changed by others.
func (b *leadBefore) remembered(rec *mapping.Record) *answer {
	lead := &leadapi.Lead{
		ID: b.LeadID, Status: b.Seen.Status, OwnerID: b.Seen.Organization, ExternalID: b.ExternalID,
		HasExternal: b.moved() && externalOf(rec) != "",
	}
	return &answer{Lead: lead, at: b.Seen.At, remembered: true}
}

// sight is what is kept of the status that the service shows. A decision to let it stand holds as long as it is that.
func (b *leadBefore) sight(a *answer) checkpoint.Sight {
	if a.Status == "" {
		return b.Seen
	}
	s := checkpoint.Sight{At: a.at.UTC().Truncate(time.Millisecond), Status: a.Status, Organization: a.OwnerID}
	if b.Seen.Kept && b.Seen.Status == a.Status {
		s.Kept, s.Against = true, b.Seen.Against
	}
	return s
}

// seen takes over what the service shows of a lead beside what was confirmed. Where others have changed the
// ExternalID, the one that was confirmed stays beside it as what the lead is to have, or the row's where the service's
// is let stand: rows find the lead by both.
func (d *diff) seen(e *checkpoint.Entry, rec *mapping.Record, before *leadBefore, a *answer) {
	if e.Seen = before.sight(a); a.Status != "" && d.status.then == keeps {
		e.Seen.Kept, e.Seen.Against = true, before.against(rec.Status)
	}
	confirmed := before.linked()
	switch shown := a.ExternalID; {
	case !a.HasExternal:
		if a.sent.ExternalID && rec.Unlinks {
			e.ExternalID, e.WantLink = "", ""
		}
	case e.State == checkpoint.Partial:
		e.ExternalID = shown
		if shown != "" && (shown == rec.ExternalID || shown == e.WantLink) {
			e.State, e.WantLink = checkpoint.Created, ""
		}
	case shown == confirmed, externalOf(rec) == "", externalOf(rec) == external(shown):
		e.ExternalID, e.WantLink = shown, ""
	case d.external.then == keeps:
		e.ExternalID, e.WantLink = shown, cmp.Or(rec.ExternalID, confirmed)
	default:
		e.ExternalID, e.WantLink = shown, cmp.Or(confirmed, rec.ExternalID)
	}
}

// confirmed takes what the service shows over in the place of what was confirmed, but for a status that others gave the
// lead and that is not the row's.
func (d *diff) confirmed(e *checkpoint.Entry, rec *mapping.Record, before *leadBefore, a *answer) {
	d.seen(e, rec, before, a)
	e.Unsettled, e.Sought, e.Confirmed = "", "", time.Time{}
	if a.remembered {
		e.Confirmed = a.at
	}
	if a.Status != "" && (a.sent.Status || !d.status.byService) {
		e.Status, e.Seen = a.Status, checkpoint.Sight{}
	}
	if e.Seen.Status != "" { // what was confirmed stands as of then
		e.Confirmed = before.confirmed()
	}
	e.Organization, e.Location = cmp.Or(a.OwnerID, e.Organization), cmp.Or(a.LocationName, e.Location)
}

// learned takes over what is seen of a lead to which nothing is to be sent, and reports whether more is confirmed by
// it than was.
func (d *diff) learned(e *checkpoint.Entry, it *item, a *answer) (more bool) {
	before := leadBefore(*e)
	content := before.Content
	if a.Content != nil {
		if before.Unsettled != "" {
			content = nil // the update that got no answer may have changed any of it
		}
		content = merged(content, it, d.differ, nil)
	}
	more = before.Unsettled != "" || a.Status != "" && a.Status != before.Status && !d.status.byService ||
		!slices.Equal(content, before.Content)
	if !more || a.remembered && before.Unsettled != "" {
		d.seen(e, &it.rec, &before, a)
		return false
	}
	d.confirmed(e, &it.rec, &before, a)
	e.Content, e.Synced = content, true
	return true
}

// news reports whether what earlier runs have seen of the lead is to be taken over, now that the row says what it does.
func (d *diff) news(known *checkpoint.Entry, it *item) bool {
	before := (*leadBefore)(known)
	if known.Seen.Status == "" && !before.moved() {
		return false
	}
	e := *known
	return d.learned(&e, it, before.remembered(&it.rec)) || e.Seen.Kept != known.Seen.Kept ||
		e.Seen.Against != known.Seen.Against || e.ExternalID != known.ExternalID || e.WantLink != known.WantLink
}
