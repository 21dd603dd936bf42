package checkpoint

import (
	"slices"
	"time"
)

// Act says what an event did to a key; several may come together.
type Act uint8

// The acts.
const (
	Made       Act = 1 << iota // a lead was created
	Linked                     // its external ID was set
	StatusSent                 // its status was changed
	DataSent                   // other data were sent
	Refused                    // the service refused it
	Doubted                    // a create was sent and nobody could tell
	Adopted                    // taken over from a list
	Decided                    // settled by a person
)

// The acts that brought a lead ID: of people, and all of them.
const (
	OfPeople  = Adopted | Decided
	GivesLead = Made | OfPeople
)

// Event is one step in the history of a key.
type Event struct {
	Act    Act
	State  State // as it stood after
	Status string
	Code   int // of the answer, where it says something
	Run    string
	At     time.Time // UTC, to the millisecond
	Send             // Doubted: what was sent, where that is still known
}

// Past is an event as the past of an entry keeps it: without what was sent.
func (ev Event) Past() Event {
	ev.Send = Send{}
	return ev
}

// AddEvent adds an event to a history, once: what was sent is told where one of the two knows it.
// byTime puts it before what came later, instead of at the end.
func AddEvent(history []Event, ev Event, byTime bool) []Event {
	at := slices.IndexFunc(history, func(other Event) bool { return other.Past() == ev.Past() })
	later := slices.IndexFunc(history, func(other Event) bool { return other.At.After(ev.At) })
	switch {
	case at >= 0 && history[at].Send == Send{}:
		history[at] = ev
	case at >= 0:
	case byTime && later >= 0:
		return slices.Insert(history, later, ev)
	default:
		return append(history, ev)
	}
	return history
}

// Send is what a person needs to find the lead of a send that was in doubt.
type Send struct {
	File                  string
	Line                  int
	Organization, Locator string // the one asked for
}

// RunInfo is the history of one run.
type RunInfo struct {
	ID, Command       string
	Started, Finished time.Time // UTC, to the millisecond; Finished is zero for a run that was killed
	Outcome           string
	Counts            map[string]int // rows by outcome
}

// NewestRuns is how many runs a Status has.
const NewestRuns = 10

// Status is what a checkpoint knows, in figures.
type Status struct {
	Path           string
	Target         Target
	Keys           map[State]int
	Statuses       map[string]int  // leads by the status last confirmed; "" is not known, "unknown" not in the specification
	Runs           []RunInfo       // the newest
	Contradictions []Contradiction // of decisions that stand
	Warnings       []string        // of opening it
	Process        int             // that holds the checkpoint and keeps this account; 0: none does
	At             time.Time       // of the account
}
