package checkpoint

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"leadferry/internal/crash"
)

// patience is how long changes gather at most, however many claimed rows wait for their request. A Store whose commits
// cost more has a method Patience of its own.
const patience = 25 * time.Millisecond

// Gathering says how changes come together into commits.
type Gathering struct {
	// Slots is how many claims may stand without an outcome, and so what a death leaves in
	// doubt; others wait. 0: any number.
	Slots int
	// Ahead is how many rows wait for nothing but a place for their request, less the places that are free. As long as they
	// will outlast a commit, changes gather; what has gathered is committed at once when they will not. nil: none do.
	// Unknown is where some wait for what a commit brings.
	Ahead func() (rows int, known bool)
}

// Ledger gathers the changes of many goroutines into commits of its Store. A claim takes a
// slot with the commit that makes it durable, and the commit that settles or withdraws it
// gives the slot back: to claims of the same commit already, since a commit is there as a
// whole or not at all.
type Ledger struct {
	Store
	slots   int
	ahead   func() (rows int, known bool)
	most    time.Duration       // how long changes gather
	early   int                 // so many rows ahead count as enough at most
	woken   atomic.Int64        // claims that are durable, of which their rows do not know yet
	claimed map[string]struct{} // keys whose claims have a slot; the writer's own
	group   []*waiting          // of the commit under way; the writer's own
	spare   sync.Pool           // of *waiting

	testimony *Testimony // follows the commits; nil: none does
	mu        sync.Mutex
	queue     []*waiting // what the writer has not taken yet
	hurry     bool       // what has gathered is wanted at once
	answered  int        // outcomes that came since the last commit began: each has left its place to another row
	enough    int        // so many rows ahead outlast a commit
	writing   bool       // a commit is under way: when it has ended more rows are ahead
	gathering bool       // the writer waits for more, but not for ever
	closed    bool
	broken    error         // of the Store: nothing is written any more
	wake      chan struct{} // holds one token while there is something to look at
	ended     chan struct{} // closed when the writer has ended
}

// waiting is a change whose caller waits for its commit. They are used again: a row makes two
// changes.
type waiting struct {
	Change
	done chan error
}

func newWaiting() any { return &waiting{done: make(chan error, 1)} }

// NewLedger starts the one goroutine that changes the Store; [Ledger.Close] ends both.
func NewLedger(s Store, g Gathering) *Ledger {
	l := &Ledger{
		Store: s, slots: g.Slots, ahead: g.Ahead, most: patience, early: max(g.Slots/4, 1), claimed: make(map[string]struct{}),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), spare: sync.Pool{New: newWaiting},
	}
	if p, own := s.(interface{ Patience() time.Duration }); own {
		l.most, l.early = p.Patience(), max(g.Slots/8, 1)
	}
	if l.ahead == nil {
		l.ahead = func() (int, bool) { return 0, true }
	}
	go l.run()
	return l
}

// Claim writes an intent, once there is a slot for it: when it returns nil the create may
// leave. Errors: ErrKey, ErrKnown, ErrBlocked, ErrClosed, that of ctx, which ends the wait for a
// slot, so that nothing was written, or an error of the Store.
func (l *Ledger) Claim(ctx context.Context, in Intent) error {
	_, err := l.submit(ctx, Change{Kind: Claim, Entry: in.entry(), Shape: in.Shape})
	return err
}

// Standing counts the rows in doubt that wait for a person: not those that an incomplete ledger holds, nor those that live
// workers are sending, nor those of the worker's own fleet, which counts them itself.
func (l *Ledger) Standing(ctx context.Context) (n int, err error) {
	if s, shared := l.Store.(interface {
		Standing(ctx context.Context) (int, error)
	}); shared {
		return s.Standing(ctx)
	}
	err = Each(ctx, l.Store, Filter{State: InDoubt}, func(e Entry) error {
		if e.Reason != ReasonIncomplete {
			n++
		}
		return nil
	})
	return n, err
}

// Guard returns nil when the create that was claimed under a key may leave now: a Store on
// another machine may have to be met again first, or the claim to be renewed. An error says that
// nothing may leave; that of ctx ends the wait. It is asked just before each attempt.
func (l *Ledger) Guard(ctx context.Context, key string) error {
	if g, ok := l.Store.(interface {
		Guard(ctx context.Context, key string) error
	}); ok {
		return g.Guard(ctx, key)
	}
	return nil
}

// Withdraw removes the intent of a create that is known not to have been applied. An
// intent that the claim replaced comes back.
func (l *Ledger) Withdraw(ctx context.Context, key string) error {
	_, err := l.submit(ctx, Change{Kind: Withdraw, Entry: Entry{Key: key}})
	return err
}

// Settle writes an outcome, removes the intent and returns what now stands. With state
// InDoubt the intent stays and takes over LeadID, Code and Reason. A lead ID that stands
// under another key leaves this one in doubt with ReasonLeadTaken. Errors: ErrKey,
// ErrState, ErrBlocked, or an error of the Store.
func (l *Ledger) Settle(ctx context.Context, e Entry) (stored Entry, err error) {
	return l.submit(ctx, Change{Kind: Settle, Entry: e})
}

// Mark notes durably that an update of a lead is about to be sent, by e.Unsettled, or
// that none left after all, by an empty one, and keeps what a read showed, e.Seen. Nothing
// else of a lead that is known changes, and its history gains no event. A lead that is not known is taken over as e
// says, under a key that has no other lead. Errors: ErrKey, ErrBlocked, ErrKnown for a key
// with another lead or in doubt, ErrTaken for a lead of another key, or an error of the
// Store.
func (l *Ledger) Mark(ctx context.Context, e Entry) (stored Entry, err error) {
	return l.submit(ctx, Change{Kind: Mark, Entry: e})
}

// Close waits for changes that were asked for, ends the writer and closes the Store.
func (l *Ledger) Close() error {
	l.end()
	return l.Store.Close()
}

// Drop is [Ledger.Close] as [Store] has it.
func (l *Ledger) Drop() (gone bool, err error) {
	l.end()
	if gone, err = l.Store.Drop(); gone {
		l.testimony.Withdraw()
	}
	return gone, err
}

// Attest has a witness follow each commit; Close closes it, unless the Store has failed.
func (l *Ledger) Attest(t *Testimony) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.testimony = t
	Attest(l.Store, t)
}

func (l *Ledger) end() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
	<-l.ended
}

// submit queues a change and waits until it is durable. A claim that still waits when ctx
// ends is taken back. Nothing else is: an outcome is never thrown away.
func (l *Ledger) submit(ctx context.Context, c Change) (stored Entry, err error) {
	w := l.spare.Get().(*waiting)
	w.Change = c
	defer func() {
		w.Change = Change{}
		l.spare.Put(w)
	}()
	if err := l.enqueue(w); err != nil {
		return c.Entry, err
	}
	if c.Kind == Claim {
		err = l.awaitClaim(ctx, w)
	} else {
		err = <-w.done // a wait for two channels would take twice the time
	}
	if err == nil {
		err = w.Err
	}
	if err == nil && c.Kind == Claim {
		l.woken.Add(-1)
	}
	return w.Entry, err
}

// awaitClaim waits for a claim to be durable, or for the end of ctx, if it can be taken back.
func (l *Ledger) awaitClaim(ctx context.Context, w *waiting) error {
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if l.takeBack(w) {
			return ctx.Err()
		}
		return <-w.done
	}
}

// enqueue hands a change to the writer, unless nothing is taken any more.
func (l *Ledger) enqueue(w *waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken != nil:
		return l.broken
	case l.closed:
		return ErrClosed
	}
	l.queue = append(l.queue, w)
	if w.Kind == Settle || w.Kind == Withdraw {
		l.answered++
	}
	if !l.writing && (w.Kind != Claim || l.free()) {
		l.hurry = l.hurry || l.isWanted()
	}
	if l.hurry || !l.gathering {
		l.signal()
	}
	return nil
}

// isWanted says that the rows ahead would not outlast a commit.
func (l *Ledger) isWanted() bool {
	ahead, known := l.ahead()
	ahead += int(l.woken.Load())
	return !known || ahead <= 0 || ahead <= l.enough && l.answered >= l.enough
}

// takeBack takes a change out of the queue, unless the writer has it.
func (l *Ledger) takeBack(w *waiting) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queue, w)
	if at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	}
	return at >= 0
}

// signal leaves one token for the writer; one is enough however many changes have come
// since it looked.
func (l *Ledger) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run commits what has gathered, until the ledger is closed and nothing is left.
func (l *Ledger) run() {
	defer close(l.ended)
	timer := time.NewTimer(l.most)
	defer timer.Stop()
	for gathering := false; ; {
		some, now, closed := l.look()
		switch {
		case now:
			l.commit()
			gathering = false
			continue
		case closed:
			l.refuse()
			return
		case some && !gathering:
			timer.Reset(l.most)
		}
		gathering = some
		if !some {
			<-l.wake
			continue
		}
		select {
		case <-l.wake:
		case <-timer.C:
			l.commit()
			gathering = false
		}
	}
}

// look says whether there are changes that can be committed, and whether they are wanted
// now. From then on those that come wake the writer only if it has nothing to wait for, or
// is to hurry.
func (l *Ledger) look() (some, now, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some = l.fits()
	l.gathering = some
	return some, some && (l.hurry || l.closed || l.broken != nil), l.closed
}

// fits says whether there are changes that can be committed.
func (l *Ledger) fits() bool {
	return l.broken != nil && len(l.queue) > 0 || slices.ContainsFunc(l.queue, func(w *waiting) bool { return w.Kind != Claim || l.free() })
}

// free says whether there is a slot for a claim, or that none is needed.
func (l *Ledger) free() bool { return l.slots == 0 || len(l.claimed) < l.slots || l.broken != nil }

// commit makes what has gathered durable and tells everybody.
func (l *Ledger) commit() {
	changes, err := l.gather()
	if err == nil {
		err = crash.Call(func() error { return l.Store.Commit(context.Background(), changes) })
	}
	l.mu.Lock()
	if err == nil && l.testimony != nil {
		l.testimony.Reached(l.Store.Progress())
	}
	l.broken = err
	l.enough = min((3*l.enough+l.answered+3)/4, l.early)
	for _, w := range l.group {
		switch {
		case w.Kind != Claim:
		case err != nil || w.Err != nil:
			delete(l.claimed, w.Entry.Key)
			l.hurry = true // for those that wait for the slot
		default:
			l.woken.Add(1)
		}
	}
	l.writing = false
	l.hurry = l.hurry || l.fits() && l.isWanted()
	l.mu.Unlock()
	for _, w := range l.group {
		w.done <- err
	}
}

// gather is what can be committed now: claims come last, as many as have slots. It fails
// when nothing can be committed any more, and gathers everything then.
func (l *Ledger) gather() (changes []*Change, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurry, l.answered, l.writing = false, 0, true
	l.group = l.group[:0]
	for _, w := range l.queue {
		if w.Kind == Claim {
			continue
		}
		if w.Kind != Mark {
			delete(l.claimed, w.Entry.Key)
		}
		l.group = append(l.group, w)
	}
	left := l.queue[:0]
	for _, w := range l.queue {
		switch {
		case w.Kind != Claim:
		case !l.free():
			left = append(left, w)
		default:
			l.claimed[w.Entry.Key] = struct{}{}
			l.group = append(l.group, w)
		}
	}
	clear(l.queue[len(left):])
	l.queue = left
	for _, w := range l.group {
		changes = append(changes, &w.Change)
	}
	return changes, l.broken
}

// refuse ends the claims that wait for slots which nothing will free.
func (l *Ledger) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.queue {
		w.done <- ErrClosed
	}
	l.queue = nil
}
