package importer

import (
	"fmt"

	"leadferry/checkpoint"
	"leadferry/mapping"
)

// Action is what a Step has the engine do.
type Action uint8

// The actions. Nothing ends the row with the Step's Outcome and sends nothing.
const (
	Nothing Action = iota
	Create
	Link
)

// Step is a planner's answer for one Record.
type Step struct {
	Action  Action
	Outcome Outcome // for Nothing: how the row ends; for Link: how it ends once linked
	Reason  string  // for people: why the row ends so
}

// Planner decides what becomes of a Record from what the checkpoint knows of its
// key. It is pure: the engine alone acts.
type Planner interface {
	Plan(rec *mapping.Record, digest checkpoint.Digest, known *checkpoint.Entry) Step
}

// importPlanner creates leads that are not known and links those that lack their
// ExternalID. It never changes a lead that stands.
type importPlanner struct {
	retryRejected bool
	resendDoubt   bool
	ignoreChanged bool
}

func (p importPlanner) Plan(rec *mapping.Record, digest checkpoint.Digest, known *checkpoint.Entry) Step {
	switch known.State {
	case checkpoint.InDoubt:
		if p.resendDoubt {
			return Step{Action: Create}
		}
		return Step{Outcome: InDoubt, Reason: heldBack(known)}
	case checkpoint.Rejected:
		if known.Digest == digest && !p.retryRejected {
			return Step{Outcome: Rejected, Reason: refusedBefore(known)}
		}
		return Step{Action: Create}
	case checkpoint.Partial:
		return p.planLink(rec, digest, known)
	case checkpoint.Created:
		return p.planKnown(digest, known)
	}
	return Step{Action: Create}
}

func (p importPlanner) planKnown(digest checkpoint.Digest, known *checkpoint.Entry) Step {
	if known.Digest == digest || p.ignoreChanged {
		return Step{Outcome: Unchanged}
	}
	return Step{Outcome: Changed, Reason: "the lead exists and this row carries other data than was sent; nothing was sent"}
}

// planLink finishes a lead that was created but not linked. A row that no longer
// asks for a link has nothing to send.
func (p importPlanner) planLink(rec *mapping.Record, digest checkpoint.Digest, known *checkpoint.Entry) Step {
	step := p.planKnown(digest, known)
	if rec.ExternalID == "" || known.LeadID == "" {
		return step
	}
	if step.Outcome == Unchanged {
		step.Outcome = Created
	}
	step.Action = Link
	return step
}

func heldBack(known *checkpoint.Entry) string {
	return fmt.Sprintf("a send of %s got no usable answer (%s): held back until a person settles it",
		known.Updated.UTC().Format("2006-01-02 15:04:05Z"), doubtReason(known.Reason, known.Code))
}

func refusedBefore(known *checkpoint.Entry) string {
	if known.Code == 0 {
		return "refused in an earlier run with the same data; not sent again"
	}
	return fmt.Sprintf("refused with HTTP %d in an earlier run with the same data; not sent again", known.Code)
}

// validatePlanner takes every Record for a new lead; without a sender the row
// ends there.
type validatePlanner struct{}

func (validatePlanner) Plan(*mapping.Record, checkpoint.Digest, *checkpoint.Entry) Step {
	return Step{Action: Create}
}
