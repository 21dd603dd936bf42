package importer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"leadferry/leadapi"
)

// errUnreadable is an answer that does not show the lead that was meant.
type errUnreadable string

func (e errUnreadable) Error() string { return string(e) }

// readLead asks the service what it holds of a lead (section "6. Update a lead"): by an update of no content, which is merged
// into nothing, or of the ExternalID that the lead has, where others' is overwritten. The first lead of a run is read twice,
// which shows whether a read moves UpdatedAt.
func (c *carrier) readLead(ctx context.Context, j *job) (*leadapi.Lead, error) {
	lead, err := c.readOnce(ctx, j)
	if err != nil {
		return nil, c.refusesReads(err)
	}
	if c.conflicts.byExternalID || !c.hasRead.CompareAndSwap(false, true) {
		return lead, nil
	}
	again, err := c.readOnce(ctx, j)
	if err != nil {
		return nil, err
	}
	j.moved.byReading = !again.UpdatedAt.Equal(lead.UpdatedAt)
	return again, nil
}

func (c *carrier) readOnce(ctx context.Context, j *job) (*leadapi.Lead, error) {
	r := &leadapi.UpdateRequest{Content: []leadapi.ContentField{}}
	external := j.entry.ExternalID
	if c.conflicts.byExternalID {
		r = &leadapi.UpdateRequest{ExternalID: &external}
	}
	lead, err := c.patch(ctx, c.phases.taking, j, r)
	j.maybeApplied = false // there was nothing to apply
	switch {
	case err != nil:
		return nil, err
	case lead.ID != j.entry.LeadID:
		return nil, errUnreadable("the lead that came back is another one")
	case c.conflicts.byExternalID && lead.ExternalID != external:
		return nil, errUnreadable("the lead came back with another ExternalID")
	}
	return lead, nil
}

// refusesReads makes the refusal of a run's first read the end of the run: what the service refuses is the read itself then.
func (c *carrier) refusesReads(err error) error {
	ofTheLead := []int{http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusGone}
	ae, answered := errors.AsType[*leadapi.Error](err)
	if !answered || ae.Status < 400 || ae.Status > 499 || !refusedForGood(ae) || slices.Contains(ofTheLead, ae.Status) ||
		c.conflicts.byExternalID || c.hasRead.Load() {
		return err
	}
	return &Stop{
		Reason: fmt.Sprintf("the service does not let leads be read by an update of no content: HTTP %d (%s)", ae.Status, ae.Message), Code: CodeStopped, Same: true,
		Hint: "--read external-id reads them by an update of the ExternalID that was last confirmed; one that others have changed is overwritten by it",
	}
}
