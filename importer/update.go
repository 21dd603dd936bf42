package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// update brings a lead in step with its row. From its mark to its answer nobody knows what
// the service holds of what the row names.
func (c *carrier) update(ctx context.Context, j *job) {
	j.leadBefore = leadBefore(j.entry)
	if c.conflicts.reads != ReadNothing && !c.readFirst(ctx, j) {
		return
	}
	for c.sendUpdate(ctx, j) && c.overrules(j) { // once: then its status is sent
		j.leadBefore, j.step.Send, j.maybeApplied = leadBefore(j.entry), Changes{Status: true}, false
	}
}

// sendUpdate reports whether the lead came back.
func (c *carrier) sendUpdate(ctx context.Context, j *job) (answered bool) {
	if !c.mark(j) {
		return false
	}
	lead, err := c.patch(ctx, c.phases.taking, j, updateRequest(&j.it.rec, &j.step.Send))
	if err != nil {
		c.notUpdated(j, err)
		return false
	}
	c.updated(j, lead)
	return true
}

// overrules reports whether an update that did not send the file's status has shown one over which it is to be sent.
func (c *carrier) overrules(j *job) bool {
	file, seen := j.it.rec.Status, cmp.Or(j.entry.Seen.Status, j.entry.Status)
	return j.outcome == Updated && !j.step.Send.Status && c.phases.taking.Err() == nil &&
		decide(file, &j.leadBefore, seen, c.conflicts.ruleFor(seen)).then == sends && !c.conflicts.reopens(seen, file)
}

// mark makes it durable that an update of the lead is about to be sent. A lead that only
// the file knew becomes known by it.
func (c *carrier) mark(j *job) bool {
	known := &j.entry
	if !known.State.HasLead() {
		known.Content = nil // what was refused or not made is nowhere
	}
	if known.LeadID == "" {
		known.LeadID, known.State = j.it.rec.LeadID, checkpoint.Created
	}
	known.Unsettled, known.Sought = c.run, j.it.rec.Status
	failpoint.At("before mark")
	stored, err := c.ledger.Mark(c.phases.taking, *known)
	if err != nil {
		c.notBegun(j, err)
		return false
	}
	j.entry, j.intended = stored, true
	return true
}

func confirmedAt(known *checkpoint.Entry) time.Time {
	if known.Confirmed.IsZero() {
		return known.Updated
	}
	return known.Confirmed
}

// patch sends an update until its answer is final. Nothing leaves once leaving has ended.
func (c *carrier) patch(ctx, leaving context.Context, j *job, r *leadapi.UpdateRequest) (lead *leadapi.Lead, err error) {
	failpoint.At("before update")
	tries, err := c.retrier.Repeat(ctx, leaving, func(ctx context.Context, anew bool) (err error) {
		r.NewConnection = anew
		lead, err = c.sender.Update(ctx, j.entry.LeadID, r)
		if ae, is := errors.AsType[*leadapi.Error](err); is && ae.Applied != leadapi.No {
			j.maybeApplied = true
		}
		return err
	})
	j.attempts += tries
	failpoint.At("update answered")
	return lead, err
}

// notUpdated ends an update that got no answer to believe. Where one of its tries may
// have been applied, the mark stays: the lead's next update sends the whole row.
func (c *carrier) notUpdated(j *job, err error) {
	stop, stops := stopOf(err)
	c.halt(stop)
	ae := j.keepAnswer(err)
	switch {
	case ae != nil && !stops && refusedForGood(ae):
		c.notTaken(j, ae)
	case j.maybeApplied && stops:
		c.unanswered(j, "the run stopped before an answer came")
	case j.maybeApplied && ae != nil:
		j.refuse(unconfirmed, ae)
		j.outcome = Failed
	case stops:
		c.release(j, Pending)
	default:
		j.refuse("not updated: %s", err)
		c.release(j, Failed)
	}
}

// refusedForGood reports whether the service, or the client, will never take the request.
func refusedForGood(ae *leadapi.Error) bool {
	return ae.Applied == leadapi.No && ae.Status != http.StatusUnauthorized && ae.Status != http.StatusTooManyRequests && !delivery.Transient(ae.Status)
}

// unconfirmed is for people: why nobody knows what an update has done.
const unconfirmed = "sent, but not confirmed (%s); the next run sends the whole row again"

// unanswered ends the row as failed and leaves the mark.
func (c *carrier) unanswered(j *job, why string) {
	j.outcome, j.text, j.rejectText = Failed, fmt.Sprintf(unconfirmed, why), ""
}

// release takes the mark back, for nothing of the update was applied.
func (c *carrier) release(j *job, outcome Outcome) {
	j.outcome = outcome
	entry := j.entry
	entry.Unsettled, entry.Sought = j.leadBefore.Unsettled, j.leadBefore.Sought
	stored, err := c.ledger.Mark(context.Background(), entry)
	if err != nil {
		c.unwritten(j, err)
		return
	}
	code, reason := j.entry.Code, j.entry.Reason
	if j.entry = stored; j.attempts > 0 {
		j.entry.Code, j.entry.Reason = code, reason
	}
}

// notTaken settles an update that the service will not take: what was confirmed
// stands, and the same data are not sent again. What a try before the refusal, or an
// update before this one, has left stays unknown.
func (c *carrier) notTaken(j *job, ae *leadapi.Error) {
	j.refuse("%s", ae)
	entry := &j.entry
	entry.Code, entry.Reason, entry.Refused = ae.Status, ae.Reason, j.it.digest
	entry.Confirmed = j.leadBefore.confirmed()
	if !j.maybeApplied {
		entry.Unsettled, entry.Sought = j.leadBefore.Unsettled, j.leadBefore.Sought
	}
	c.sign(j)
	c.settle(j, Rejected)
}

// readFirst reads the lead before it is changed, by an update of the ExternalID that it
// has already, and reports whether the row may go on. What is not confirmed is that ExternalID
// alone, so nothing is marked.
func (c *carrier) readFirst(ctx context.Context, j *job) (goesOn bool) {
	if j.entry.ExternalID == "" {
		j.unread = true
		return true
	}
	lead, err := c.readLead(ctx, j)
	_, other := errors.AsType[errUnreadable](err)
	switch {
	case other:
		j.outcome, j.text, j.entry.Code = Failed, "its lead could not be read: "+err.Error()+"; nothing was changed", http.StatusOK
	case err != nil:
		c.notUpdated(j, err)
	default:
		return c.weighRead(j, lead)
	}
	return false
}

// errUnreadable is an answer that does not show the lead that was meant.
type errUnreadable string

func (e errUnreadable) Error() string { return string(e) }

// readLead asks the service what it holds of a lead, by an update of the ExternalID that it has.
// The lead must come back as the one that was meant, with the ExternalID that was sent; its other
// values are what they are.
func (c *carrier) readLead(ctx context.Context, j *job) (*leadapi.Lead, error) {
	external := j.entry.ExternalID
	lead, err := c.patch(ctx, c.phases.taking, j, &leadapi.UpdateRequest{ExternalID: &external})
	j.maybeApplied = false
	switch {
	case err != nil:
		return nil, err
	case lead.ID != j.entry.LeadID:
		return nil, errUnreadable("the lead that came back is another one")
	case lead.ExternalID != external:
		return nil, errUnreadable("the lead came back with another ExternalID")
	}
	return lead, nil
}

// reasonNotConfirmed is the class of an update whose answer shows other values.
const reasonNotConfirmed = "not_confirmed"

// updated settles what the lead that came back shows. The update holds only when it
// is the lead that was meant and carries what was sent.
func (c *carrier) updated(j *job, lead *leadapi.Lead) {
	if lead.ID != j.entry.LeadID {
		j.entry.Code = http.StatusOK
		c.unanswered(j, "the lead that came back is another one")
		return
	}
	rec, send := &j.it.rec, &j.step.Send
	wrong, names := differing(rec, send, lead)
	c.see(j, lead)
	entry := &j.entry
	if j.leadBefore.Unsettled != "" {
		entry.Content = nil // the update before this one may have changed any of it
	}
	entry.Content = merged(entry.Content, rec, j.it.sums, wrong)
	entry.Code, entry.Reason, entry.Refused = http.StatusOK, "", checkpoint.Digest{}
	if names != nil {
		entry.Reason, entry.Synced = reasonNotConfirmed, true
		j.text = "the update was answered but not confirmed: the lead came back with another " + strings.Join(names, ", ")
		c.settle(j, Failed)
		return
	}
	switch {
	case send.Status:
		j.noteOverruled()
	case j.step.kept:
		j.noteKept()
	}
	if from := cmp.Or(j.leadBefore.Seen.Status, j.leadBefore.Status); send.Status && entry.Status != from {
		j.moved.from, j.moved.to = from, entry.Status
	}
	if c.matches {
		entry.Synced = true
	} else {
		entry.Digest, entry.Synced = j.it.digest, false
	}
	if entry.ExternalID != "" && entry.ExternalID == rec.ExternalID {
		entry.State, entry.WantLink = checkpoint.Created, ""
	}
	c.settle(j, j.step.outcome)
}

// see takes over what the service shows of a lead, and notes what others changed.
func (c *carrier) see(j *job, lead *leadapi.Lead) {
	entry, before := &j.entry, &j.leadBefore
	d := decide(j.it.rec.Status, before, lead.Status, c.conflicts.ruleFor(lead.Status))
	elsewhere := !j.step.Send.Status && before.Unsettled == "" && d.byService
	if lead.Status != "" { // what was seen before may be another one
		j.step.kept = elsewhere && d.then == keeps
	}
	switch {
	case lead.Status == "":
	case elsewhere:
		entry.Seen = before.sight(lead)
		if j.step.kept {
			entry.Seen.Kept, entry.Seen.Against = true, before.against(j.it.rec.Status)
		}
	default:
		entry.Status, entry.Seen = lead.Status, checkpoint.Sight{}
	}
	if named := j.it.rec.ExternalID; lead.ExternalID != "" && named != "" && named == before.ExternalID && named != lead.ExternalID {
		entry.WantLink = named // or nobody would find the lead by what its row says
		j.say("its ExternalID was changed on the service: the next sync sends the row's again")
	}
	entry.ExternalID = cmp.Or(lead.ExternalID, entry.ExternalID)
	entry.Organization = cmp.Or(lead.OwnerID, entry.Organization)
	entry.Location = cmp.Or(lead.LocationName, entry.Location)
	entry.Unsettled, entry.Sought, entry.Confirmed = "", "", checkpoint.Entry{}.Confirmed
	if entry.Seen.Status != "" { // what was confirmed stands as of then
		entry.Confirmed = before.confirmed()
	}
	c.sign(j)
	j.noteOthers(lead)
}

// noteOthers says what others have changed of a lead that came back.
func (j *job) noteOthers(lead *leadapi.Lead) {
	before := &j.leadBefore
	if !j.step.Send.Status && before.Unsettled == "" && before.Status != "" && lead.Status != "" && lead.Status != before.Status {
		j.noteStatus(lead.Status)
	}
	j.noteOwner(lead)
}

// noteStatus says, once, that others have given the lead this status.
func (j *job) noteStatus(service string) {
	if before := &j.leadBefore; !j.moved.statusByOthers {
		j.moved.statusByOthers = true
		j.say(fmt.Sprintf("its status was changed on the service: %s was confirmed on %s, now it is %s", before.Status, clock(before.confirmed()), service))
	}
}

// noteKept says that the status which others gave the lead stands against the row's.
func (j *job) noteKept() {
	j.say(stands + j.entry.Seen.Status)
	j.kind = keptKind
}

// noteOverruled says where the file's status was sent over one that others gave the lead.
func (j *job) noteOverruled() {
	seen := j.leadBefore.Seen.Status
	if seen != "" && decide(j.it.rec.Status, &j.leadBefore, seen, RuleFile).byService {
		j.noteStatus(seen)
		j.say("the file's was sent")
	}
}

// noteOwner says that a lead that came back belongs to another organization.
func (j *job) noteOwner(lead *leadapi.Lead) {
	if before := &j.leadBefore; before.Organization != "" && lead.OwnerID != "" && lead.OwnerID != before.Organization {
		j.moved.ownerByOthers = true
		j.say("it belongs to another organization now")
	}
}

// sign says whose row it was that the entry shows.
func (c *carrier) sign(j *job) {
	j.entry.Run, j.entry.Updated = c.run, time.Now()
	j.entry.File, j.entry.Line = c.files[j.it.input], j.it.row.Line
}
