package importer

import (
	"cmp"
	"slices"
	"time"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// answer is what the service shows of a lead, now or in an earlier run.
type answer struct {
	*leadapi.Lead
	at   time.Time
	sent []int // indexes of the fields that were sent (change.at)
}

// remembered is what an earlier run saw of the lead, without content.
func remembered(b *checkpoint.Entry, rec *mapping.Record) *answer {
	lead := &leadapi.Lead{
		ID: b.LeadID, Status: b.Seen.Status, OwnerID: b.Seen.Organization, ExternalID: b.ExternalID,
		HasExternal: b.Moved() && rec.ExternalID != "",
	}
	return &answer{Lead: lead, at: b.Seen.At}
}

// sightOf is what to store of the status in an answer. If the service's status won before, it
// goes on winning as long as the service shows that same status.
func sightOf(b *checkpoint.Entry, a *answer) checkpoint.Sight {
	if a.Status == "" {
		return b.Seen
	}
	s := checkpoint.Sight{At: a.at.UTC().Truncate(time.Millisecond), Status: a.Status, Organization: a.OwnerID}
	if b.Seen.Status == a.Status {
		s.Against = b.Seen.Against
	}
	return s
}

// takeSeen fills the entry with what the service shows of a lead, beside what was confirmed. A partial lead is created
// if it has the wanted ExternalID. If others changed the ExternalID, WantLink keeps the confirmed one, or the row's if
// the service's wins, so that rows find the lead by both.
func (cs changes) takeSeen(e *checkpoint.Entry, rec *mapping.Record, before *checkpoint.Entry, a *answer) {
	if e.Seen = sightOf(before, a); a.Status != "" && cs.of(atStatus).choice == keeps {
		e.Seen.Against = cmp.Or(rec.Status, before.Seen.Against, before.Status) // else what it won against before
	}
	confirmed := before.Linked()
	switch shown := a.ExternalID; {
	case !a.HasExternal:
	case e.State == checkpoint.Partial:
		e.ExternalID = shown
		if shown != "" && (shown == rec.ExternalID || shown == e.WantLink) {
			e.State, e.WantLink = checkpoint.Created, ""
		}
	case shown == confirmed, rec.ExternalID == "", rec.ExternalID == shown:
		e.ExternalID, e.WantLink = shown, ""
	case cs.of(atExternal).choice == keeps:
		e.ExternalID, e.WantLink = shown, rec.ExternalID
	default:
		e.ExternalID, e.WantLink = shown, cmp.Or(confirmed, rec.ExternalID)
	}
}

// takeConfirmed takes what the service shows as the new confirmed values, except a status that others set, unless the
// row has the same. An earlier update without an answer may have changed any content.
func (cs changes) takeConfirmed(e *checkpoint.Entry, rec *mapping.Record, before *checkpoint.Entry, a *answer) {
	cs.takeSeen(e, rec, before, a)
	e.Unsettled, e.Sought, e.Confirmed = "", "", a.at
	if a.Status != "" && (slices.Contains(a.sent, atStatus) || !cs.of(atStatus).byService) {
		e.Status, e.Seen = a.Status, checkpoint.Sight{}
	}
	if e.Seen.Status != "" { // the confirmed status is of that time
		e.Confirmed = before.ConfirmedAt()
	}
	e.Organization, e.Location = cmp.Or(a.OwnerID, e.Organization), cmp.Or(a.LocationName, e.Location)
	if e.Synced = true; before.Unsettled != "" {
		e.Content = nil
	}
	e.Content = slices.Clone(e.Content)
	for _, c := range cs { // a field that was sent and came back different is dropped: its value is not known
		at := indexOf(e.Content, c.sum.Name)
		switch {
		case c.at < 0:
		case c.choice == agrees && at >= 0:
			e.Content[at] = c.sum
		case c.choice == agrees:
			e.Content = append(e.Content, c.sum)
		case at >= 0 && slices.Contains(a.sent, c.at):
			e.Content = slices.Delete(e.Content, at, at+1)
		}
	}
}

// learned stores what is seen of a lead when nothing is to be sent, and reports whether more is confirmed than before.
func (cs changes) learned(e *checkpoint.Entry, rec *mapping.Record, a *answer) (more bool) {
	before := *e
	cs.takeConfirmed(e, rec, &before, a)
	if before.Unsettled != "" || e.Status != before.Status || !slices.Equal(e.Content, before.Content) {
		return true
	}
	*e = before
	cs.takeSeen(e, rec, &before, a)
	return false
}

// news reports whether this row changes what should be stored of what earlier runs saw.
func (cs changes) news(it *item) bool {
	known := &it.entry
	if known.Unsettled != "" || (known.Seen.Status == "" || known.Seen.Status == known.Status) && !known.Moved() {
		return false
	}
	e := *known
	return cs.learned(&e, &it.rec, remembered(known, &it.rec)) || e.Seen.Against != known.Seen.Against ||
		e.ExternalID != known.ExternalID || e.WantLink != known.WantLink
}
