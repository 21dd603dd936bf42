package checkpoint

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"leadferry/internal/crash"
)

// patience is the longest time that a change waits for others to share its commit. It is patienceFar if the Store is on
// another machine: a commit is a round trip there, and the commits of all workers wait for the server's disk.
const patience, patienceFar = 25 * time.Millisecond, 100 * time.Millisecond

// Gathering says how changes are put together into commits.
type Gathering struct {
	// Slots limits how many claims may have no outcome yet, and so how many rows a kill leaves in doubt. 0: no limit.
	Slots int
	// Places is how many requests are under way at once. While more claims than that are open, the lanes are busy, and
	// changes wait for others. When few claims are open, the commit is made at once. 0: changes never wait.
	Places int
	// Far says that the Store is on another machine.
	Far bool
}

// Ledger gathers the changes of many goroutines into commits of its Store. A claim takes a slot with its commit. Its
// outcome or withdrawal frees the slot, for claims of the same commit, too: a commit is stored whole or not at all.
//
// One goroutine commits. It waits for more changes, up to patience, unless so few claims are open that lanes get idle.
type Ledger struct {
	Store
	Gathering
	patience time.Duration

	mu        sync.Mutex
	queue     []*Change           // what no commit has taken yet
	inSlots   map[string]struct{} // keys whose claims have a slot
	answered  int                 // how many keys of inSlots have an outcome or a withdrawal in the queue
	pastFirst bool                // an outcome was taken into a commit: only the first one does not wait for others
	waits     bool                // the goroutine that commits has changes, and waits for more
	closed    bool
	broken    error         // of the Store: nothing is written after such an error
	wake      *sync.Cond    // wakes the goroutine that commits
	ended     chan struct{} // closed when that goroutine has ended
}

// NewLedger starts the goroutine that commits to the Store. [Ledger.Close] ends the goroutine and closes the Store.
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
		for l.waitUntilDue() {
			l.commit()
		}
	}()
	return l
}

// Standing counts the rows in doubt that wait for a person. It leaves out rows that an incomplete ledger holds, and
// rows of runs that are still under way ([Store.UnderWay]).
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

// Close commits what it can of the queue, ends the goroutine that commits, and closes the Store.
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

// Do makes a change durable. Then the change's Entry is what is stored: mostly as given, but in doubt if another key
// has its lead ID. Until Do returns, nobody else may use the change. A claim waits for a slot. If ctx ends first, the
// next commit refuses the claim with the error of ctx: while no slot is free, that is the next one with an outcome.
// Other changes do not stop for ctx. Other errors are refusals ([IsRefusal]), ErrClosed and those of the Store.
func (l *Ledger) Do(ctx context.Context, c *Change) error {
	if c.ctx, c.Err = ctx, nil; c.done == nil {
		c.done = make(chan error, 1)
	}
	if err := l.enqueue(c); err != nil {
		return err
	}
	err := <-c.done
	return cmp.Or(err, c.Err)
}

func (l *Ledger) enqueue(c *Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.broken != nil {
		return cmp.Or(l.broken, ErrClosed)
	}
	l.queue = append(l.queue, c)
	if l.isAnswer(c) {
		l.answered++
	}
	if !l.waits || l.due() {
		l.wake.Signal()
	}
	return nil
}

// isAnswer reports whether a change ends a claim that has a slot.
func (l *Ledger) isAnswer(c *Change) bool {
	_, claimed := l.inSlots[c.Entry.Key]
	return claimed && (c.Kind == Settle || c.Kind == Withdraw)
}

// due reports whether to commit now: a lane would soon be idle, the first outcome waits, or nothing more will come.
func (l *Ledger) due() bool {
	nearlyIdle := len(l.inSlots)-l.answered <= l.Places+(l.Places+8)/16
	return l.Places == 0 || nearlyIdle || l.answered > 0 && !l.pastFirst || l.closed || l.broken != nil
}

// waitUntilDue waits until a commit is due, or changes have waited for the ledger's patience. If the ledger is closed
// and nothing can be committed, it refuses the claims that still wait for slots, and returns false.
func (l *Ledger) waitUntilDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.hasWork() {
		if l.closed {
			for _, c := range l.queue {
				c.done <- ErrClosed
			}
			l.queue = nil
			return false
		}
		l.wake.Wait()
	}
	if l.due() {
		return true
	}
	l.waits = true
	timer := time.AfterFunc(l.patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waits = false
		l.wake.Signal()
	})
	defer timer.Stop()
	for l.waits && l.hasWork() && !l.due() {
		l.wake.Wait()
	}
	l.waits = false
	return true
}

func (l *Ledger) hasWork() bool {
	return slices.ContainsFunc(l.queue, func(c *Change) bool { return c.Kind != Claim || l.hasSlot() })
}

func (l *Ledger) hasSlot() bool { return l.Slots == 0 || len(l.inSlots) < l.Slots || l.broken != nil }

func (l *Ledger) commit() {
	group, err := l.take()
	if err == nil && len(group) > 0 {
		err = crash.Call(func() error { return l.Store.Commit(context.Background(), group) })
	}
	l.mu.Lock()
	l.broken = err
	for _, c := range group {
		if c.Kind == Claim && (err != nil || c.Err != nil) {
			delete(l.inSlots, c.Entry.Key)
		}
	}
	l.mu.Unlock()
	for _, c := range group {
		c.done <- err
	}
}

// take removes from the queue what can be committed now: outcomes, and as many claims as have slots after that. Once
// the Store is broken, it takes everything and fails.
func (l *Ledger) take() (group []*Change, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	group = make([]*Change, 0, len(l.queue))
	for _, claims := range []bool{false, true} {
		l.queue = slices.DeleteFunc(l.queue, func(c *Change) bool {
			switch is := c.Kind == Claim; {
			case is != claims:
				return false
			case is && c.ctx.Err() != nil:
				c.done <- c.ctx.Err()
				return true
			case is && !l.hasSlot():
				return false
			case is:
				l.inSlots[c.Entry.Key] = struct{}{}
			case l.isAnswer(c):
				delete(l.inSlots, c.Entry.Key)
				l.pastFirst = true
			}
			group = append(group, c)
			return true
		})
	}
	l.answered = 0
	return group, l.broken
}
