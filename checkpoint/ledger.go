package checkpoint

import (
	"context"
	"slices"
	"sync"
	"time"

	"leadferry/internal/crash"
)

// patience is how long changes gather at most. A [Shared] Store has its own.
const patience = 25 * time.Millisecond

// Gathering says how changes come together into commits.
type Gathering struct {
	// Slots is how many claims may have no outcome yet, and so what a death leaves in doubt; others wait. 0: any
	// number.
	Slots int
	// Places is how many requests are under way at once. While more claims than that stand, the lanes have something
	// to send and changes gather; once hardly any is left, what has gathered is committed at once. 0: nothing gathers.
	Places int
}

// Shared is what a Store has that many workers on many machines use at once.
type Shared interface {
	// Patience is how long changes may gather: longer than for a file, where each commit is a round trip.
	Patience() time.Duration
	// Guard returns nil when the create that was claimed under a key may leave now, see [Ledger.Guard].
	Guard(ctx context.Context, key string) error
	// Standing counts the rows in doubt that wait for a person, see [Ledger.Standing].
	Standing(ctx context.Context) (int, error)
}

// Ledger gathers the changes of many goroutines into commits of its Store. A claim takes a
// slot with the commit that makes it durable, and the commit that settles or withdraws it
// gives the slot back: to claims of the same commit already, since a commit is there as a
// whole or not at all.
//
// One goroutine commits. When there is something to commit it waits until it is due: until the claims without an
// outcome and are not answered yet will soon be fewer than the places for requests, so that a lane would be idle, but
// never longer than patience.
type Ledger struct {
	Store
	shared   Shared // nil: the Store is a file
	slots    int
	enough   int // so many claims without an answer keep the lanes busy for as long as a commit takes; 0: none do
	patience time.Duration
	spare    sync.Pool // of *waiting

	testimony *Testimony // follows the commits; nil: none does
	mu        sync.Mutex
	queue     []*waiting          // what no commit has taken yet
	claimed   map[string]struct{} // keys whose claims have a slot
	answered  int                 // of claimed: an outcome is in the queue
	begun     bool                // the first outcome was committed
	timed     bool                // the writer knows that there is something, and waits for more
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
		Store: s, slots: g.Slots, patience: patience, claimed: make(map[string]struct{}),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), spare: sync.Pool{New: newWaiting},
	}
	if g.Places != 0 {
		l.enough = g.Places + max(g.Places/4, 1)
	}
	if l.shared, _ = s.(Shared); l.shared != nil {
		l.patience = l.shared.Patience()
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

// Standing counts the rows in doubt that wait for a person: not those that an incomplete ledger holds, nor those that
// live workers are sending, nor those of the worker's own fleet, which counts them itself.
func (l *Ledger) Standing(ctx context.Context) (n int, err error) {
	if l.shared != nil {
		return l.shared.Standing(ctx)
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
	if l.shared != nil {
		return l.shared.Guard(ctx, key)
	}
	return nil
}

// Withdraw removes the intent of a create that is known not to have been applied. An
// intent that the claim replaced comes back.
func (l *Ledger) Withdraw(ctx context.Context, key string) error {
	_, err := l.submit(ctx, Change{Kind: Withdraw, Entry: Entry{Key: key}})
	return err
}

// Settle writes an outcome, removes the intent and returns what is stored now. With state
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
	if l.isAnswer(w) {
		l.answered++
	}
	if !l.timed || l.due() {
		l.signal()
	}
	return nil
}

// isAnswer says whether a change is the outcome of a claim that has a slot.
func (l *Ledger) isAnswer(w *waiting) bool {
	_, claimed := l.claimed[w.Entry.Key]
	return claimed && (w.Kind == Settle || w.Kind == Withdraw)
}

// due says that what can be committed is not to wait: a lane would be idle soon, it has the first
// outcome, for which all others may wait, or nothing more will come.
func (l *Ledger) due() bool {
	return l.enough == 0 || len(l.claimed)-l.answered < l.enough || l.answered > 0 && !l.begun || l.closed ||
		l.broken != nil
}

// takeBack takes a change out of the queue, unless a commit has it.
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
	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	for {
		some, due, closed := l.look()
		switch {
		case due:
			l.commit()
		case some:
			timer.Reset(l.patience)
			l.gather(timer.C)
			l.commit()
		case closed:
			l.refuse()
			return
		default:
			<-l.wake
		}
	}
}

// look says whether there are changes that can be committed, and whether they are due.
func (l *Ledger) look() (some, due, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some = l.fits()
	l.timed = some
	return some, some && l.due(), l.closed
}

// gather waits until what is there is due, or cannot be committed any more, but not for ever.
func (l *Ledger) gather(over <-chan time.Time) {
	for {
		select {
		case <-over:
			return
		case <-l.wake:
			if some, due, _ := l.look(); due || !some {
				return
			}
		}
	}
}

// fits says whether there are changes that can be committed.
func (l *Ledger) fits() bool {
	return slices.ContainsFunc(l.queue, func(w *waiting) bool { return w.Kind != Claim || l.free() })
}

// free says whether there is a slot for a claim, or that none is needed.
func (l *Ledger) free() bool { return l.slots == 0 || len(l.claimed) < l.slots || l.broken != nil }

// commit makes what has gathered durable and tells everybody.
func (l *Ledger) commit() {
	group, err := l.take()
	changes := make([]*Change, len(group))
	for i, w := range group {
		changes[i] = &w.Change
	}
	if err == nil && len(group) > 0 {
		err = crash.Call(func() error { return l.Store.Commit(context.Background(), changes) })
	}
	l.mu.Lock()
	if err == nil && l.testimony != nil {
		l.testimony.Reached(l.Store.Progress())
	}
	l.broken = err
	for _, w := range group {
		if w.Kind == Claim && (err != nil || w.Err != nil) {
			delete(l.claimed, w.Entry.Key)
		}
	}
	l.mu.Unlock()
	for _, w := range group {
		w.done <- err
	}
}

// take takes what can be committed now out of the queue: claims come last, as many as have slots. It fails when
// nothing can be committed any more, and takes everything then.
func (l *Ledger) take() (group []*waiting, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.queue {
		if l.isAnswer(w) {
			delete(l.claimed, w.Entry.Key)
			l.begun = true
		}
		if w.Kind != Claim {
			group = append(group, w)
		}
	}
	left := l.queue[:0]
	for _, w := range l.queue {
		switch {
		case w.Kind != Claim:
		case !l.free():
			left = append(left, w)
		default:
			l.claimed[w.Entry.Key] = struct{}{}
			group = append(group, w)
		}
	}
	clear(l.queue[len(left):])
	l.queue, l.answered = left, 0
	return group, l.broken
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
