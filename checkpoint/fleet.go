package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Terms are the settings of a worker of a fleet. All except Shard must be those of the first worker.
type Terms struct {
	Fleet         string
	Shard, Shards int
	MaxCreates    int     // leads that all of them make at most; 0: no limit
	Rate          float64 // requests a second that all of them send at most; 0: no limit
	Same          []Term  // what else must be the same
}

// Term is one more setting that must be the same, for example the mapping. Value is a text to compare.
type Term struct{ Name, Value string }

// ErrTerms refuses a worker whose terms differ from those of its fleet. The fleet stays as it was.
var ErrTerms = errors.New("the worker does not fit into the fleet")

// Fit returns an [ErrTerms] that names the first term that differs from the fleet's, or nil.
func (t *Terms) Fit(fleet *Terms) error {
	ours, theirs := t.all(), fleet.all()
	most := max(len(ours), len(theirs))
	ours, theirs = append(ours, make([]Term, most-len(ours))...), append(theirs, make([]Term, most-len(theirs))...)
	for i, own := range ours {
		if own != theirs[i] {
			return fmt.Errorf("%w %s: %s is not that of the fleet\n"+
				"hint: start all workers of a fleet with one command. Give another run another --fleet name, also if "+
				"the first one was wrong: nothing is made twice", ErrTerms, t.Fleet, cmp.Or(own.Name, theirs[i].Name))
		}
	}
	return nil
}

func (t *Terms) all() []Term {
	return append([]Term{
		{"the number of shards", fmt.Sprint(t.Shards)},
		{"--max-creates", fmt.Sprint(t.MaxCreates)},
		{"--rate", fmt.Sprint(t.Rate)},
	}, t.Same...)
}

// ErrEnough refuses a claim because the fleet has claimed as many leads as it may make. It ends the run.
var ErrEnough = errors.New("the fleet has made as many leads as it may")

// Counts are numbers of rows. Refused: sent, and then rejected or failed. Doubts: fallen in doubt.
type Counts struct{ Read, Invalid, Sent, Refused, Doubts int }

// Progress is what a worker has done so far.
type Progress struct {
	Counts
	Wants bool          // it needs more requests of the fleet's rate, if there is one
	Pause time.Duration // the pause that the service has asked for since the last report
	Rows  any           // by outcome, for the report of the fleet; it is written as JSON
}

// Common is what holds for all workers of a fleet now.
type Common struct {
	Counts               // of all workers
	Tokens int           // how many more requests the worker may send, spread evenly
	After  time.Duration // how long to wait before the first of them
	Pause  time.Duration // what is left of the longest pause that the service has asked any worker for
}

// Member is a worker of a fleet as the ledger knows it.
type Member struct {
	Shard   int
	Shards  int // of all workers of the fleet
	Started time.Time
	Last    time.Time // its last sign of life
	Newest  bool      // of its shard
	Rows    []byte    // by outcome, from its last report, in JSON
	Summary []byte    // at its end, in JSON; nil: it goes on, or was killed
}
