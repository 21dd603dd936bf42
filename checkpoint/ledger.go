package checkpoint

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"leadferry/internal/crash"
)

// patience is the longest time that a change waits for others. patienceFar is the same for a Store on another machine:
// each commit is a round trip there, and the commits of all workers wait for the server's disk.
const patience, patienceFar = 25 * time.Millisecond, 100 * time.Millisecond

// Gathering says how changes are put together into commits.
type Gathering struct {
	// Slots limits how many claims may have no outcome yet, and so how many rows a kill leaves in doubt. 0: no limit.
	Slots int
	// Places is how many requests are under way at once. While there are more open claims than places, the lanes are
	// busy, and changes wait for others. When few are left, the commit is made at once. 0: changes never wait.
	Places int
	// Far says that the Store is on another machine.
	Far bool
}

// Ledger puts the changes of many goroutines together into commits of its Store. A claim takes a slot with the commit
// that makes it durable. The commit that settles or withdraws it frees the slot, also for claims of the same commit,
// since a commit is stored whole or not at all.
//
// One goroutine commits. It waits until so few open claims are left that a lane would soon be idle, at most for
// patience.
type Ledger struct {
	Store
	Gathering
	patience time.Duration

	mu       sync.Mutex
	queue    []*waiting          // what no commit has taken yet
	inSlots  map[string]struct{} // keys whose claims have a slot
	answered int                 // how many keys of inSlots have an outcome in the queue
	begun    bool                // a commit has taken the first outcome
	gathers  bool                // the goroutine that commits has changes and waits for more
	closed   bool
	broken   error         // of the Store: nothing is written after such an error
	wake     *sync.Cond    // wakes the goroutine that commits
	ended    chan struct{} // closed when that goroutine has ended
}

// waiting is a change whose caller waits for its commit.
type waiting struct {
	*Change
	done chan error
}

// NewLedger starts the one goroutine that changes the Store; [Ledger.Close] ends both.
func NewLedger(s Store, g Gathering) *Ledger {
	l := &Ledger{
		Store: s, Gathering: g, patience: patience, inSlots: make(map[string]struct{}), ended: make(chan struct{}),
	}
	l.wake = sync.NewCond(&l.mu)
	if g.Far {
		l.patience = patienceFar
	}
	go func() {
		defer close(l.ended)
		for l.await() {
			l.commit()
		}
	}()
	return l
}

// Standing counts the rows in doubt that wait for a person. It leaves out rows that an incomplete ledger holds, and
// rows of runs that are [Store.UnderWay].
func (l *Ledger) Standing(ctx context.Context) (n int, err error) {
	underWay, err := l.UnderWay(ctx)
	if err != nil {
		return 0, err
	}
	err = Each(ctx, l.Store, Filter{State: InDoubt}, func(e Entry) error {
		if e.Reason != ReasonIncomplete && !underWay[e.Run] {
			n++
		}
		return nil
	})
	return n, err
}

// Close waits for changes that were asked for, ends the goroutine that commits, and closes the Store.
func (l *Ledger) Close() error {
	l.end()
	return l.Store.Close()
}

// Drop ends the goroutine that commits, and drops the Store, see [Store.Drop].
func (l *Ledger) Drop() (gone bool, err error) {
	l.end()
	return l.Store.Drop()
}

func (l *Ledger) end() {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.ended
}

// Do makes a change durable. Then its Entry is what is stored: mostly as given, but in doubt if its lead ID is that of
// another key. Until Do returns, nobody else may use the change. A claim waits for a slot. If ctx ends before a commit
// takes the claim, Do returns the error of ctx and nothing was written. Other changes do not stop for ctx. Other errors
// are refusals ([IsRefusal]), ErrClosed, and those of the Store.
func (l *Ledger) Do(ctx context.Context, c *Change) (err error) {
	w, claims := &waiting{c, make(chan error, 1)}, c.Kind == Claim
	if err := l.enqueue(w); err != nil {
		return err
	}
	if claims {
		err = l.awaitClaim(ctx, w)
	} else {
		err = <-w.done // waiting for two channels takes twice the time
	}
	return cmp.Or(err, c.Err)
}

// awaitClaim waits until a claim is durable, or until ctx ends and the claim is still in the queue.
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

func (l *Ledger) enqueue(w *waiting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.broken != nil {
		return cmp.Or(l.broken, ErrClosed)
	}
	l.queue = append(l.queue, w)
	if l.isAnswer(w) {
		l.answered++
	}
	if !l.gathers || l.due() {
		l.wake.Signal()
	}
	return nil
}

// isAnswer reports whether a change ends a claim that has a slot.
func (l *Ledger) isAnswer(w *waiting) bool {
	_, claimed := l.inSlots[w.Entry.Key]
	return claimed && (w.Kind == Settle || w.Kind == Withdraw)
}

// due reports whether to commit now: a lane would soon be idle, the first outcome is there (the others wait for it), or
// nothing more will come.
func (l *Ledger) due() bool {
	return l.Places == 0 || len(l.inSlots)-l.answered <= l.Places+(l.Places+8)/16 || l.answered > 0 && !l.begun ||
		l.closed || l.broken != nil
}

func (l *Ledger) takeBack(w *waiting) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.queue, w)
	if at >= 0 {
		l.queue = slices.Delete(l.queue, at, at+1)
	}
	return at >= 0
}

// await waits until a commit is due, or until its changes have waited for the ledger's patience. Once the ledger is
// closed and nothing is left to commit, it returns false and refuses claims that wait for slots: none will become free.
func (l *Ledger) await() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.some() {
		if l.closed {
			for _, w := range l.queue {
				w.done <- ErrClosed
			}
			l.queue = nil
			return false
		}
		l.wake.Wait()
	}
	if l.due() {
		return true
	}
	l.gathers = true
	timer := time.AfterFunc(l.patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gathers = false
		l.wake.Signal()
	})
	defer timer.Stop()
	for l.gathers && l.some() && !l.due() {
		l.wake.Wait()
	}
	l.gathers = false
	return true
}

func (l *Ledger) some() bool {
	return slices.ContainsFunc(l.queue, func(w *waiting) bool { return w.Kind != Claim || l.hasSlot() })
}

func (l *Ledger) hasSlot() bool { return l.Slots == 0 || len(l.inSlots) < l.Slots || l.broken != nil }

func (l *Ledger) commit() {
	group, err := l.take()
	changes := make([]*Change, len(group))
	for i, w := range group {
		changes[i] = w.Change
	}
	if err == nil && len(group) > 0 {
		err = crash.Call(func() error { return l.Store.Commit(context.Background(), changes) })
	}
	l.mu.Lock()
	l.broken = err
	for _, w := range group {
		if w.Kind == Claim && (err != nil || w.Err != nil) {
			delete(l.inSlots, w.Entry.Key)
		}
	}
	l.mu.Unlock()
	for _, w := range group {
		w.done <- err
	}
}

// take removes from the queue what can be committed now: outcomes, and as many claims as have slots after that. Once
// the Store is broken, it takes everything and fails.
func (l *Ledger) take() (group []*waiting, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, claims := range []bool{false, true} {
		l.queue = slices.DeleteFunc(l.queue, func(w *waiting) bool {
			switch is := w.Kind == Claim; {
			case is != claims, is && !l.hasSlot():
				return false
			case is:
				l.inSlots[w.Entry.Key] = struct{}{}
			case l.isAnswer(w):
				delete(l.inSlots, w.Entry.Key)
				l.begun = true
			}
			group = append(group, w)
			return true
		})
	}
	l.answered = 0
	return group, l.broken
}
