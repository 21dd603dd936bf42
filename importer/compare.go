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

// Rule says whose value wins if others changed a field on the service, in the words of --conflict and of the mapping.
type Rule string

// The rules.
const (
	RuleReport  Rule = "report"  // or "": a person decides
	RuleFile    Rule = "file"    // send the file's value
	RuleService Rule = "service" // keep the service's value
)

// Reads says which leads a sync reads before it decides about their rows.
type Reads uint8

// The reads.
const (
	ReadNothing Reads = iota
	ReadChanged       // those that the sync would change
	ReadAll
)

// conflicts says what a run does about fields that others changed on the service.
type conflicts struct {
	rule  Rule
	rules mapping.ConflictRules // of single fields; they win over rule
}

// forStatus is the rule if the service shows this status. If the status could not be read, a person decides.
func (p *conflicts) forStatus(service string) Rule {
	if service == "" {
		return RuleReport
	}
	return cmp.Or(Rule(p.rules.Status[service]), p.rule, RuleReport)
}

func (p *conflicts) forExternalID() Rule { return cmp.Or(Rule(p.rules.ExternalID), p.rule, RuleReport) }

func (p *planner) readable(known *checkpoint.Entry) bool {
	return known.LeadID != "" && (known.ExternalID != "" || !p.o.ReadByExternalID)
}

// field is a field of a lead with its three values: in the file, as last confirmed, and on the service. "" is no value:
// the row is silent, nothing was confirmed, the service did not show it. The others say what happened before.
type field struct {
	file string
	held string // as last confirmed
	seen string // on the service

	sought  string // what an update without an answer asked for, or ""
	kept    string // the service's value that won over the file's, or ""
	against string // the file's value at that time
}

type decision struct {
	byFile, byService bool // who changed it since it was confirmed
	then              then
}

type then uint8

const (
	leaves then = iota // nothing: the values agree, or the row is silent
	sends              // send the row's value
	keeps              // keep the service's value; the row has another one, or none
	asks               // let a person decide
)

// decide says what to do about one field. compare asks it for each field of a row: before a read, after a read, after
// the answer to an update, and in reconcile. If the service's value was kept before, only a new value on either side is
// a change. If the service shows what our own unanswered update asked for, nobody else changed the field.
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

// leadBefore is what was known of a lead before this row.
type leadBefore checkpoint.Entry

// confirmed is when the status was confirmed.
func (b *leadBefore) confirmed() time.Time {
	if b.Confirmed.IsZero() {
		return b.Updated
	}
	return b.Confirmed
}

// moved reports whether others changed the ExternalID. Then ExternalID is the service's, and WantLink is the one that
// was confirmed, or the file's if the service's won.
func (b *leadBefore) moved() bool {
	return b.State == checkpoint.Created && b.Unsettled == "" && b.WantLink != "" && b.WantLink != b.ExternalID
}

// linked is the ExternalID to compare with: if others changed it, the one in WantLink.
func (b *leadBefore) linked() string {
	if b.moved() {
		return b.WantLink
	}
	return b.ExternalID
}

// unreadable is the status of a lead that was shown without one.
const unreadable = "?"

// status is the field of the status. shown is the lead in an answer; nil: what was seen before counts.
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

// against is the file's status when the service's wins. For a row without a status it is the one that the service's
// won against before, else the last confirmed one.
func (b *leadBefore) against(file string) string {
	switch {
	case file != "":
		return file
	case b.Seen.Kept:
		return b.Seen.Against
	}
	return b.Status
}

// external makes an ExternalID a value of its field. A lead without one has the value "=".
func external(id string) string { return "=" + id }

// externalOf is the row's value of the field; "" if the row is silent.
func externalOf(rec *mapping.Record) string {
	if rec.ExternalID == "" {
		return ""
	}
	return external(rec.ExternalID)
}

// external is the field of the ExternalID; shown as in status.
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

// content is the field of a content key; its values are digests. The service shows it only in a read.
func (b *leadBefore) content(file checkpoint.ContentDigest) field {
	f := field{file: string(file.Value[:])}
	if at := indexOf(b.Content, file.Name); at >= 0 && b.Unsettled == "" && b.State.HasLead() {
		f.held = string(b.Content[at].Value[:])
		f.seen = f.held
	}
	return f
}

// Changes are the parts of a Record to send. Volatile fields are never among them.
type Changes struct {
	Status, ExternalID bool
	Fields             []int // of the Record's Content
}

func (s Changes) none() bool { return !s.Status && !s.ExternalID && len(s.Fields) == 0 }

// diff is how a row differs from its lead, field by field.
type diff struct {
	Send              Changes
	status, external  decision
	byFile, byService bool     // who changed any field since it was confirmed
	asks              []string // sentences: changes by others that a person decides about
	keptFields        []string // names of the fields, without Status, that keep the service's value
	differ            []int    // content that differs from the service's, as far as is known
	keys              []string // names of the content keys that were changed
	ahead             []int    // the content that others changed
}

func (d *diff) add(one decision) decision {
	d.byFile, d.byService = d.byFile || one.byFile, d.byService || one.byService
	return one
}

// For people: a field, and what others changed.
const (
	externalField = "ExternalID"

	externalMoved = "its ExternalID was changed on the service"
	contentMoved  = "its content was changed on the service"
)

// compare compares a row with its lead, as the service shows it or, if shown is nil, as it was last seen: the status,
// and fields that the row sends. Content that the row would not change is compared only if all is set.
func (p *planner) compare(it *item, before *leadBefore, shown *leadapi.Lead, all bool) (d diff) {
	p.digests.ofContent(it)
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
			d.keptFields = append(d.keptFields, externalField)
		}
	}
	if shown == nil && before.State.HasLead() && before.Unsettled == "" && slices.Equal(before.Content, it.sums) {
		return d
	}
	p.compareContent(&d, it, before, shown, all)
	return d
}

// compareContent is compare for content. Without all, a key whose value in the row is the confirmed one is left out.
func (p *planner) compareContent(d *diff, it *item, before *leadBefore, shown *leadapi.Lead, all bool) {
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
			value := p.digests.sums.SumValue(f.Name, canonical(shown.Content[f.Name]))
			c.seen = string(value[:])
		}
		one := d.add(decide(c, cmp.Or(Rule(p.rules.Content[f.Name]), p.rule, RuleReport)))
		if one.byFile || one.byService {
			d.keys = append(d.keys, f.Name)
		}
		if one.byService {
			d.ahead = append(d.ahead, i)
		}
		switch one.then {
		case sends:
			d.Send.Fields = append(d.Send.Fields, i)
		case asks:
			asked = append(asked, f.Name)
		case keeps:
			d.keptFields = append(d.keptFields, fmt.Sprintf("%q", f.Name))
		}
		if one.then != leaves {
			d.differ = append(d.differ, i)
		}
	}
	if asked != nil {
		d.asks = append(d.asks, contentMoved+": "+spelling.List(asked, mostListed, nil))
	}
}

func indexOf(list []checkpoint.ContentDigest, name [4]byte) int {
	return slices.IndexFunc(list, func(d checkpoint.ContentDigest) bool { return d.Name == name })
}

// keptText names the service's values that are kept, or "".
func (d *diff) keptText(status string) string {
	var list []string
	if d.status.then == keeps {
		list = append(list, "the service's status is kept: "+status)
	}
	if d.keptFields != nil {
		list = append(list, "the service's value is kept: "+spelling.List(d.keptFields, mostListed, nil))
	}
	return strings.Join(list, "; ")
}

// answer is what the service shows of a lead, now or in an earlier run.
type answer struct {
	*leadapi.Lead
	at         time.Time
	sent       Changes // what it is the answer to
	remembered bool    // from an earlier run: without content
}

// remembered is what an earlier run saw of the lead.
func (b *leadBefore) remembered(rec *mapping.Record) *answer {
	lead := &leadapi.Lead{
		ID: b.LeadID, Status: b.Seen.Status, OwnerID: b.Seen.Organization, ExternalID: b.ExternalID,
		HasExternal: b.moved() && externalOf(rec) != "",
	}
	return &answer{Lead: lead, at: b.Seen.At, remembered: true}
}

// sight is what to store of the status in an answer. If the service's status won before, it does while it is the same.
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

// seen fills the entry with what the service shows of a lead, beside what was confirmed. A partial lead is created if
// it has the wanted ExternalID. If others changed the ExternalID, WantLink keeps the confirmed one, or the row's if the
// service's wins, so that rows find the lead by both.
func (d *diff) seen(e *checkpoint.Entry, rec *mapping.Record, before *leadBefore, a *answer) {
	if e.Seen = before.sight(a); a.Status != "" && d.status.then == keeps {
		e.Seen.Kept, e.Seen.Against = true, before.against(rec.Status)
	}
	confirmed := before.linked()
	switch shown := a.ExternalID; {
	case !a.HasExternal:
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

// confirmed stores what the service shows as confirmed, except a status that others set and that is not the row's.
func (d *diff) confirmed(e *checkpoint.Entry, rec *mapping.Record, before *leadBefore, a *answer) {
	d.seen(e, rec, before, a)
	e.Unsettled, e.Sought, e.Confirmed = "", "", time.Time{}
	if a.remembered {
		e.Confirmed = a.at
	}
	if a.Status != "" && (a.sent.Status || !d.status.byService) {
		e.Status, e.Seen = a.Status, checkpoint.Sight{}
	}
	if e.Seen.Status != "" { // the confirmed status is of that time
		e.Confirmed = before.confirmed()
	}
	e.Organization, e.Location = cmp.Or(a.OwnerID, e.Organization), cmp.Or(a.LocationName, e.Location)
}

// learned stores what is seen of a lead when nothing is to be sent, and reports whether more is confirmed than before.
func (d *diff) learned(e *checkpoint.Entry, it *item, a *answer) (more bool) {
	before := leadBefore(*e)
	content := before.Content
	if a.Content != nil {
		if before.Unsettled != "" {
			content = nil // the unanswered update may have changed any of it
		}
		content = d.merged(content, it, nil)
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

// news reports whether this row changes what should be stored of what earlier runs saw.
func (d *diff) news(it *item) bool {
	known, before := &it.entry, (*leadBefore)(&it.entry)
	if known.Seen.Status == "" && !before.moved() {
		return false
	}
	e := *known
	return d.learned(&e, it, before.remembered(&it.rec)) || e.Seen.Kept != known.Seen.Kept ||
		e.Seen.Against != known.Seen.Against || e.ExternalID != known.ExternalID || e.WantLink != known.WantLink
}
