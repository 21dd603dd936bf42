package importer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// mark makes it durable that an update of the lead is about to be sent: from here to
// its answer nobody knows what the service holds of what the row names. A lead that
// only the file knew becomes known by it.
func (e *engine) mark(j *job) {
	known := &j.entry
	j.leadBefore = leadBefore{known.Status, known.Organization, confirmedAt(known), known.Unsettled, known.Sought}
	if !known.State.HasLead() {
		known.Content = nil // what was refused or not made is nowhere
	}
	if known.LeadID == "" {
		known.LeadID, known.State = j.it.rec.LeadID, checkpoint.Created
	}
	known.Unsettled, known.Sought = e.RunID, j.it.rec.Status
	failpoint.At("before mark")
	e.launch()
	e.ledger.Mark(*known, func(stored checkpoint.Entry, err error) {
		if err != nil {
			e.post(event{job: j, outcome: Pending, err: err})
			return
		}
		j.entry = stored
		e.ready <- j
	})
}

func confirmedAt(known *checkpoint.Entry) time.Time {
	if known.Confirmed.IsZero() {
		return known.Updated
	}
	return known.Confirmed
}

// update sends what differs and settles what the answer shows.
func (e *engine) update(ctx context.Context, j *job) {
	if e.CheckRemote && !e.check(ctx, j) {
		return
	}
	lead, err := e.patch(ctx, j, updateRequest(&j.it.rec, &j.step.Send))
	if err != nil {
		e.notUpdated(j, err)
		return
	}
	e.updated(j, lead)
}

// patch sends an update until its answer is final.
func (e *engine) patch(ctx context.Context, j *job, r *leadapi.UpdateRequest) (lead *leadapi.Lead, err error) {
	failpoint.At("before update")
	tries, err := e.retrier.deliver(ctx, nil, func(ctx context.Context) (err error) {
		lead, err = e.sender.Update(ctx, j.entry.LeadID, r)
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
func (e *engine) notUpdated(j *job, err error) {
	var stop *Stop
	var ae *leadapi.Error
	if errors.As(err, &ae) {
		j.entry.Code, j.entry.Reason = ae.Status, ae.Reason
	}
	switch {
	case j.maybeApplied && ae != nil && final(ae):
		e.notTaken(j, ae)
	case j.maybeApplied && ae != nil:
		j.refuse(unconfirmed, ae)
		e.post(event{job: j, outcome: Failed})
	case errors.As(err, &stop):
		if j.maybeApplied {
			e.unanswered(j, "the run stopped before an answer came", stop)
			return
		}
		e.release(j, Pending, stop)
	case errors.Is(err, errStopping) && j.maybeApplied:
		e.unanswered(j, "the run stopped before an answer came", nil)
	case errors.Is(err, errStopping):
		e.release(j, Pending, nil)
	case ae != nil && final(ae):
		e.notTaken(j, ae)
	case ae != nil:
		j.refuse("not updated: %s", ae)
		e.release(j, Failed, nil)
	default:
		j.text = "not updated: " + err.Error()
		e.release(j, Failed, nil)
	}
}

// final reports whether the service, or the client, will never take the request.
func final(ae *leadapi.Error) bool {
	return ae.Applied == leadapi.No && ae.Status != http.StatusUnauthorized && !throttled(ae) && !transient(ae.Status)
}

// unconfirmed is for people: why nobody knows what an update has done.
const unconfirmed = "sent, but not confirmed (%s); the next run sends the whole row again"

// unanswered ends the row as failed and leaves the mark.
func (e *engine) unanswered(j *job, why string, stop *Stop) {
	j.text = fmt.Sprintf(unconfirmed, why)
	e.post(event{job: j, outcome: Failed, stop: stop})
}

// release takes the mark back, for nothing of the update was applied.
func (e *engine) release(j *job, outcome Outcome, stop *Stop) {
	entry := j.entry
	entry.Unsettled, entry.Sought = j.leadBefore.unsettled, j.leadBefore.sought
	e.ledger.Mark(entry, func(stored checkpoint.Entry, err error) {
		if err == nil {
			code, reason := j.entry.Code, j.entry.Reason
			if j.entry = stored; j.attempts > 0 {
				j.entry.Code, j.entry.Reason = code, reason
			}
		}
		e.post(event{job: j, outcome: outcome, stop: stop, err: err})
	})
}

// notTaken settles an update that the service will not take: what was confirmed
// stands, and the same data are not sent again. What a try before the refusal, or an
// update before this one, has left stays unknown.
func (e *engine) notTaken(j *job, ae *leadapi.Error) {
	j.refuse("%s", ae)
	entry := &j.entry
	entry.Code, entry.Reason, entry.Refused = ae.Status, ae.Reason, j.it.digest
	entry.Confirmed = j.leadBefore.confirmed
	if !j.maybeApplied {
		entry.Unsettled, entry.Sought = j.leadBefore.unsettled, j.leadBefore.sought
	}
	e.sign(j)
	e.settle(j, Rejected)
}

// sign says whose row it was that the entry shows.
func (e *engine) sign(j *job) {
	j.entry.Run, j.entry.Updated = e.RunID, time.Now()
	j.entry.File, j.entry.Line = e.rows.names[j.it.input], j.it.row.Line
}
