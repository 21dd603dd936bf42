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
	"leadferry/internal/failpoint"
	"leadferry/leadapi"
)

// leadBefore is what was known of a lead before an update of it.
type leadBefore struct {
	status, organization string
	confirmed            time.Time // when the status was
	unsettled, sought    string    // an update before this one, as the checkpoint keeps it
}

// update brings a lead in step with its row. From its mark to its answer nobody knows what
// the service holds of what the row names.
func (c *carrier) update(ctx context.Context, j *job) {
	if !c.mark(j) || c.checkRemote && !c.readFirst(ctx, j) {
		return
	}
	lead, err := c.patch(ctx, j, updateRequest(&j.it.rec, &j.step.Send))
	if err != nil {
		c.notUpdated(j, err)
		return
	}
	c.updated(j, lead)
}

// mark makes it durable that an update of the lead is about to be sent. A lead that only
// the file knew becomes known by it.
func (c *carrier) mark(j *job) bool {
	known := &j.entry
	j.leadBefore = leadBefore{known.Status, known.Organization, confirmedAt(known), known.Unsettled, known.Sought}
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
	take(&j.sentSlot, c.sentSlots)
	return true
}

func confirmedAt(known *checkpoint.Entry) time.Time {
	if known.Confirmed.IsZero() {
		return known.Updated
	}
	return known.Confirmed
}

// patch sends an update until its answer is final.
func (c *carrier) patch(ctx context.Context, j *job, r *leadapi.UpdateRequest) (lead *leadapi.Lead, err error) {
	failpoint.At("before update")
	tries, err := c.retrier.deliver(ctx, c.phases.taking, nil, func(ctx context.Context) (err error) {
		lead, err = c.sender.Update(ctx, j.entry.LeadID, r)
		var ae *leadapi.Error
		if errors.As(err, &ae) && ae.Applied != leadapi.No {
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
	var stop *Stop
	var ae *leadapi.Error
	stops := errors.As(err, &stop) || errors.Is(err, errStopping)
	c.stopRun(j, stop)
	if errors.As(err, &ae) {
		j.entry.Code, j.entry.Reason = ae.Status, ae.Reason
	}
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
	case ae != nil:
		j.refuse("not updated: %s", ae)
		c.release(j, Failed)
	default:
		j.text = "not updated: " + err.Error()
		c.release(j, Failed)
	}
}

// refusedForGood reports whether the service, or the client, will never take the request.
func refusedForGood(ae *leadapi.Error) bool {
	return ae.Applied == leadapi.No && ae.Status != http.StatusUnauthorized && !throttled(ae) && !transient(ae.Status)
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
	entry.Unsettled, entry.Sought = j.leadBefore.unsettled, j.leadBefore.sought
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
	entry.Confirmed = j.leadBefore.confirmed
	if !j.maybeApplied {
		entry.Unsettled, entry.Sought = j.leadBefore.unsettled, j.leadBefore.sought
	}
	c.sign(j)
	c.settle(j, Rejected)
}

// readFirst reads the lead before it is changed, by an update of the ExternalID that it
// has already, and reports whether the row may go on. A status that nobody here
// confirmed, and that the row does not ask for, is a conflict. It stays one until the
// row or the service agrees: the checkpoint keeps what was confirmed.
func (c *carrier) readFirst(ctx context.Context, j *job) (goesOn bool) {
	external := j.entry.ExternalID
	if external == "" {
		j.unread = true
		return true
	}
	lead, err := c.patch(ctx, j, &leadapi.UpdateRequest{ExternalID: &external})
	switch {
	case err != nil:
		c.notUpdated(j, err)
	case lead.ID != j.entry.LeadID:
		c.unanswered(j, "the lead that came back is another one")
	case lead.ExternalID != external:
		c.unanswered(j, "the lead came back with another ExternalID")
	case j.agrees(lead.Status):
		j.maybeApplied = false
		return c.proceed(j, lead)
	default:
		j.text = fmt.Sprintf("the lead's status on the service is %s; %s was confirmed on %s: nothing was sent",
			cmp.Or(lead.Status, "not readable"), j.leadBefore.status, clock(j.leadBefore.confirmed))
		j.entry.Code = http.StatusOK
		c.release(j, Conflict)
	}
	return false
}

// agrees reports whether the status is one that the run may find: the one confirmed,
// the one that an unsettled update asked for, or the row's own.
func (j *job) agrees(status string) bool {
	before := &j.leadBefore
	return before.status == "" || status == before.status || status == j.it.rec.Status ||
		before.unsettled != "" && status == before.sought
}

// proceed goes on with what is left to send: the row's status may be there already.
func (c *carrier) proceed(j *job, lead *leadapi.Lead) bool {
	send := &j.step.Send
	if !send.Status || lead.Status != j.it.rec.Status {
		return true
	}
	send.Status = false
	if !send.none() {
		return true
	}
	if j.leadBefore.unsettled != "" {
		j.entry.Content = nil // the row has none, so what the lead holds stays unknown
	}
	c.see(j, lead)
	j.entry.Synced = true
	c.settle(j, Unchanged)
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
	j.takeContent(wrong)
	entry := &j.entry
	entry.Code, entry.Reason, entry.Refused = http.StatusOK, "", checkpoint.Digest{}
	if names != nil {
		entry.Reason, entry.Synced = reasonNotConfirmed, true
		j.text = "the update was answered but not confirmed: the lead came back with another " + strings.Join(names, ", ")
		c.settle(j, Failed)
		return
	}
	if send.Status && entry.Status != j.leadBefore.status {
		j.moved.from, j.moved.to = j.leadBefore.status, entry.Status
	}
	if c.matches {
		entry.Synced = true
	} else {
		entry.Digest, entry.Synced = j.it.digest, false
	}
	if entry.State == checkpoint.Partial && entry.ExternalID != "" && entry.ExternalID == rec.ExternalID {
		entry.State, entry.WantLink = checkpoint.Created, ""
	}
	c.settle(j, j.step.Outcome)
}

// see takes over what the service shows of a lead, and notes what others changed.
func (c *carrier) see(j *job, lead *leadapi.Lead) {
	entry, before := &j.entry, &j.leadBefore
	if lead.Status != "" {
		entry.Status = lead.Status
	}
	if lead.ExternalID != "" {
		entry.ExternalID = lead.ExternalID
	}
	if lead.OwnerID != "" {
		entry.Organization = lead.OwnerID
	}
	if lead.LocationName != "" {
		entry.Location = lead.LocationName
	}
	entry.Unsettled, entry.Sought, entry.Confirmed = "", "", checkpoint.Entry{}.Confirmed
	c.sign(j)
	if !j.step.Send.Status && before.unsettled == "" && before.status != "" && entry.Status != before.status {
		j.moved.statusByOthers = true
		j.say(fmt.Sprintf("its status was changed on the service: %s was confirmed on %s, now it is %s",
			before.status, clock(before.confirmed), entry.Status))
	}
	if before.organization != "" && entry.Organization != before.organization {
		j.moved.ownerByOthers = true
		j.say("it belongs to another organization now")
	}
}

// takeContent keeps the digests of what the content is known to hold now.
func (j *job) takeContent(wrong map[int]bool) {
	known := j.entry.Content
	if j.leadBefore.unsettled != "" {
		known = nil // the update before this one may have changed any of them
	}
	j.entry.Content = merged(known, &j.it.rec, j.it.sums, wrong)
}

// sign says whose row it was that the entry shows.
func (c *carrier) sign(j *job) {
	j.entry.Run, j.entry.Updated = c.run, time.Now()
	j.entry.File, j.entry.Line = c.files[j.it.input], j.it.row.Line
}
