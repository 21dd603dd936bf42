package postgres

import (
	"cmp"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"leadferry/checkpoint"
)

// errUnsure says that a change needs to know more than what is at hand.
var errUnsure = errors.New("more has to be known")

// working is what one commit knows of its keys and does to them. What is not sure is what this
// process saw last, which the server compares; what is sure was read for it.
type working struct {
	now     time.Time
	worker  int64
	sure    bool
	rows    map[string]*row       // as they are to stand
	owners  map[string]string     // sure: the key of each lead that is asked about, or nothing
	decided map[string]*decision  // sure: the last one about each key
	busy    map[int64]bool        // sure: workers that may still send what they have claimed
	mine    func(key string) bool // sure: this process has claimed the key and not settled it
	found   []contradiction
}

// decision is one as it is kept.
type decision struct {
	checkpoint.Decision
	number int64
	at     time.Time
	send   *record // that it is about
}

// contradiction is evidence against a decision.
type contradiction struct {
	of    *decision
	other string
	text  string
}

// apply makes one change, or says why it is refused; errUnsure is no refusal.
func (w *working) apply(c *checkpoint.Change) error {
	if !checkpoint.ValidKey(c.Entry.Key) && c.Kind != checkpoint.Withdraw {
		return checkpoint.ErrKey
	}
	r := w.rows[c.Entry.Key]
	if r == nil {
		return errUnsure
	}
	next := *r
	var err error
	switch c.Kind {
	case checkpoint.Claim:
		err = w.claim(&next, &c.Entry)
	case checkpoint.Settle:
		err = w.settle(&next, &c.Entry)
	case checkpoint.Mark:
		err = w.mark(&next, &c.Entry)
	default:
		err = w.withdraw(&next)
	}
	if err == nil && (next.entry != r.entry || next.intent != r.intent) {
		next.worker = w.worker
		w.put(&next)
	}
	return err
}

// put makes a row stand, and its lead its own.
func (w *working) put(r *row) {
	if lead := w.rows[r.key].lead(); w.sure && lead != r.lead() {
		if w.owners[lead] == r.key {
			delete(w.owners, lead)
		}
		if r.lead() != "" {
			w.owners[r.lead()] = r.key
		}
	}
	w.rows[r.key] = r
}

// stamped is a record as it is kept. The server gives it its number.
func (w *working) stamped(r record) *record {
	if r.Seq = 0; r.Updated.IsZero() {
		r.Updated = w.now
	}
	r.Updated = time.UnixMilli(r.Updated.UnixMilli()).UTC()
	if utf8.RuneCountInString(r.Status) > checkpoint.MaxStatus {
		r.Status = string([]rune(r.Status)[:checkpoint.MaxStatus])
	}
	if len(r.Content) == 0 {
		r.Content = nil
	}
	return &r
}

// held says whether another worker may still send what it has claimed under a key.
func (w *working) held(r *row) (bool, error) {
	if r.intent == nil || r.worker == w.worker {
		return false, nil
	}
	if !w.sure {
		return false, errUnsure
	}
	return w.busy[r.worker], nil
}

// free is an error unless a change of this worker may touch what is claimed.
func (w *working) free(r *row) error {
	held, err := w.held(r)
	if held {
		return checkpoint.ErrHeld
	}
	return err
}

func (w *working) claim(r *row, e *checkpoint.Entry) error {
	if err := w.free(r); err != nil {
		return err
	}
	in, old := record{act: checkpoint.Doubted}, r.visible()
	switch {
	case old.State.HasLead():
		return checkpoint.ErrKnown
	case old.State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case old.State == checkpoint.InDoubt:
		prior := *old
		prior.prior = nil
		in.prior, in.past = &prior, append(slices.Clone(old.past), old.Event(old.act).Past())
	}
	e.State = checkpoint.InDoubt
	in.Entry = *e
	r.intent = w.stamped(in)
	*e = r.intent.Entry
	return nil
}

// withdraw removes an intent, or puts back the one that it came in place of. That of another
// worker stays.
func (w *working) withdraw(r *row) error {
	held, err := w.held(r)
	if err != nil || held || r.intent == nil {
		return err
	}
	r.intent = r.intent.prior
	return nil
}

func (w *working) settle(r *row, e *checkpoint.Entry) error {
	switch {
	case e.State == checkpoint.Unknown || e.State > checkpoint.InDoubt:
		return checkpoint.ErrState
	case r.state() == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	}
	claimed := w.sure && w.mine(r.key)
	own := r.intent != nil && (r.worker == w.worker || claimed && r.intent.Run == e.Run) // also where another one has put it back
	if claimed && !own && w.late(r, e) {
		return nil
	}
	if err := w.free(r); err != nil && !own {
		return err
	}
	if e.State == checkpoint.InDoubt {
		w.doubt(r, e)
		return nil
	}
	owner, err := w.owner(e.LeadID, r)
	if err != nil {
		return err
	}
	if owner != "" && owner != r.key {
		w.contradict(checkpoint.LeadOfAnother, owner, e.LeadID, r.key)
		e.State, e.Reason = checkpoint.InDoubt, checkpoint.ReasonLeadTaken
		w.doubt(r, e)
		return nil
	}
	if kind, lead := e.Against(); kind != checkpoint.NoEvidence {
		if !w.sure {
			return errUnsure
		}
		w.contradict(kind, r.key, lead, "")
	}
	w.conclude(r, e, 0)
	return nil
}

// late hears an outcome that came after a person had decided about its send, or had it sent again. What the service says counts
// where nobody has sent the row again; what does not fit the decision is kept as evidence against it. It reports whether nothing
// else is to be done.
func (w *working) late(r *row, e *checkpoint.Entry) (done bool) {
	d := w.decided[r.key]
	if d == nil {
		if r.intent == nil && !r.state().HasLead() {
			return false
		}
		d = w.sentAgain(r.key, e)
	}
	none := d.LeadID == "" && !d.Exists
	keep := e.State == checkpoint.InDoubt || r.intent != nil || none && r.state() != checkpoint.NotMade
	switch {
	case e.State.HasLead() && (none || d.LeadID != "" && d.LeadID != e.LeadID):
		w.found = append(w.found, contradiction{of: d, other: e.LeadID, text: checkpoint.MadeAfterAll.String()})
	case e.State == checkpoint.Rejected && !none:
		w.found = append(w.found, contradiction{of: d, text: checkpoint.RefusedAfterAll.String()})
		keep = true
	}
	if keep {
		*e = r.visible().Entry
	}
	return keep
}

// sentAgain is the decision of whoever had a send in doubt made again, whose outcome is e: that it had not been applied.
func (w *working) sentAgain(key string, e *checkpoint.Entry) *decision {
	send := record{Entry: *e, act: checkpoint.Doubted}
	send.State, send.LeadID, send.Code, send.Reason = checkpoint.InDoubt, "", 0, ""
	return &decision{Decision: checkpoint.Decision{Key: key, Run: e.Run}, at: w.now, send: w.stamped(send)}
}

// owner is the key of a lead, or nothing. As long as nothing is sure it is taken to be nobody's:
// the server finds out.
func (w *working) owner(lead string, r *row) (string, error) {
	switch {
	case lead == "":
		return "", nil
	case r.lead() == lead:
		return r.key, nil
	case !w.sure && r.lead() != "": // which it gives up, perhaps to another one
		return "", errUnsure
	case !w.sure:
		return "", nil
	}
	return w.owners[lead], nil
}

// doubt keeps the intent of a key and adds what is known of the answer.
func (w *working) doubt(r *row, e *checkpoint.Entry) {
	in := record{Entry: *e}
	if r.intent != nil {
		in = *r.intent
	}
	in.State, in.Code, in.Reason, in.LeadID = checkpoint.InDoubt, e.Code, e.Reason, e.LeadID
	in.RequestID = cmp.Or(e.RequestID, in.RequestID)
	if e.Reason != checkpoint.ReasonIncomplete { // which was not sent
		in.act |= checkpoint.Doubted
	}
	r.intent = w.stamped(in)
	*e = r.intent.Entry
}

// mostPast is how many events are kept before the one that an entry shows.
const mostPast = 7

// addEvent adds one to a past. Of a long one the oldest but the first goes that did not bring a
// lead ID, or else the second.
func addEvent(past []checkpoint.Event, ev checkpoint.Event) []checkpoint.Event {
	const givesLead = checkpoint.Made | checkpoint.Adopted | checkpoint.Decided
	past = append(slices.Clip(past), ev.Past())
	if len(past) <= mostPast {
		return past
	}
	goes := 1 + slices.IndexFunc(past[1:len(past)-1], func(ev checkpoint.Event) bool { return ev.Act&givesLead == 0 })
	return slices.Delete(past, max(goes, 1), max(goes, 1)+1)
}

// conclude puts an outcome in place of what stands under its key.
func (w *working) conclude(r *row, e *checkpoint.Entry, act checkpoint.Act) {
	out, old := record{Entry: *e}, &record{}
	if r.entry != nil {
		old = r.entry
		out.past = addEvent(old.past, old.Event(old.act))
	}
	if in := r.intent; in != nil {
		for _, ev := range in.past {
			out.past = addEvent(out.past, ev)
		}
		sent := in.Event(in.act).Past()
		told := act == 0 && in.Run == e.Run && in.Code == 0 && in.Reason == "" // the outcome says as much
		if !told && !slices.Contains(in.past, sent) {
			out.past = addEvent(out.past, sent)
		}
	}
	out.act = e.ActAfter(&old.Entry) | act
	r.intent, r.entry = nil, w.stamped(out)
	*e = r.entry.Entry
}

// contradict notes evidence against the last decision about a key, if that gave it this lead.
func (w *working) contradict(kind checkpoint.Evidence, key, lead, other string) {
	if d := w.decided[key]; d != nil && d.LeadID == lead && !d.Exists {
		w.found = append(w.found, contradiction{of: d, other: other, text: kind.String()})
	}
}

func (w *working) mark(r *row, e *checkpoint.Entry) error {
	old := r.visible()
	switch {
	case old.State == checkpoint.Forgotten:
		return checkpoint.ErrBlocked
	case old.State.HasLead() && old.LeadID == e.LeadID:
		marked := *old
		marked.Unsettled, marked.Sought, marked.Seen = e.Unsettled, e.Sought, e.Seen
		r.entry = w.stamped(marked)
		*e = r.entry.Entry
		return nil
	case old.State == checkpoint.InDoubt || old.State.HasLead() && old.LeadID != "" || e.LeadID == "":
		return checkpoint.ErrKnown
	case !w.sure:
		return errUnsure
	}
	return w.takeOver(r, e)
}

// takeOver makes a lead that only the input knew the lead of its key.
func (w *working) takeOver(r *row, e *checkpoint.Entry) error {
	if owner, err := w.owner(e.LeadID, r); err != nil || owner != "" {
		return cmp.Or(err, checkpoint.ErrTaken)
	}
	taken, old := *e, r.visible()
	taken.State = checkpoint.Created
	if old.State.HasLead() { // its lead ID alone was not known
		taken = old.Completed(e)
		taken.Unsettled, taken.Sought, taken.Seen = e.Unsettled, e.Sought, e.Seen
	}
	taken.Updated = w.now
	w.conclude(r, &taken, checkpoint.Adopted)
	*e = taken
	return nil
}
