package importer

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"leadferry/checkpoint"
	"leadferry/leadapi"
)

// Rule says whose status stands where others have changed a lead's status on the service, in the word of --conflict and of
// the mapping.
type Rule string

// RuleReport, or none, leaves that to a person, RuleFile sends the file's status, and RuleService keeps the service's.
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

// conflicts is what a run does about statuses that others have changed on the service.
type conflicts struct {
	rule       Rule
	byStatus   map[string]string // rules of single statuses of the service, which go before, by their words
	holdReopen bool
	reads      Reads
}

func newConflicts(o *Options) conflicts {
	c := conflicts{rule: o.Conflict, byStatus: o.Mapping.Conflicts().Status, holdReopen: o.HoldReopen, reads: o.CheckRemote}
	if o.DryRun {
		c.reads = ReadNothing
	}
	return c
}

// ruleFor is the rule where the service shows a status. One that could not be read is for a
// person.
func (p *conflicts) ruleFor(service string) Rule {
	if service == "" {
		return RuleReport
	}
	return cmp.Or(Rule(p.byStatus[service]), p.rule, RuleReport)
}

// leadBefore is what was known of a lead before an update of it.
type leadBefore checkpoint.Entry

// confirmed is when the status was.
func (b *leadBefore) confirmed() time.Time { return confirmedAt((*checkpoint.Entry)(b)) }

// decision is what becomes of a lead's status.
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

// decide says what becomes of a lead's status, before a read, after one, after the answer to an update, and in a
// reconciliation alike: file is the row's, before what both sides were last known to hold, seen what the service shows,
// and rule that of seen. What an update without an answer asked for was not changed by others.
func decide(file string, before *leadBefore, seen string, rule Rule) (d decision) {
	switch {
	case file == seen && seen != "":
	case before.Seen.Kept: // against what the file said then
		d.byFile = file != "" && file != before.Seen.Against
		d.byService = !d.byFile || seen != before.Seen.Status
	case before.Status == "", before.Unsettled != "" && seen == before.Sought:
		d.byFile = file != ""
	default:
		d.byFile, d.byService = file != "" && file != before.Status, seen != before.Status
	}
	switch {
	case d.byService && rule == RuleReport:
		d.then = asks
	case d.byService && rule == RuleService:
		d.then = keeps
	case file != "" && file != seen:
		d.then = sends
	}
	return d
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

// weigh lets the step of a row stand, unless others have changed the status of its lead as far
// as earlier runs have seen, or the carrier is to read the lead first.
func (p *conflicts) weigh(c *Case, step Step) Step {
	file, before := c.Record.Status, (*leadBefore)(c.Known)
	seen := before.Seen.Status
	step.unread = p.reads == ReadAll && c.Known.ExternalID == "" && step.Action == Nothing && step.outcome == Unchanged
	switch {
	case step.Action == Nothing && step.outcome != Unchanged:
		return step
	case p.reads != ReadNothing && c.Known.ExternalID != "" && (p.reads == ReadAll || step.Action == Update || seen != "" && seen != before.Status):
		step.Action, step.outcome = Update, Updated
		return step // what the lead's status is, the carrier sees
	case seen == "":
		return p.reopening(c, step, before.Status)
	}
	switch decide(file, before, seen, p.ruleFor(seen)).then {
	case asks:
		return ends(Conflict, before.changedElsewhere(seen)+nothingSent).ofKind(changedKind)
	case sends:
		step.Action, step.outcome, step.Send.Status = Update, Updated, true
		return p.reopening(c, step, seen)
	case leaves:
		return agreed(c, step)
	}
	step.Send.Status, step.kept = false, true
	step.text, step.kind = stands+seen, keptKind
	switch {
	case !step.Send.none():
		return step
	case before.Seen.Kept && before.Seen.Against == before.against(file):
		step.Action = Nothing
	default:
		step.Action = Note
	}
	step.outcome = Unchanged
	return step
}

// agreed is the step of a row that asks for no other status than the service was seen to hold.
func agreed(c *Case, step Step) Step {
	if seen, known := c.Known.Seen.Status, c.Known; c.Record.Status != seen || seen == known.Status || known.Unsettled != "" {
		return step
	}
	if step.Send.Status = false; step.Send.none() {
		return ends(Unchanged, "").by(Note)
	}
	step.Send.Status = true // its answer confirms it
	return step
}

// reopening holds a step that would open a closed lead again, where that is asked for.
func (p *conflicts) reopening(c *Case, step Step, service string) Step {
	if file := c.Record.Status; step.Action == Update && p.reopens(service, file) {
		return ends(Conflict, fmt.Sprintf("the lead is %s, confirmed on %s, and the row would reopen it as %s: nothing was sent", service, clock(whenKnown(c.Known)), file))
	}
	return step
}

// whenKnown is when the status of a lead was seen or confirmed last.
func whenKnown(known *checkpoint.Entry) time.Time {
	if known.Seen.At.IsZero() {
		return confirmedAt(known)
	}
	return known.Seen.At
}

func (p *conflicts) reopens(service, file string) bool {
	return p.holdReopen && isClosed(service) && file != "" && !isClosed(file)
}

const (
	stands   = "the service's status is kept: "
	keptKind = "the service's status is kept against the file's"
)

const nothingSent = ": nothing was sent"

const changedKind = "the lead's status was changed on the service" + nothingSent

// changedElsewhere is for people: what the service shows, and what was confirmed.
func (b *leadBefore) changedElsewhere(service string) string {
	return fmt.Sprintf("the lead's status on the service is %s; %s was confirmed on %s", cmp.Or(service, "not readable"), b.Status, clock(b.confirmed()))
}

// weighRead is what becomes of an update once its lead was read. It reports whether anything
// is left to send.
func (c *carrier) weighRead(j *job, lead *leadapi.Lead) (goesOn bool) {
	file, send := j.it.rec.Status, &j.step.Send
	switch then := decide(file, &j.leadBefore, lead.Status, c.conflicts.ruleFor(lead.Status)).then; then {
	case asks:
		return c.held(j, lead, j.leadBefore.changedElsewhere(lead.Status)+nothingSent)
	case keeps:
		send.Status, j.step.kept = false, true
	default:
		send.Status = then == sends
	}
	if send.Status && c.conflicts.reopens(lead.Status, file) {
		return c.held(j, lead, fmt.Sprintf("the lead is %s on the service, and the row would reopen it as %s: nothing was sent", lead.Status, file))
	}
	if !send.none() {
		j.leadBefore.Seen = j.leadBefore.sight(lead)
		return true
	}
	c.inStep(j, lead)
	return false
}

// held ends a row as a conflict and keeps what was seen.
func (c *carrier) held(j *job, lead *leadapi.Lead, why string) bool {
	j.text, j.entry.Code = why, http.StatusOK
	j.entry.Seen = j.leadBefore.sight(lead)
	c.release(j, Conflict)
	return false
}

// inStep ends a row whose lead was read and that has nothing to send.
func (c *carrier) inStep(j *job, lead *leadapi.Lead) {
	before := &j.leadBefore
	if j.step.kept || lead.Status == before.Status && before.Unsettled == "" {
		j.entry.Seen = before.sight(lead)
		j.noteOthers(lead)
		c.keep(j)
		return
	}
	if before.Unsettled != "" {
		j.entry.Content = nil // the row has none, so what the lead holds stays unknown
	}
	c.see(j, lead)
	j.entry.Synced = true
	c.settle(j, Unchanged)
}

// keep makes what was seen durable, with the file's status where the service's is let stand
// against it.
func (c *carrier) keep(j *job) {
	if j.step.kept {
		j.entry.Seen.Kept, j.entry.Seen.Against = true, j.leadBefore.against(j.it.rec.Status)
		j.noteKept()
	}
	c.release(j, Unchanged)
}

// note ends a row that sends nothing and has something to keep: the service's status, which it
// lets stand, or that both sides agree on a status that was only seen.
func (c *carrier) note(j *job) {
	j.leadBefore = leadBefore(j.entry)
	if j.step.kept {
		c.keep(j)
		return
	}
	entry := &j.entry
	entry.Status, entry.Confirmed, entry.Synced, entry.Seen = entry.Seen.Status, entry.Seen.At, true, checkpoint.Sight{}
	c.settle(j, Unchanged)
}

// sight is what a read of the lead shows, to be kept beside what was confirmed. A decision to
// let the service's status stand holds as long as it is that.
func (b *leadBefore) sight(lead *leadapi.Lead) checkpoint.Sight {
	if lead.Status == "" {
		return b.Seen
	}
	seen := checkpoint.Sight{At: time.Now().UTC().Truncate(time.Millisecond), Status: lead.Status, Organization: lead.OwnerID}
	if b.Seen.Kept && b.Seen.Status == lead.Status {
		seen.Kept, seen.Against = true, b.Seen.Against
	}
	return seen
}
