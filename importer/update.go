package importer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// look reads a lead and decides about its row again. If the service refuses reads at all, the run ends (refusesReads).
func (e *engine) look(j *job) {
	j.takeNamed()
	lead, err := e.read(j)
	if err = e.refusesReads(err); err == nil {
		e.hasRead.Store(true)
	}
	switch {
	case errors.Is(err, delivery.ErrStopping):
		j.outcome = Pending
		return
	case err != nil:
		j.refuse("its lead could not be read: %s", err)
		return
	case e.drift != nil:
		j.step = e.verdictOf(j.item, lead)
	default:
		j.step = e.planUpdate(j.item, lead)
	}
	j.entry.Code, j.remarks = http.StatusOK, j.step.remarks
	a := &answer{Lead: lead, at: time.Now()}
	if j.step.Action != Update {
		e.endRead(j, a)
		return
	}
	if external := j.step.of(atExternal); external.choice == sends && external.byService {
		j.sayOthers("ExternalID")
	}
	// what the read showed is kept even if the update fails, and the update is compared with it
	j.step.takeExternal(&j.entry, &j.rec, &j.before, a)
	see(&j.entry, &j.before, &j.rec, a)
	j.before.Seen, j.before.Status, j.before.ExternalID = j.entry.Seen, j.entry.Status, j.entry.ExternalID
	j.before.WantLink, j.before.AsksLink = j.entry.WantLink, j.entry.AsksLink
	e.update(j)
}

// endRead ends a row that needs no update after its lead was read. In a conflict, nothing that was seen is confirmed.
func (e *engine) endRead(j *job, a *answer) {
	cs := j.step.changes
	if e.drift != nil || j.step.outcome == Conflict {
		if cs.of(atStatus).byService { // this is newer than an update without an answer, and not what that asked for
			j.before.Sought = ""
		}
		cs.takeSeen(&j.entry, &j.rec, &j.before, a)
		j.text = j.step.text
		j.sayOwner(a.Lead)
		e.storeUnsent(j, j.step.outcome)
		return
	}
	more := cs.takeRead(&j.entry, &j.rec, a)
	j.sayChanged(a, cs)
	if !more {
		e.storeUnsent(j, Unchanged)
		return
	}
	e.stamp(j)
	e.settle(j, Unchanged)
}

// update brings a lead in step with its row, mostly by one request. Between mark and answer, nobody knows which values
// the service has. The answer is compared like a read: if others changed a value, the row's value may be sent again.
func (e *engine) update(j *job) {
	for n := 0; e.mark(j); n++ {
		lead, err := e.patch(e.taking, j, updateRequest(&j.rec, j.step.chosen(sends)))
		if err != nil {
			e.updateFailed(j, err)
			return
		}
		if lead.ID != j.entry.LeadID {
			j.entry.Code, j.text = http.StatusOK, fmt.Sprintf(unconfirmed, "the lead that came back is another one")
			return
		}
		cs := e.compare(j.item, &j.before, lead, true)
		e.updated(j, &answer{Lead: lead, at: time.Now(), sent: j.step.chosen(sends)}, cs)
		if j.outcome != Updated || e.taking.Err() != nil {
			return
		}
		again := e.planUpdate(j.item, lead) // Nothing, unless others changed a value
		if again.outcome == Conflict {
			j.sayOthers(again.named(asks, changedTo(&j.before, lead.Status))...)
			j.remarks[statusByOthers] = j.remarks[statusByOthers] || again.of(atStatus).choice == asks
			if again.chosen(asks) == nil {
				j.say(strings.TrimSuffix(again.text, nothingSent))
			}
			if again.chosen(sends) != nil {
				j.outcome = Conflict
				j.say("a part of the row was not sent")
			}
		}
		if again.Action != Update || n > 0 { // a service that undoes what it has confirmed gets no third try
			return
		}
		j.step, j.before, j.unsure = again, j.entry, false
	}
}

// takeNamed makes the lead that only the row names a known one.
func (j *job) takeNamed() {
	known := &j.entry
	if !known.State.HasLead() { // the entry's data are not those of a lead
		known.Content, known.WantLink, j.before.Content, j.before.WantLink = nil, "", nil, ""
	}
	if known.LeadID == "" {
		known.LeadID, known.State = j.rec.LeadID, checkpoint.Created
	}
}

// mark stores that an update of the lead is about to be sent.
func (e *engine) mark(j *job) bool {
	j.takeNamed()
	known := &j.entry
	known.Content = slices.Clone(known.Content)
	for _, c := range j.step.changes { // until the answer comes, nobody knows the value of what is sent
		if at := indexOf(known.Content, c.sum.Name); at >= 0 && c.at >= 0 && c.choice == sends {
			known.Content[at].Value = [4]byte{}
		}
	}
	if known.AsksLink = known.AsksLink && known.Unsettled != ""; j.step.of(atExternal).choice == sends {
		known.WantLink, known.AsksLink = j.rec.ExternalID, true
	}
	if known.Unsettled = e.RunID; j.step.of(atStatus).choice == sends {
		known.Sought = j.rec.Status
	}
	failpoint.At("before mark")
	if j.change.Entry = *known; !e.store(j, checkpoint.Mark, e.ledgerRefused) {
		return false
	}
	j.entry, j.marked, j.outcome = j.durable, true, Failed
	return true
}

// updated settles what the lead in the answer shows. j.outcome is Updated only if the lead has what was sent.
func (e *engine) updated(j *job, a *answer, cs changes) {
	rec, entry := &j.rec, &j.entry
	cs.takeConfirmed(entry, rec, &j.before, a) // the mark goes; a status that was sent is now what the answer shows
	j.remarks[serviceKept] = cs.of(atStatus).choice == keeps
	entry.Code, entry.Reason, entry.Refused = http.StatusOK, "", checkpoint.Digest{}
	e.stamp(j)
	if external := cs.of(atExternal); external.byService && external.choice != keeps {
		j.sayOthers("ExternalID")
	}
	wrong := cs.names(func(c change) bool { return c.choice != agrees && slices.Contains(a.sent, c.at) })
	if wrong != nil {
		entry.Reason = reasonNotConfirmed
		j.text = "the update was answered but not confirmed: the lead came back with another " +
			strings.Join(wrong, ", ")
		e.settle(j, Failed)
		return
	}
	j.sayChanged(a, cs)
	if !e.matches {
		entry.Digest, entry.Synced = j.digest, false
	}
	if entry.ExternalID != "" && entry.ExternalID == rec.ExternalID {
		entry.State, entry.WantLink = checkpoint.Created, ""
	}
	e.settle(j, j.step.outcome)
}

func contentField(f *mapping.Field) leadapi.ContentField {
	return leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Literal}
}

func updateRequest(rec *mapping.Record, fields []int) *leadapi.UpdateRequest {
	r := &leadapi.UpdateRequest{}
	for _, at := range fields {
		switch at {
		case atStatus:
			r.Status = &rec.Status
		case atExternal:
			r.ExternalID = &rec.ExternalID
		default:
			r.Content = append(r.Content, contentField(&rec.Content[at]))
		}
	}
	return r
}

// updateFailed ends an update without a usable answer. If it may have been applied, the next run sends it again.
func (e *engine) updateFailed(j *job, err error) {
	stops := errors.Is(err, delivery.ErrStopping)
	switch ae, answered := errors.AsType[*leadapi.Error](err); {
	case leadapi.IsRefused(err): // what was confirmed still holds, and the same data are not sent again
		j.refuse("%s", ae)
		j.entry.Refused, j.entry.Confirmed = j.digest, j.before.ConfirmedAt()
		if !j.unsure { // else the effect of an earlier try stays unknown
			j.entry.Unsettled, j.entry.Sought = j.before.Unsettled, j.before.Sought
			j.entry.WantLink, j.entry.AsksLink, j.entry.Content = j.before.WantLink, j.before.AsksLink, j.before.Content
		}
		e.stamp(j)
		e.settle(j, Rejected)
	case j.unsure && stops:
		j.text = fmt.Sprintf(unconfirmed, "the run stopped before an answer came")
	case j.unsure && answered:
		j.refuse(unconfirmed, ae)
	case stops:
		e.storeUnsent(j, Pending)
	default:
		j.refuse("not updated: %s", err)
		e.storeUnsent(j, Failed)
	}
}

// unconfirmed tells people why nobody knows whether an update was applied.
const unconfirmed = "sent, but not confirmed (%s); the next run sends it again"

// storeUnsent ends a row of which nothing was applied: it removes the mark, if there is one, and keeps what was seen.
func (e *engine) storeUnsent(j *job, outcome Outcome) {
	entry := j.entry
	entry.Unsettled, entry.Sought = j.before.Unsettled, j.before.Sought
	if j.marked {
		entry.WantLink, entry.AsksLink, entry.Content = j.before.WantLink, j.before.AsksLink, j.before.Content
	}
	if j.change.Entry = entry; e.store(j, checkpoint.Mark, e.commitFailed) {
		j.outcome, j.found, j.entry = outcome, j.step.found, j.durable
		if j.attempts > 0 {
			j.entry.Code, j.entry.Reason = entry.Code, entry.Reason
		}
	}
}

const reasonNotConfirmed = "not_confirmed" // the class of an update whose answer shows other values

// sayOthers notes fields that others changed. carry adds them to the text of the row.
func (j *job) sayOthers(fields ...string) {
	for _, field := range fields {
		if !slices.Contains(j.others, field) {
			j.others = append(j.others, field)
		}
	}
}

// sayChanged says what others changed in the lead of an answer, and which of the service's values are kept.
func (j *job) sayChanged(a *answer, cs changes) {
	before, service := &j.before, a.Status
	if slices.Contains(a.sent, atStatus) {
		service = before.Seen.Status // a.Status is what was sent
		if from := cmp.Or(service, before.Status); a.Status != from {
			j.moved = report.Transition{From: from, To: a.Status}
		}
	}
	if before.Sought == "" && before.Status != "" && service != "" && service != before.Status {
		j.sayOthers(changedTo(before, service))
		j.remarks[statusByOthers] = true
	}
	j.sayOwner(a.Lead)
	j.say(listed(serviceWins, cs.named(keeps, "Status "+a.Status)))
}

// read reads a lead by an update (specification, "6. Update a lead"). An update without content changes nothing. With
// --read external-id it sends the known ExternalID, which overwrites one that others set.
func (e *engine) read(j *job) (*leadapi.Lead, error) {
	j.outcome = Failed
	r := &leadapi.UpdateRequest{Content: []leadapi.ContentField{}}
	external := j.entry.ExternalID
	if e.ReadByExternalID {
		r = &leadapi.UpdateRequest{ExternalID: &external}
	}
	lead, err := e.patch(e.taking, j, r)
	j.unsure = false // there was nothing to apply
	ae, _ := errors.AsType[*leadapi.Error](err)
	switch {
	case leadapi.IsRefused(err):
		j.refusedAs = ae.Status // the run ends if all reads are refused
	case err != nil:
	case lead.ID != j.entry.LeadID:
		err = errors.New("the lead that came back is another one")
	case e.ReadByExternalID && lead.ExternalID != external:
		err = errors.New("the lead came back with another ExternalID")
	}
	return lead, err
}

// refusesReads ends the run if no read has worked yet and the refusal is not about this lead: no read will work then.
func (e *engine) refusesReads(err error) error {
	ofTheLead := []int{http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusGone}
	ae, _ := errors.AsType[*leadapi.Error](err)
	if !leadapi.IsRefused(err) || ae.Status == 0 || slices.Contains(ofTheLead, ae.Status) || e.ReadByExternalID ||
		e.hasRead.Load() {
		return err
	}
	reason := fmt.Sprintf("the service does not let leads be read by an update of no content: HTTP %d (%s)",
		ae.Status, ae.Message)
	return e.stopping(delivery.Lasting(report.CodeStopped, reason, "--read external-id reads them by an update of the "+
		"ExternalID that was last confirmed; it overwrites an ExternalID that others changed"))
}
