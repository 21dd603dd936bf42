package importer

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"leadferry/leadapi"
)

// closed are the statuses in which a lead ends (specification, "States and
// transitions").
var closed = []string{"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand"}

func isClosed(status string) bool { return slices.Contains(closed, status) }

// check reads the lead before it is changed, by an update of the ExternalID that it
// has already, and reports whether the row may go on. A status that nobody here
// confirmed, and that the row does not ask for, is a conflict. It stays one until the
// row or the service agrees: the checkpoint keeps what was confirmed.
func (e *engine) check(ctx context.Context, j *job) (goesOn bool) {
	external := j.entry.ExternalID
	if external == "" {
		e.unchecked.Add(1)
		return true
	}
	lead, err := e.patch(ctx, j, &leadapi.UpdateRequest{ExternalID: &external})
	switch {
	case err != nil:
		e.notUpdated(j, err)
	case lead.ID != j.entry.LeadID:
		e.unanswered(j, "the lead that came back is another one", nil)
	case lead.ExternalID != external:
		e.unanswered(j, "the lead came back with another ExternalID", nil)
	case e.agrees(j, lead.Status):
		j.maybeApplied = false
		return e.proceed(j, lead)
	default:
		j.text = fmt.Sprintf("the lead's status on the service is %s; %s was confirmed on %s: nothing was sent",
			cmp.Or(lead.Status, "not readable"), j.leadBefore.status, clock(j.leadBefore.confirmed))
		j.entry.Code = http.StatusOK
		e.release(j, Conflict, nil)
	}
	return false
}

// agrees reports whether the status is one that the run may find: the one confirmed,
// the one that an unsettled update asked for, or the row's own.
func (e *engine) agrees(j *job, status string) bool {
	before := &j.leadBefore
	return before.status == "" || status == before.status || status == j.it.rec.Status ||
		before.unsettled != "" && status == before.sought
}

// proceed goes on with what is left to send: the row's status may be there already.
func (e *engine) proceed(j *job, lead *leadapi.Lead) bool {
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
	e.see(j, lead)
	j.entry.Synced = true
	e.settle(j, Unchanged)
	return false
}
