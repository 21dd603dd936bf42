package importer

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Rule says whose value stands where others have changed a field of a lead on the service, in the word of --conflict and of
// the mapping.
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

// looks says whether a lead is read before its row is sent: where that is asked for, and before an ExternalID is sent, or a
// content key that has a rule of its own, for what others have made of them is not kept.
func (p *conflicts) looks(c *Case, step *Step) bool {
	updates, seen := step.Action == Update, c.Known.Seen.Status
	switch {
	case p.dry || !p.readable(c.Known):
		return false
	case p.reads == ReadAll, p.reads == ReadChanged && (updates || seen != "" && seen != c.Known.Status):
		return true
	case !updates:
		return false
	case step.Send.ExternalID && p.forExternalID() != RuleFile:
		return true
	}
	return slices.ContainsFunc(step.Send.Fields, func(i int) bool {
		rule := Rule(p.rules.Content[c.Record.Content[i].Name])
		return rule != "" && rule != RuleFile
	})
}

// readable says whether a lead can be read that is known.
func (p *conflicts) readable(known *checkpoint.Entry) bool {
	return known.LeadID != "" && (known.ExternalID != "" || !p.byExternalID)
}

// leadBefore is what was known of a lead before an update of it.
type leadBefore checkpoint.Entry

// confirmed is when the status was.
func (b *leadBefore) confirmed() time.Time { return confirmedAt((*checkpoint.Entry)(b)) }

// last is what was known of a field before the service showed it. All values of a field are texts, and "" is none of them:
// nobody knows, or nothing is said.
type last struct {
	held     string // by both sides
	sought   string // what an update without an answer asked for
	unsure   bool   // there was one
	kept     bool   // the service's value was let stand
	service  string // that value
	againstF string // what the file said then
}

func (b *leadBefore) status() last {
	return last{b.Status, b.Sought, b.Unsettled != "", b.Seen.Kept, b.Seen.Status, b.Seen.Against}
}

// moved says that others were seen to change the ExternalID: it is the service's then, and what was confirmed, or what the
// file said when the service's was let stand, is the one that the lead is to have.
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

func (b *leadBefore) external() last {
	return last{held: external(b.linked()), sought: external(b.WantLink), unsure: b.WantLink != "" && !b.moved()}
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

// content is what was known of a content key: its digest.
func (b *leadBefore) content(name [4]byte) last {
	at := slices.IndexFunc(b.Content, func(d checkpoint.ContentDigest) bool { return d.Name == name })
	if at < 0 || b.Unsettled != "" {
		return last{}
	}
	return last{held: string(b.Content[at].Value[:])}
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

// decide says what becomes of a field, before a read, after one, after the answer to an update, and in a reconciliation
// alike: file is the row's value, before what both sides were last known to hold, seen what the service shows, and rule
// that of the field. What an update without an answer asked for was not changed by others.
func decide(file string, before last, seen string, rule Rule) (d decision) {
	switch {
	case file == seen && seen != "":
	case before.kept: // against what the file said then
		d.byFile = file != "" && file != before.againstF
		d.byService = !d.byFile || seen != before.service
	case before.held == "", before.unsure && seen == before.sought:
		d.byFile = file != ""
	default:
		d.byFile, d.byService = file != "" && file != before.held, seen != before.held
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

// sighting is what the service shows of a lead, or was seen to show.
type sighting struct {
	now      bool                      // it shows it now: a status that is lacking could not be read
	status   string                    //
	external string                    // see external; "": not shown
	content  map[string]jsontext.Value // nil: not shown
}

func sightingOf(lead *leadapi.Lead) *sighting {
	s := &sighting{now: true, status: lead.Status, content: lead.Content}
	if lead.HasExternal {
		s.external = external(lead.ExternalID)
	}
	return s
}

// remembered is what earlier runs have seen that was changed by others.
func (b *leadBefore) remembered() *sighting {
	s := &sighting{status: b.Seen.Status}
	if b.moved() {
		s.external = external(b.ExternalID)
	}
	return s
}

// weighed is what comparing a row with its lead, field by field, came to.
type weighed struct {
	byFile, byService bool     // who has changed any of them
	status            then     // what becomes of the status
	asks              []string // for people: what others have changed that a person decides about
	stands            []string // names of the fields beside it of which the service's value is let stand
	keys              []string // names of the content keys that are not the same everywhere
	ahead             []ahead  // the content that others have changed
	send              Changes  // what is left to send
}

// ahead is a field of the Record's Content that others have changed, and perhaps the file, too.
type ahead struct {
	field int
	both  bool
}

// weighFields compares a row, whose content has these digests, with its lead. What differs from what was confirmed is in send. All
// says that content counts, too, that the row would not change. Fields that the file does not send are the service's own
// business, but for the status.
func (p *conflicts) weighFields(rec *mapping.Record, content []checkpoint.ContentDigest, before *leadBefore, seen *sighting, send Changes, all bool, sums sums) (w weighed) {
	w.send = send
	add := func(d decision) then {
		w.byFile, w.byService = w.byFile || d.byFile, w.byService || d.byService
		return d.then
	}
	if seen.now || seen.status != "" {
		w.status = add(decide(rec.Status, before.status(), seen.status, p.forStatus(seen.status)))
		if w.send.Status = w.status == sends; w.status == asks {
			w.asks = append(w.asks, before.changedElsewhere(seen.status))
		}
	}
	switch file := externalOf(rec); {
	case seen.external == "":
		w.byFile = w.byFile || send.ExternalID
	case file != "":
		then := add(decide(file, before.external(), seen.external, p.forExternalID()))
		if w.send.ExternalID = then == sends; then == asks {
			w.asks = append(w.asks, externalMoved)
		} else if then == keeps {
			w.stands = append(w.stands, externalField)
		}
	}
	if seen.content == nil {
		w.byFile = w.byFile || len(send.Fields) > 0
		for _, i := range send.Fields {
			w.keys = append(w.keys, rec.Content[i].Name)
		}
		return w
	}
	var asked []string
	w.send.Fields, w.send.Kept = nil, nil
	n := -1
	for i := range rec.Content {
		f := &rec.Content[i]
		if f.Volatile {
			continue
		}
		n++
		shown := seen.content[f.Name]
		if carries(shown, f) || !all && !slices.Contains(send.Fields, i) {
			continue
		}
		value := sums.SumValue(f.Name, canonical(shown))
		d := decide(string(content[n].Value[:]), before.content(content[n].Name), string(value[:]), p.forContent(f.Name))
		if d.byFile || d.byService {
			w.keys = append(w.keys, f.Name)
		}
		if d.byService {
			w.ahead = append(w.ahead, ahead{i, d.byFile})
		}
		switch add(d) {
		case asks:
			asked = append(asked, f.Name)
		case keeps:
			w.stands, w.send.Kept = append(w.stands, fmt.Sprintf("%q", f.Name)), append(w.send.Kept, i)
		case sends:
			w.send.Fields = append(w.send.Fields, i)
		}
	}
	if asked != nil {
		w.asks = append(w.asks, contentMoved+": "+spelling.List(asked, mostListed, nil))
	}
	return w
}

// externalField is for people, and contentMoved and externalMoved say what others have changed.
const (
	externalField = "ExternalID"

	externalMoved = "its ExternalID was changed on the service"
	contentMoved  = "its content was changed on the service"
)

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

// weigh lets the step of a row stand, unless others have changed its lead as far as earlier runs have seen, or the carrier is
// to read the lead first.
func (p *conflicts) weigh(c *Case, step Step) Step {
	rec, known, before := c.Record, c.Known, (*leadBefore)(c.Known)
	if step.Action == Nothing && step.outcome != Unchanged {
		return step
	}
	step.unread = p.reads != ReadNothing && !p.dry && known.LeadID != "" && !p.readable(known) && (p.reads == ReadAll || step.Action == Update)
	if p.looks(c, &step) {
		step.Action, step.outcome, step.looks = Update, Updated, true
		return step // what the lead holds, the carrier sees
	}
	seen := before.remembered()
	if seen.status == "" && seen.external == "" {
		return p.reopening(c, step, before.Status)
	}
	w := p.weighFields(rec, nil, before, seen, step.Send, false, nil)
	if w.asks != nil {
		return ends(Conflict, strings.Join(w.asks, "; ")+nothingSent).ofKind(changedKind)
	}
	agrees := seen.status != "" && rec.Status == seen.status && seen.status != known.Status && known.Unsettled == ""
	step.Send, step.kept, step.stands, step.kind = w.send, w.status == keeps, w.stands, ""
	if step.text = standing(seen.status, &step); step.kept {
		step.kind = keptKind
	}
	switch {
	case !step.Send.none():
		step.Send.Status = step.Send.Status || agrees // its answer confirms it
		step.Action, step.outcome = Update, Updated
		if w.status != sends {
			return step
		}
		return p.reopening(c, step, seen.status)
	case agrees, step.kept && !(before.Seen.Kept && before.Seen.Against == before.against(rec.Status)),
		seen.external != "" && (externalOf(rec) == seen.external || w.stands != nil && known.WantLink != rec.ExternalID):
		step.Action = Note
	default:
		step.Action = Nothing
	}
	step.outcome = Unchanged
	return step
}

// reopening holds a step that would open a closed lead again, where that is asked for.
func (p *conflicts) reopening(c *Case, step Step, service string) Step {
	if file := c.Record.Status; step.Action == Update && p.reopens(service, file) {
		return ends(Conflict, fmt.Sprintf("the lead is %s, confirmed on %s, and the row would reopen it as %s: nothing was sent", service, clock(whenKnown(c.Known)), file)).ofKind(reopenKind)
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

const keptKind = "what the service holds is kept against the file's"

const nothingSent = ": nothing was sent"

const (
	changedKind = "the lead was changed on the service" + nothingSent
	reopenKind  = "the row would reopen a closed lead" + nothingSent
)

// standing says which of the service's values are let stand against the row's, or nothing.
func standing(status string, step *Step) string {
	var list []string
	if step.kept {
		list = append(list, "the service's status is kept: "+status)
	}
	if step.stands != nil {
		list = append(list, "the service's value is kept: "+spelling.List(step.stands, mostListed, nil))
	}
	return strings.Join(list, "; ")
}

// changedElsewhere is for people: what the service shows, and what was confirmed.
func (b *leadBefore) changedElsewhere(service string) string {
	return fmt.Sprintf("the lead's status on the service is %s; %s was confirmed on %s", cmp.Or(service, "not readable"), b.Status, clock(b.confirmed()))
}

// weighRead is what becomes of an update once its lead was read. It reports whether anything
// is left to send.
func (c *carrier) weighRead(j *job, lead *leadapi.Lead) (goesOn bool) {
	rec, send := &j.it.rec, &j.step.Send
	w := c.conflicts.weighFields(rec, j.it.sums, &j.leadBefore, sightingOf(lead), *send, c.conflicts.reads == ReadAll, c.ledger.Digests())
	if w.asks != nil {
		return c.held(j, lead, changedKind, strings.Join(w.asks, "; ")+nothingSent)
	}
	learns := len(send.Fields) > 0 && j.leadBefore.Unsettled == ""
	*send, j.step.kept, j.step.stands = w.send, w.status == keeps, w.stands
	j.found.cells = c.cellsOf(rec, w.ahead, lead)
	if send.Status && c.conflicts.reopens(lead.Status, rec.Status) {
		return c.held(j, lead, reopenKind, fmt.Sprintf("the lead is %s on the service, and the row would reopen it as %s: nothing was sent", lead.Status, rec.Status))
	}
	if !send.none() {
		if send.ExternalID && w.byService && lead.HasExternal && lead.ExternalID != j.leadBefore.linked() {
			j.say(externalMoved + "; the file's was sent")
		}
		j.leadBefore.Seen = j.leadBefore.sight(lead)
		return true
	}
	c.inStep(j, lead, learns)
	return false
}

// held ends a row as a conflict and keeps what was seen.
func (c *carrier) held(j *job, lead *leadapi.Lead, kind, why string) bool {
	j.text, j.kind, j.entry.Code = why, kind, http.StatusOK
	j.entry.Seen = j.leadBefore.sight(lead)
	j.seeExternal(lead)
	c.release(j, Conflict)
	return false
}

// inStep ends a row whose lead was read and that has nothing to send. It learns something where the service holds content that
// was not confirmed yet.
func (c *carrier) inStep(j *job, lead *leadapi.Lead, learns bool) {
	before := &j.leadBefore
	if !learns && (j.step.kept || lead.Status == before.Status && before.Unsettled == "") {
		j.entry.Seen = before.sight(lead)
		j.seeExternal(lead)
		j.noteOthers(lead)
		c.keep(j)
		return
	}
	if before.Unsettled != "" {
		j.entry.Content = nil // what was shown of it comes next
	}
	c.see(j, lead)
	j.entry.Content = merged(j.entry.Content, &j.it.rec, j.it.sums, j.step.Send.Kept, nil)
	j.entry.Synced = true
	j.noteStanding()
	c.settle(j, Unchanged)
}

// keep makes what was seen durable, with the file's status where the service's is let stand
// against it.
func (c *carrier) keep(j *job) {
	if j.step.kept {
		j.entry.Seen.Kept, j.entry.Seen.Against = true, j.leadBefore.against(j.it.rec.Status)
	}
	j.noteStanding()
	c.release(j, Unchanged)
}

// note ends a row that sends nothing and has something to keep: what of the service it lets stand, or that both sides agree
// on what was only seen.
func (c *carrier) note(j *job) {
	j.leadBefore = leadBefore(j.entry)
	entry, before := &j.entry, &j.leadBefore
	if before.moved() && externalOf(&j.it.rec) != "" {
		entry.WantLink = j.it.rec.ExternalID
		if entry.WantLink == entry.ExternalID {
			entry.WantLink = ""
		}
	}
	if j.step.kept || entry.Seen.Status == "" || entry.Seen.Status != j.it.rec.Status {
		c.keep(j)
		return
	}
	entry.Status, entry.Confirmed, entry.Synced, entry.Seen = entry.Seen.Status, entry.Seen.At, true, checkpoint.Sight{}
	j.noteStanding()
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

// keysOf are the names of content that others have changed.
func keysOf(rec *mapping.Record, changed []ahead) (names []string) {
	for _, a := range changed {
		names = append(names, rec.Content[a.field].Name)
	}
	return names
}
