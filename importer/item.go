package importer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// item is one row on its way through the engine.
type item struct {
	input   int // which of the run's files
	row     source.Row
	binding *mapping.Binding // the mapping for the row's columns; of no use if the row could not be split
	rec     mapping.Record
	faults  []mapping.Problem          // the checks that the row fails; nil: it is valid
	digest  checkpoint.Digest          // of what the row sends, see requestDigest; zero: not made yet
	content []checkpoint.ContentDigest // of each value of the content; nil: not made yet
	queued
	matched
	result // entry is what is known of the lead, and in the end what was settled
}

// matched is what the checkpoint says about a row, besides the entry of its lead.
type matched struct {
	by      checkpoint.Match    // how its entry was found
	alike   checkpoint.Likeness // if no lead was found: a key that looks like the row's
	owner   checkpoint.Likeness // import: another row that has, or asked for, this row's ExternalID
	mayLack bool                // the checkpoint is incomplete and may have lost a lead of the row
}

// result is how one row ended or, until then, what is known of it.
type result struct {
	ending
	entry     checkpoint.Entry  // of the row, now
	words     string            // the service's own words, for the rejects only, or ""
	attempts  int               // requests sent in this run
	refusedAs int               // HTTP status if a read was refused, or the second send of a row in doubt; or 0
	unkept    bool              // its lead was made, and the checkpoint could not keep the lead's ID
	moved     report.Transition // the status before and after the update; equal: it was not changed
	since     string            // when it began to need attention for this reason
}

// ending is how a row ends: first as planned, in the end as it happened.
type ending struct {
	outcome Outcome
	text    string // for people: why
	remarks [remarkCount]bool
	found   comparison // in a reconciliation
}

// job is a row that a lane carries. step.ending says how it ends if all goes well. The item's own ending (j.outcome,
// j.text) and result (j.entry, j.attempts) say how it would end if the work stopped here.
type job struct {
	*item
	step      Step
	before    checkpoint.Entry   // what was known of the lead before its request; look adds what its read showed
	durable   checkpoint.Entry   // what the ledger has of it now
	change    *checkpoint.Change // what the ledger is asked to store
	refusal   error              // why the ledger refused the claim or the mark: the request was not sent
	marked    bool               // Update: the mark is durable
	unsure    bool               // Update: nobody knows whether a try was applied
	pass      delivery.Pass      // Create: the request in the queue of the breaker
	request   leadapi.CreateRequest
	requestID string   // Create: of its last attempt; "": requests carry no IDs
	others    []string // fields of the lead that others changed, for people
}

// asStored takes the entry back to what the ledger has, after a change was not stored. The ID of a new lead stays.
func (j *job) asStored() {
	wanted := j.entry
	j.entry = j.durable
	j.entry.Code, j.entry.Reason = wanted.Code, cmp.Or(wanted.Reason, j.entry.Reason)
	if j.unkept = j.outcome == InDoubt && wanted.LeadID != "" && wanted.LeadID != j.before.LeadID; j.unkept {
		j.entry.LeadID, j.entry.Reason = wanted.LeadID, checkpoint.ReasonUnkept
	}
}

// resends reports whether this create sends a row again that an earlier send left in doubt.
func (j *job) resends() bool { return j.step.Action == Create && j.before.State == checkpoint.InDoubt }

// sayOrganization says if the service gave the lead to another organization than the row asked for, or names none.
func (j *job) sayOrganization() {
	asked, given := j.rec.Organization, j.entry.Organization
	switch {
	case j.outcome != Created && j.outcome != Partial || j.entry.LeadID == "":
	case given == "" && j.step.Action == Create:
		j.say("the service does not say which organization it assigned")
	case given != "" && asked != "" && given != asked:
		j.say("the service assigned another organization than the row asked for")
	}
}

// sayOwner says if the lead of an answer belongs to another organization.
func (j *job) sayOwner(lead *leadapi.Lead) {
	had := j.before.Organization
	if j.before.State.HasLead() && had != "" && lead.OwnerID != "" && lead.OwnerID != had {
		const elsewhere = "it belongs to another organization now"
		if !strings.Contains(j.text, elsewhere) { // an earlier answer may have shown it
			j.say(elsewhere)
		}
		j.remarks[ownerByOthers] = true
	}
}

func (e *ending) say(text string) {
	if e.text != "" && text != "" {
		text = e.text + "; " + text
	}
	e.text = cmp.Or(text, e.text)
}

// ForLocator is the prefix of a locator that takes the place of an organization.
const ForLocator = "locator "

// OrganizationOf is the lead's organization or, while that is not known, the locator that was asked for.
func OrganizationOf(e *checkpoint.Entry) string {
	if e.Organization == "" && e.Locator != "" {
		return ForLocator + e.Locator
	}
	return e.Organization
}

// WithRequestID adds the request ID of a row in doubt. With it, the service's operators can find the request.
func WithRequestID(text string, e *checkpoint.Entry) string {
	if e.State != checkpoint.InDoubt || e.RequestID == "" {
		return text
	}
	return text + "; request ID " + e.RequestID
}

// Outcome says how a row ended a run.
type Outcome = report.Outcome

const (
	Created, Updated, Unchanged, Changed = report.Created, report.Updated, report.Unchanged, report.Changed
	Skipped, Invalid, Rejected, Failed   = report.Skipped, report.Invalid, report.Rejected, report.Failed
	Partial, InDoubt, Unmatched          = report.Partial, report.InDoubt, report.Unmatched
	Conflict, Pending                    = report.Conflict, report.Pending
)

// remark is a kind of news about a row's lead, besides the outcome. The summary counts the rows of each kind.
type remark uint8

const (
	rowHeld       remark = iota // an incomplete checkpoint may lack its lead
	answeredDoubt               // the input is a rejects file, and a person wrote an answer into the row
	statusByOthers
	ownerByOthers
	serviceKept // the service's status is kept, not the file's
	notReadable
	remarkCount
)

var remarkNotes = [remarkCount]string{
	rowHeld: "Rows that were held, not sent: %d. The checkpoint is incomplete, and their leads may exist. leadferry " +
		"checkpoint resolve settles them one by one, and results of earlier runs may know their IDs. leadferry " +
		"checkpoint check --accept-loss frees those that were never in doubt. Both need this run's --checkpoint.",
	answeredDoubt: "Rows in doubt whose leadferry_lead_id in this file holds an answer: %d. A run does not read the " +
		"answers: settle them with leadferry checkpoint resolve and this file.",
	statusByOthers: "Leads whose status was changed on the service since it was confirmed: %d. The results say what " +
		"it is now; --conflict says what a sync makes of them.",
	ownerByOthers: "Leads that belong to another organization than before: %d. The run's files say to which.",
	serviceKept: "Leads that have another status on the service than in the file: %d. --pull writes what the CRM " +
		"should take over.",
	notReadable: "Leads that --check-remote could not read, because their ExternalID is not known: %d. What " +
		"others changed in them was not seen.",
}

const seeRejects = ", see the rejects"

// refuse notes an error of a request. Status and class of the service's answer go into the entry and the text. The
// service's words may repeat the row's cells, so only the rejects get them. format has one verb.
func (r *result) refuse(format string, err error) {
	text := err.Error()
	if ae, answered := errors.AsType[*leadapi.Error](err); answered {
		r.entry.Code, r.entry.Reason = ae.Status, ae.Reason
		if text = ae.Message; ae.Status != 0 {
			r.words = ae.Message
			text = fmt.Sprintf("HTTP %d (%s)", ae.Status, strings.ReplaceAll(ae.Reason, "_", " ")) + seeRejects
		}
	}
	r.text = fmt.Sprintf(format, text)
}

func (r *result) rejected() string { return strings.Replace(r.text, seeRejects, ": "+r.words, 1) }

const reasonPanic = "panic" // the class of a doubt after a fault of the program

var doubtReasons = map[string]string{
	"":                         "no answer is known: the run ended before it came, or still waits for it",
	checkpoint.ReasonLeadTaken: "the answer names a lead ID that belongs to another row",
	checkpoint.ReasonIncomplete: "held: the checkpoint is incomplete, and the row may have a lead that it does not " +
		"know any more",
	checkpoint.ReasonAdopted: "it was in doubt in the checkpoint that it was taken over from",
	checkpoint.ReasonUnkept:  "its lead was made, and the checkpoint could not keep the lead's ID",
	reasonPanic:              "the program failed while the request was under way",
}

func doubtReason(class string, code int) string {
	text := cmp.Or(doubtReasons[class], leadapi.DoubtReasons[class], class)
	if code != 0 {
		return fmt.Sprintf("%s, HTTP %d", text, code)
	}
	return text
}

// Explain says to people why an entry is in its state. It returns "" if there is nothing to explain.
func Explain(e *checkpoint.Entry) string {
	switch {
	case e.State == checkpoint.InDoubt:
		return doubtReason(e.Reason, e.Code)
	case e.State == checkpoint.Rejected:
		return refusedBefore(e)
	case e.Unsettled != "":
		return fmt.Sprintf("an update of run %s was not confirmed: the next one sends it again", e.Unsettled)
	case e.State == checkpoint.Partial:
		return "created but not linked yet"
	case e.State == checkpoint.Created && e.Refused != (checkpoint.Digest{}):
		return fmt.Sprintf("its last update was refused with HTTP %d", e.Code)
	}
	return ""
}
