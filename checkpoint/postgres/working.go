package postgres

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// errNeedsLock says that a change cannot be judged by the rows that this process saw last.
var errNeedsLock = errors.New("more has to be known")

// working is what one transaction knows of its keys and does to them. It is a [checkpoint.Owners], and with the methods
// in people.go a [checkpoint.Tx]. If it is locked, it has read its rows while nobody else could change them. If not, it
// has the rows that this process saw last: the server compares, and refuses the commit if one of them has changed.
type working struct {
	s        *Store
	identity // as it will be after the commit
	now      time.Time
	erased   []string // keys

	base   map[string]*row   // by key, as they were read, or seen last
	rows   map[string]*row   // by key, as they will be
	asks   map[string]string // the ExternalIDs that claims of this commit ask for, by key
	owners map[string]string // the key of each lead that was looked up, or that a row has got

	done []checkpoint.Change // the changes, as they were applied or refused
	certain
}

// certain is what only a locked working knows.
type certain struct {
	locked bool
	links  map[string][]*row // the rows of each ExternalID that was looked up
	busy   []int64           // workers that may still send their claims, or get answers
	fenced error             // why nothing may be sent any more; nil: it may
	room   *int              // how many leads the fleet may still make; nil: any number
}

func (s *Store) newWorking(locked bool) *working {
	w := &working{s: s, identity: s.identity, now: s.o.Now(), certain: certain{locked: locked}}
	w.begin()
	return w
}

func (w *working) begin() {
	w.base, w.rows, w.asks, w.owners = map[string]*row{}, map[string]*row{}, map[string]string{}, map[string]string{}
}

// guess returns a working with the rows that this process saw last. A claim of a key that it never saw makes a new row.
func (s *Store) guess(changes []*checkpoint.Change) *working {
	w := s.newWorking(false)
	for _, c := range changes {
		key := c.Entry.Key
		if r := s.seen[key]; r != nil {
			w.base[key] = r
		} else if c.Kind == checkpoint.Claim {
			w.base[key] = &row{key: key}
		}
	}
	w.rows = maps.Clone(w.base)
	return w
}

// read reads rows, owners of leads, and which workers may still send.
func (w *working) read(q *wanted) error {
	f, err := w.s.find(q)
	if err != nil {
		return err
	}
	w.begin()
	w.links, w.owners = f.by[byLink], f.owners
	for _, key := range q.keys {
		w.base[key] = f.row(key)
	}
	w.rows = maps.Clone(w.base)
	w.busy, err = server.All(w.s.conn, pgx.RowTo[int64], `SELECT worker FROM leadferry.workers w
		WHERE ledger = $1 AND leadferry.may_settle(w)`, w.ledger)
	return err
}

func (w *working) Now() time.Time { return w.now }

// Seq returns 0: the server gives the number.
func (w *working) Seq() uint64 { return 0 }

// Owner returns the key of a lead, or "". If w is not locked, it knows only rows of this commit: the server checks.
func (w *working) Owner(lead, key string) (string, error) {
	r := w.rows[key]
	switch {
	case lead == "":
		return "", nil
	case r.lead() == lead:
		return r.key, nil
	case !w.locked && r.lead() != "": // it gives this lead up, perhaps to another key
		return "", errNeedsLock
	}
	return w.owners[lead], nil
}

// LinkOwners returns other keys that have or want an ExternalID; if w is not locked, only those of this commit's rows.
func (w *working) LinkOwners(external, key string) (others []string, err error) {
	for other, r := range w.rows {
		switch {
		case other == key || !r.OwnsLink(external):
		case !w.locked:
			return nil, errNeedsLock
		default:
			others = append(others, other)
		}
	}
	for _, r := range w.links[external] {
		if w.rows[r.key] == nil && r.key != key {
			others = append(others, r.key)
		}
	}
	return others, nil
}

// put replaces a row, and notes which lead it has now.
func (w *working) put(r *row) {
	if lead := w.rows[r.key].lead(); lead != r.lead() {
		if w.owners[lead] == r.key {
			delete(w.owners, lead)
		}
		if r.lead() != "" {
			w.owners[r.lead()] = r.key
		}
	}
	w.rows[r.key] = r
}

// otherMaySend reports whether another worker has claimed the key and may still send its row.
func (w *working) otherMaySend(r *row) bool {
	return r.Intent != nil && r.worker != w.s.worker && slices.Contains(w.busy, r.worker)
}

// applyAll applies changes to the rows of w, or refuses them one by one. After an error, w cannot be used.
func (w *working) applyAll(changes []*checkpoint.Change) error {
	w.done = make([]checkpoint.Change, len(changes))
	for i, asked := range changes {
		c := &w.done[i]
		*c = *asked
		switch {
		case w.fenced != nil && sends(c):
			c.Err = w.fenced
		case c.Kind == checkpoint.Claim && w.room != nil && w.creates() >= *w.room:
			c.Err = checkpoint.ErrEnough
		default:
			if c.Err = w.apply(c); c.Err != nil && !checkpoint.IsRefusal(c.Err) {
				return c.Err
			}
		}
	}
	return nil
}

// sends reports whether a row will be sent after this change, so that a fenced worker may not make it.
func sends(c *checkpoint.Change) bool { return c.Kind == checkpoint.Claim || c.Kind == checkpoint.Mark }

// apply makes one change, or says why it is refused; errNeedsLock is no refusal.
func (w *working) apply(c *checkpoint.Change) (err error) {
	r := w.rows[c.Entry.Key]
	_, asks := w.asks[c.Entry.Key] // claimed in this commit; the server checks its ExternalID only if the claim remains
	_, mine := w.s.claims.until(c.Entry.Key)
	switch {
	case r == nil, !w.locked && (asks || r.Intent != nil && r.worker != w.s.worker),
		!w.locked && c.Kind == checkpoint.Settle && mine && r.Intent == nil: // a person has decided about it meanwhile
		return errNeedsLock
	}
	next, old := *r, r.visible()
	switch {
	case c.Kind == checkpoint.Settle:
		err = w.settle(&next, &c.Entry)
	case c.Kind == checkpoint.Claim && w.otherMaySend(r):
		err = checkpoint.ErrOtherMaySend
	default:
		err = next.Apply(w, c, old)
	}
	switch {
	case err != nil:
		return err
	case c.Kind == checkpoint.Claim:
		w.asks[r.key] = c.Entry.WantLink
	case c.Kind == checkpoint.Mark && !w.locked && (!old.State.HasLead() || old.LeadID != c.Entry.LeadID):
		return errNeedsLock // a lead that only the input names is stored only if w is locked
	}
	if next.KeptKey != r.KeptKey {
		next.worker = w.s.worker
		w.put(&next)
	}
	return nil
}

func (w *working) settle(r *row, e *checkpoint.Entry) error {
	if err := e.Settleable(r.state()); err != nil {
		return err
	}
	_, mine := w.s.claims.until(r.key)
	claimed := w.locked && mine && w.rows[r.key] == w.base[r.key]
	// an intent of this run is its own, even if another worker has put it back
	own := r.Intent != nil && (r.worker == w.s.worker || claimed && r.Intent.Run == e.Run)
	if claimed && !own {
		if done, err := w.settleLate(r, e); done || err != nil {
			return err
		}
	}
	if !own && w.otherMaySend(r) {
		return checkpoint.ErrOtherMaySend
	}
	return r.Settle(w, e)
}

// settleLate takes an outcome that came after a person decided about its send, or had the row sent again. It counts if
// nobody has sent the row again. If it contradicts the decision, it is stored as evidence. done: do not settle it.
func (w *working) settleLate(r *row, e *checkpoint.Entry) (done bool, err error) {
	d, err := checkpoint.LastDecision(w, r.key)
	if err != nil {
		return false, err
	}
	if d == nil { // it was sent again although in doubt, as if a person had decided that no lead was made
		if r.Intent == nil && !r.state().HasLead() {
			return false, nil
		}
		send := checkpoint.Kept{Entry: *e, Act: checkpoint.Doubted}
		send.State, send.LeadID, send.Code, send.Reason = checkpoint.InDoubt, "", 0, ""
		one := checkpoint.Decision{Key: r.key, Run: e.Run}
		d = &checkpoint.KeptDecision{Decision: one, At: w.now, Send: send.StoredBy(w)}
	}
	none := d.Free()
	keep := r.Intent != nil || none && r.state() != checkpoint.NotMade || !none && e.State == checkpoint.InDoubt
	switch {
	case e.State.HasLead() && (none || d.LeadID != "" && d.LeadID != e.LeadID):
		err = checkpoint.NoteEvidence(w, *d, checkpoint.MadeAfterAll, e.LeadID, w.now)
	case e.State == checkpoint.Rejected && !none:
		err = checkpoint.NoteEvidence(w, *d, checkpoint.RefusedAfterAll, "", w.now)
		keep = true
	}
	if keep {
		*e = r.visible().Entry
	}
	return keep, err
}

// changed returns the keys whose rows have to be written, in order.
func (w *working) changed() (keys []string) {
	for key, r := range w.rows {
		if r != w.base[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// creates returns how many more leads the fleet makes by this commit: one for each claim, minus one for each earlier
// claim of this worker that was withdrawn or refused. After those, an earlier send of the row may be in doubt again.
func (w *working) creates() int {
	n := len(w.asks)
	for key, old := range w.base {
		if old.Intent == nil || old.worker != w.s.worker {
			continue
		}
		r := w.rows[key]
		back := r.Intent != nil && r.Intent == old.Intent.Prior
		if state := r.state(); back || state == checkpoint.Unknown || state == checkpoint.Rejected {
			n--
		}
	}
	return n
}
