package importer

import (
	"fmt"

	"leadferry/checkpoint"
)

// Missing says what a sync does with rows whose lead is not known.
type Missing uint8

// MissingReport counts them as unmatched, MissingCreate makes their leads, and
// MissingIgnore leaves them out.
const (
	MissingReport Missing = iota
	MissingCreate
	MissingIgnore
)

// syncPlanner brings leads in step with their rows.
type syncPlanner struct {
	importPlanner // for rows whose lead is to be made
	missing       Missing
	holdReopen    bool
}

func (p syncPlanner) Plan(c *Case) Step {
	rec, known := c.Record, c.Known
	switch {
	case c.Found == checkpoint.Ambiguous:
		return Step{Outcome: Conflict, Reason: "the row names two leads: its key, lead ID and ExternalID do not belong to one"}
	case known.State == checkpoint.Forgotten:
		return forgotten()
	case known.State == checkpoint.InDoubt && p.missing == MissingCreate && c.Found == checkpoint.ByKey:
		return p.importPlanner.Plan(c)
	case known.State == checkpoint.InDoubt && c.Found == checkpoint.ByExternalID:
		return Step{Outcome: InDoubt, Reason: "its ExternalID is that of " + rowOf(known) + ": " + heldBack(known)}
	case known.State == checkpoint.InDoubt:
		return Step{Outcome: InDoubt, Reason: heldBack(known)}
	case c.Found == checkpoint.NoMatch && rec.LeadID == "":
		return p.unmatched(c)
	case known.LeadID != "" && rec.LeadID != "" && known.LeadID != rec.LeadID:
		return Step{Outcome: Conflict, Reason: "the row names another lead than the one that is known by its key"}
	case known.LeadID == "" && rec.LeadID == "":
		return Step{Outcome: Unmatched, Reason: "the lead exists, but its ID is not known"}
	}
	return p.update(c)
}

// unmatched is a row for which no lead is known.
func (p syncPlanner) unmatched(c *Case) Step {
	switch p.missing {
	case MissingCreate:
		return p.importPlanner.Plan(c)
	case MissingIgnore:
		return Step{Outcome: Skipped, Reason: "no lead is known for the row (--missing ignore)"}
	}
	const reason = "no lead is known for the row"
	switch {
	case c.Known.State == checkpoint.Rejected:
		return Step{Outcome: Unmatched, Reason: reason + ": the service refused to make it"}
	case c.Alike.State != checkpoint.Unknown:
		return Step{Outcome: Unmatched, Reason: reason + "; " + lookingLike(c.Alike), Kind: reason + "; its key looks like one that is known: the results say which"}
	}
	return Step{Outcome: Unmatched, Reason: reason}
}

func (p syncPlanner) update(c *Case) Step {
	rec, known := c.Record, c.Known
	step := planUpdate(c, p.retryRejected)
	if step.Action == Nothing && known.LeadID == "" {
		return Step{Outcome: Unmatched, Reason: "the lead that the row names is not known, and the row has nothing to send"}
	}
	if step.Action == Update && p.holdReopen && isClosed(known.Status) && rec.Status != "" && !isClosed(rec.Status) {
		return Step{Outcome: Conflict, Reason: fmt.Sprintf("the lead is %s, confirmed on %s, and the row would reopen it as %s: nothing was sent",
			known.Status, clock(confirmedAt(known)), rec.Status)}
	}
	return step
}

// planUpdate sends what differs of a lead that is known. Behind an update of this run
// that got no answer nothing is sent: it may still arrive.
func planUpdate(c *Case, retryRejected bool) Step {
	known := c.Known
	send := c.changes()
	switch {
	case send.none():
		return Step{Outcome: Unchanged}
	case known.Unsettled != "" && known.Unsettled == c.Run:
		return Step{Outcome: Pending, Reason: "an update of its lead in this run was not confirmed yet"}
	case known.Refused != (checkpoint.Digest{}) && known.Refused == c.digest() && !retryRejected:
		return Step{Outcome: Rejected, Reason: refusedBefore(known)}
	}
	return Step{Action: Update, Outcome: Updated, Send: *send}
}
