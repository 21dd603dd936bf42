package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/internal/failpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
)

// update brings a lead in step with its row. From its mark to its answer nobody knows what
// the service holds of what the row names.
func (c *carrier) update(ctx context.Context, j *job) {
	j.leadBefore, j.unread = leadBefore(j.entry), j.step.unread
	if j.step.looks && !c.readFirst(ctx, j) {
		return
	}
	for left := j.step.Send; !left.none(); {
		j.step.Send = left
		if left = c.sendUpdate(ctx, j); !left.none() {
			j.leadBefore, j.maybeApplied = leadBefore(j.entry), false
		}
	}
}

// sendUpdate sends an update and says what is left to send by the rules, where its answer shows what others have changed.
func (c *carrier) sendUpdate(ctx context.Context, j *job) (left Changes) {
	if !c.mark(j) {
		return left
	}
	lead, err := c.patch(ctx, c.phases.taking, j, updateRequest(&j.it.rec, &j.step.Send))
	if err != nil {
		c.notUpdated(j, err)
		return left
	}
	c.updated(j, lead)
	if j.outcome != Updated || c.phases.taking.Err() != nil {
		return left
	}
	w := c.conflicts.weighFields(&j.it.rec, j.it.sums, &j.leadBefore, sightingOf(lead), Changes{}, true, c.ledger.Digests())
	if names := keysOf(&j.it.rec, w.ahead); names != nil { // it is told alone: it counts where leads are read
		j.say(contentMoved + ": " + spelling.List(names, mostListed, nil))
	}
	w.send.Fields, w.send.Kept = nil, nil
	w.send.Status = w.send.Status && !c.conflicts.reopens(lead.Status, j.it.rec.Status)
	return w.send
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
	if j.step.Send.ExternalID && j.it.rec.ExternalID != "" {
		known.WantLink = j.it.rec.ExternalID
	}
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
	if j.intended {
		entry.WantLink = j.leadBefore.WantLink
	}
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
		entry.Unsettled, entry.Sought, entry.WantLink = j.leadBefore.Unsettled, j.leadBefore.Sought, j.leadBefore.WantLink
	}
	c.sign(j)
	c.settle(j, Rejected)
}

// readFirst reads the lead before it is changed, and reports whether the row may go on.
func (c *carrier) readFirst(ctx context.Context, j *job) (goesOn bool) {
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
	entry.Content = merged(entry.Content, rec, j.it.sums, send.Kept, wrong)
	entry.Code, entry.Reason, entry.Refused = http.StatusOK, "", checkpoint.Digest{}
	if names != nil {
		entry.Reason, entry.Synced = reasonNotConfirmed, true
		j.text = "the update was answered but not confirmed: the lead came back with another " + strings.Join(names, ", ")
		c.settle(j, Failed)
		return
	}
	if send.Status {
		j.noteOverruled()
	}
	j.noteStanding()
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
	d := decide(j.it.rec.Status, before.status(), lead.Status, c.conflicts.forStatus(lead.Status))
	elsewhere := !j.step.Send.Status && d.byService
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
	j.seeExternal(lead)
	entry.Organization = cmp.Or(lead.OwnerID, entry.Organization)
	entry.Location = cmp.Or(lead.LocationName, entry.Location)
	entry.Unsettled, entry.Sought, entry.Confirmed = "", "", checkpoint.Entry{}.Confirmed
	if entry.Seen.Status != "" { // what was confirmed stands as of then
		entry.Confirmed = before.confirmed()
	}
	c.sign(j)
	j.noteOthers(lead)
}

// seeExternal takes over which ExternalID the service shows. Where others have changed it, the one that was confirmed stays
// beside it as what the lead is to have, or the row's where the service's is let stand: rows find the lead by both.
func (j *job) seeExternal(lead *leadapi.Lead) {
	entry, before, rec := &j.entry, &j.leadBefore, &j.it.rec
	confirmed := before.linked()
	switch shown := lead.ExternalID; {
	case !lead.HasExternal:
		if j.step.Send.ExternalID && rec.Unlinks {
			entry.ExternalID, entry.WantLink = "", ""
		}
	case entry.State == checkpoint.Partial:
		entry.ExternalID = shown
		if shown != "" && (shown == rec.ExternalID || shown == entry.WantLink) {
			entry.State, entry.WantLink = checkpoint.Created, ""
		}
	case shown == confirmed, externalOf(rec) == "", externalOf(rec) == external(shown):
		entry.ExternalID, entry.WantLink = shown, ""
	default:
		entry.ExternalID, entry.WantLink = shown, cmp.Or(confirmed, rec.ExternalID)
		if slices.Contains(j.step.stands, externalField) {
			entry.WantLink = cmp.Or(rec.ExternalID, confirmed)
		} else if j.intended {
			j.say(externalMoved)
		}
	}
}

// noteOthers says what others have changed of a lead that came back.
func (j *job) noteOthers(lead *leadapi.Lead) {
	before := &j.leadBefore
	if !j.step.Send.Status && before.Unsettled == "" && before.Status != "" && lead.Status != "" && lead.Status != before.Status {
		j.noteStatus(lead.Status)
	}
	j.noteLead(lead)
}

// noteStatus says, once, that others have given the lead this status.
func (j *job) noteStatus(service string) {
	if before := &j.leadBefore; !j.moved.statusByOthers {
		j.moved.statusByOthers = true
		j.say(fmt.Sprintf("its status was changed on the service: %s was confirmed on %s, now it is %s", before.Status, clock(before.confirmed()), service))
	}
}

// noteStanding says which of the service's values stand against the row's.
func (j *job) noteStanding() {
	if text := standing(j.entry.Seen.Status, &j.step); text != "" {
		j.say(text)
		j.kind = keptKind
	}
}

// noteOverruled says where the file's status was sent over one that others gave the lead.
func (j *job) noteOverruled() {
	seen := j.leadBefore.Seen.Status
	if seen != "" && decide(j.it.rec.Status, j.leadBefore.status(), seen, RuleFile).byService {
		j.noteStatus(seen)
		j.say("the file's was sent")
	}
}

// noteLead says that a lead that came back belongs to another organization, or what else is strange about it.
func (j *job) noteLead(lead *leadapi.Lead) {
	if lead.ReadOnly && !j.moved.readOnly {
		j.moved.readOnly = true
		j.say("the service calls it read-only")
	}
	if lead.TestLead && !j.moved.test {
		j.moved.test = true
		j.say("the service calls it a test lead")
	}
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
