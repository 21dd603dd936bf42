package importer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Action is what the engine does for a Step.
type Action uint8

// The actions. Nothing ends the row as the Step says and sends nothing.
const (
	Nothing Action = iota
	Create
	Link
	Update
	Hold      // stores the row as in doubt: an incomplete checkpoint may lack its lead
	Read      // reads the lead, then decides again
	StoreSeen // stores what an earlier read of the lead showed
	Draw      // may draw the row for the sample, which is read at the end of the run
)

func (a Action) requests() bool { return a == Create || a == Link || a == Update || a == Read }

func (a Action) needsLane() bool { return a != Nothing && a != Draw }

// Step is what the planner decided about a row: what to do, and how the row then ends.
type Step struct {
	Action  Action
	changes // for Update and StoreSeen: the row compared with its lead
	ending  // once its last request is confirmed: of a create with an ExternalID, that is the link
}

// ends returns the step that ends a row and does nothing.
func ends(o Outcome, text string) Step { return Step{ending: ending{outcome: o, text: text}} }

// after returns the step with an action that comes before its end.
func (s Step) after(a Action) Step {
	s.Action = a
	return s
}

// planner decides what to do with a row, by the options of its run. It only decides: the engine acts.
type planner struct {
	o       *Options
	rules   mapping.ConflictRules
	planFor func(*item) Step // by newRun: forImport, forSync, forReconcile, or a create
	matches bool             // sync, reconcile: rows find their lead by its IDs, too
	digests *checkpoint.Digester
	since   time.Time // --fresh: leads confirmed or read since then are not read
}

// plan decides about a row. A row that fails a check is never sent. In an import, its outcome says whether its lead
// exists.
func (p *planner) plan(it *item) Step {
	faults := it.faults
	switch state := it.entry.State; {
	case it.row.Repeats:
		return ends(Skipped, "it is the header once more")
	case it.rec.Skip:
		return ends(Skipped, "left out by skip_if")
	case faults == nil:
		return p.planFor(it)
	case !p.matches && state == checkpoint.InDoubt:
		return inDoubtBefore(&it.entry)
	case p.matches || !state.HasLead():
		return ends(Invalid, mapping.Sentence(faults))
	case p.o.Changed == IgnoreChanged:
		return ends(Unchanged, "")
	}
	return ends(Changed, "its lead exists, but the row is not valid now: "+mapping.Sentence(faults))
}

// forImport creates leads that are not known, links those that are not linked, and updates others if --changed says so.
func (p *planner) forImport(it *item) Step {
	switch known := &it.entry; known.State {
	case checkpoint.Forgotten:
		return forgotten()
	case checkpoint.InDoubt:
		// only once in a run
		if p.o.ResendInDoubt && known.Run != p.o.RunID && !it.mayLack && known.Reason != checkpoint.ReasonIncomplete {
			return ends(Created, "").after(Create)
		}
		return inDoubtBefore(known)
	case checkpoint.Rejected:
		if known.Digest == it.requestDigest(p.digests) && !p.o.RetryRejected {
			return ends(Rejected, refusedBefore(known))
		}
	case checkpoint.Partial:
		return p.planLink(it)
	case checkpoint.Created:
		return p.planMade(it)
	}
	return p.planCreate(it)
}

// planMade compares the row with the data sent or last confirmed. The data of an adopted lead are not known.
func (p *planner) planMade(it *item) Step {
	known := &it.entry
	sentLast := known.Digest == it.requestDigest(p.digests) && known.Reason != reasonNotConfirmed
	switch {
	case p.o.Changed == UpdateChanged && sentLast && known.Unsettled == "" && !known.Synced:
		return ends(Unchanged, "")
	case p.o.Changed == UpdateChanged && known.LeadID == "":
		return ends(Changed, changedSince+", but the lead's ID is not known")
	case p.o.Changed == UpdateChanged:
		return p.planUpdate(it, nil)
	case p.o.Changed == IgnoreChanged, known.Digest == checkpoint.Digest{} && !known.Synced, sentLast,
		known.Synced && known.Unsettled == "" && !p.compare(it, known, nil, false).byFile():
		return ends(Unchanged, "")
	}
	return ends(Changed, changedSince+"; nothing was sent")
}

const changedSince = "the row, or what the mapping makes of it, changed since its lead was made"

// planLink finishes a lead that was created but not linked, if the row still asks for a link.
func (p *planner) planLink(it *item) Step {
	step := p.planMade(it)
	switch {
	case it.entry.LeadID == "" && step.outcome == Unchanged:
		step.text = "the lead exists, but its ID is not known, so it cannot be linked or updated: checkpoint resolve " +
			"takes the ID"
	case it.rec.ExternalID == "", it.entry.LeadID == "", step.Action.requests():
	case step.outcome == Unchanged:
		return ends(Created, "").after(Link)
	case step.outcome == Changed:
		return ends(Changed, changedSince+"; only its ExternalID was sent").after(Link)
	}
	return step
}

// planCreate makes a lead, unless the row may have one: under another key, in its rejects file, or one that was lost.
func (p *planner) planCreate(it *item) Step {
	switch {
	case it.owner.State != checkpoint.Unknown:
		return ends(Conflict, "its ExternalID is that of "+rowLike(it.owner)+nothingSent)
	case it.alike.State != checkpoint.Unknown:
		return ends(Conflict, lookingLike(it.alike)+nothingSent+" (hint: for two leads, add --look-alikes create)")
	case it.row.Outcome != "" && it.entry.State == checkpoint.Unknown:
		return ends(Conflict, "not sent: leadferry_outcome or leadferry_key says that this row has a lead, but the "+
			"checkpoint knows none with its key (hint: restore the key, use the right checkpoint, or empty "+
			"leadferry_outcome if no lead was made)")
	case it.mayLack:
		return ends(InDoubt, doubtReason(checkpoint.ReasonIncomplete, 0)).after(Hold)
	}
	return ends(Created, "").after(Create)
}

// forSync updates the lead of a row. If no lead is known, --missing decides.
func (p *planner) forSync(it *item) Step {
	if it.entry.State == checkpoint.InDoubt && it.by == checkpoint.ByKey && p.o.Missing == MissingCreate {
		return p.forImport(it)
	}
	step, cannot := withoutLead(it) // cannot: its lead is not known for certain
	missing := step.outcome == Unmatched && it.by == checkpoint.NoMatch
	switch {
	case !cannot, step.outcome == Unmatched && it.rec.LeadID != "": // the row itself names its lead
		if step = p.planUpdate(it, nil); step.Action == Nothing && step.outcome == Unchanged && it.entry.LeadID == "" {
			step = ends(Unmatched, "the lead that the row names is not known, and the row has nothing to send")
		}
	case missing && p.o.Missing == MissingCreate:
		return p.forImport(it)
	case missing && p.o.Missing == MissingIgnore:
		return ends(Skipped, notKnown+" (--missing ignore)")
	case missing && it.alike.State != checkpoint.Unknown:
		step.text += "; " + lookingLike(it.alike)
	}
	return step
}

// planUpdate decides how to bring a lead in step with its row: before a read (shown is nil), and again with an answer.
// If an earlier row's update of the lead got no answer in this run, nothing is sent: that update may still arrive.
func (p *planner) planUpdate(it *item, shown *leadapi.Lead) Step {
	known := &it.entry
	cs := p.compare(it, known, shown, p.o.CheckRemote == ReadAll)
	step := Step{changes: cs, ending: ending{outcome: Unchanged}}
	step.remarks[serviceKept] = cs.of(atStatus).choice == keeps
	service, changed := shownStatus(known, shown), cs.byFile()
	opens := p.o.HoldReopen && cs.of(atStatus).choice == sends && !isClosed(it.rec.Status)
	mayBeClosed := opens && (!isStatus(service) || shown == nil && known.Unsettled != "" && isClosed(known.Sought))
	canRead := p.readable(known) || known.LeadID == "" && !p.o.ReadByExternalID // the row has the ID
	step.remarks[notReadable] = p.o.CheckRemote != ReadNothing && !p.o.DryRun && known.LeadID != "" &&
		!p.readable(known) && (p.o.CheckRemote == ReadAll || changed)
	switch beforeRead := shown == nil; {
	case beforeRead && changed && known.Unsettled != "" && known.Unsettled == p.o.RunID:
		return ends(Pending, "an update of its lead in this run was not confirmed yet")
	case beforeRead && changed && !p.o.RetryRejected && known.Refused != (checkpoint.Digest{}) &&
		known.Refused == it.requestDigest(p.digests):
		step.outcome, step.text = Rejected, refusedBefore(known)
		return step
	case beforeRead && (p.mustRead(known, cs) || mayBeClosed && canRead && !p.o.DryRun):
		step.Action = Read
	case cs.chosen(asks) != nil:
		step.outcome, step.text = Conflict, listed(byOthers, cs.named(asks, changedTo(known, service)))+nothingSent
	case opens && isClosed(service), mayBeClosed && !(beforeRead && canRead):
		if !isClosed(service) {
			service = "perhaps closed (its status is not known)"
		}
		const reopened = "the lead is %s, and the row would reopen it as %s" + nothingSent
		step.outcome, step.text = Conflict, fmt.Sprintf(reopened, service, it.rec.Status)
	case cs.chosen(sends) != nil:
		step.Action, step.outcome = Update, Updated
	default:
		if step.text = listed(serviceWins, cs.named(keeps, "Status "+service)); beforeRead && cs.mustStoreSeen(it) {
			step.Action = StoreSeen
		}
	}
	return step
}

// mustRead reports whether to read a lead before its row is sent: if --check-remote asks for it, or if an ExternalID or
// a content key changes that has a rule of its own, other than file: only a read shows what others changed there.
func (p *planner) mustRead(known *checkpoint.Entry, cs changes) bool {
	switch {
	case p.o.DryRun || !p.readable(known):
		return false
	case p.o.CheckRemote == ReadAll, p.o.CheckRemote == ReadChanged &&
		(cs.byFile() || cs.chosen(asks) != nil || known.Seen.Status != "" && known.Seen.Status != known.Status):
		return true
	}
	return slices.ContainsFunc(cs, func(c change) bool {
		return c.own != "" && c.own != mapping.RuleFile && (c.choice == sends || c.choice == asks)
	})
}

func isStatus(s string) bool { _, is := mapping.StatusKey(s); return is }

// isClosed reports whether a status is final (specification, "States and transitions"): the name begins with closed.
func isClosed(status string) bool { return strings.HasPrefix(status, "closed") }

// withoutLead ends a row whose lead is not known for certain; cannot reports whether it does.
func withoutLead(it *item) (step Step, cannot bool) {
	rec, known := &it.rec, &it.entry
	switch {
	case it.by == checkpoint.Ambiguous:
		return ends(Conflict, "the row names two leads: its key, lead ID and ExternalID do not belong to one"), true
	case known.State == checkpoint.Forgotten:
		return forgotten(), true
	case known.State == checkpoint.InDoubt:
		held := inDoubtBefore(known)
		if it.by == checkpoint.ByExternalID {
			other := checkpoint.Likeness{State: checkpoint.InDoubt, File: known.File, Line: known.Line}
			held.text = "its ExternalID is that of " + rowLike(other) + ": " + held.text
		}
		return held, true
	case it.by == checkpoint.NoMatch:
		return ends(Unmatched, notKnown), true
	case known.LeadID == "":
		return ends(Unmatched, "the lead exists, but its ID is not known"), true
	case rec.LeadID != "" && known.LeadID != rec.LeadID:
		return ends(Conflict, "the row names another lead than the one that is known by its key"), true
	}
	return Step{}, false
}

const (
	nothingSent = ": nothing was sent"
	notKnown    = "no lead is known for the row"
)

func lookingLike(l checkpoint.Likeness) string {
	if l.State == checkpoint.Forgotten {
		return "its key or ExternalID looks like one that was forgotten"
	}
	return "its key looks like that of " + rowLike(l)
}

func rowLike(l checkpoint.Likeness) string {
	where, has := "another row", "which has a lead"
	if l.File != "" {
		where += fmt.Sprintf(" (%s:%d)", l.File, l.Line)
	}
	if l.State == checkpoint.InDoubt {
		has = "which is in doubt"
	}
	return where + ", " + has
}

func forgotten() Step { return ends(Skipped, "left out by an earlier `checkpoint forget`") }

// inDoubtBefore ends a row that an earlier send left in doubt. The time in its text helps to find the lead.
func inDoubtBefore(known *checkpoint.Entry) Step {
	why := doubtReason(known.Reason, known.Code)
	if known.Reason == checkpoint.ReasonIncomplete {
		return ends(InDoubt, why)
	}
	return ends(InDoubt, fmt.Sprintf("a send of %s got no usable answer (%s): held back until a person settles it",
		spelling.Time(known.Updated, spelling.Seconds), why))
}

func refusedBefore(known *checkpoint.Entry) string {
	how := "refused"
	if known.Code != 0 {
		how += fmt.Sprintf(" with HTTP %d", known.Code)
	}
	return how + " in an earlier run with the same data; not sent again without --retry-rejected"
}
