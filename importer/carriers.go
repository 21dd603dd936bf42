package importer

import (
	"context"
	"slices"
	"sync"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/leadapi"
)

// carriersPerPlace is how many carriers there are for each request that may be in flight. A row waits for the checkpoint for
// half of its time, and those that wait share commits: with two for each there are twice as many commits, and a row takes a
// seventh more processor time.
const carriersPerPlace = 4

// slotsPerPlace is how many rows may be claimed and not yet settled for each request that may
// be in flight: as many are in doubt when the process is killed. It also bounds how many may
// have been sent and not yet counted, and so how far a run goes beyond its limits.
const slotsPerPlace = 2

// carriers are the goroutines that carry rows. Rows go there and come back by two
// channels, which have room for all of them, so that nobody waits to hand one over.
type carriers struct {
	todo, done chan *job
	spare      []*job        // as many as rows may still be handed out
	sentSlots  chan struct{} // one for each row that was sent, or is about to be, and not yet counted
}

// job is a row with its step, which a carrier takes to its outcome.
type job struct {
	result // as far as it is known; its entry is what is known at first and what was settled in the end
	it     *item
	step   Step
	names  leadNames
	stop   *Stop // set when the run has to end

	doubt      *ending               // Create: of the row, which was in doubt before; or nil
	enough     bool                  // the fleet may make no more leads
	elsewhere  bool                  // another worker had claimed its key, or made its lead, since it was looked up
	intended   bool                  // Create: the claim is durable; Update: the mark is
	sentSlot   chan struct{}         // of the carrier's sentSlots, where the row has one; or nil
	createSlot chan struct{}         // the same, of its creates
	linking    bool                  // the lead exists and has to be linked
	pass       delivery.Pass         // Create: what it was sent with
	requestID  string                // Create: of its last attempt, where requests carry IDs
	request    leadapi.CreateRequest // room that the carrier's next row uses again

	leadBefore   leadBefore // Update: what was known of the lead
	maybeApplied bool       // Update: a try may have been applied, and nobody can tell
}

func newCarriers(places int) *carriers {
	n := carriersPerPlace * places
	if places == 1 {
		n = 1 // rows go in the order of the input then, as whoever asks for one at a time expects
	}
	c := &carriers{todo: make(chan *job, n), done: make(chan *job, n), sentSlots: make(chan struct{}, slotsPerPlace*places)}
	for range n {
		c.spare = append(c.spare, new(job))
	}
	return c
}

// start lets each carry rows, until no more are handed out.
func (c *carriers) start(group *sync.WaitGroup, carry func(*job)) {
	for range cap(c.todo) {
		group.Go(func() {
			for j := range c.todo {
				carry(j)
				c.done <- j
			}
		})
	}
}

// free reports whether another row may be handed out.
func (c *carriers) free() bool { return len(c.spare) > 0 }

// out is how many rows were handed out and have not been counted.
func (c *carriers) out() int { return cap(c.todo) - len(c.spare) }

func (c *carriers) hand(it *item, step Step, known *checkpoint.Entry, ns *leadNames) {
	last := len(c.spare) - 1
	j := c.spare[last]
	c.spare = c.spare[:last]
	*j = job{it: it, step: step, names: *ns, request: leadapi.CreateRequest{Content: j.request.Content}}
	j.entry = *known
	if step.Action == Create && known.State == checkpoint.InDoubt {
		held := heldBack(known)
		j.doubt = &held.ending
	}
	j.entry.Content = slices.Clone(known.Content) // look-ups use theirs again
	c.todo <- j
}

// counted gives the place of a row back; the row itself stands until the next is handed out.
func (c *carriers) counted(j *job) {
	give(&j.sentSlot)
	c.spare = append(c.spare, j)
}

// take waits for room in places; give gives it back.
func take(held *chan struct{}, places chan struct{}) {
	places <- struct{}{}
	*held = places
}

func give(held *chan struct{}) {
	if *held != nil {
		<-*held
		*held = nil
	}
}

// phases are the two of a run, each a context that ends with it. While it takes rows, creates
// and updates leave. While it sends, links of leads that were made leave, too.
type phases struct {
	taking, sending        context.Context
	takeNoMore, sendNoMore context.CancelFunc
}

func newPhases(ctx context.Context) *phases {
	var p phases
	p.sending, p.sendNoMore = context.WithCancel(ctx)
	p.taking, p.takeNoMore = context.WithCancel(p.sending)
	return &p
}
