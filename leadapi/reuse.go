package leadapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Measures of how a connection is used again. A server closes a resting connection at a moment of its own, and a request
// that crosses that close has left without an answer: a create would be in doubt.
const (
	idleLimit   = 4 * time.Second        // rest of a connection at most; below the 5 s after which common servers close one
	createRest  = 750 * time.Millisecond // before a create; some balancers close after a second, as they count it
	retireAfter = 3 * time.Minute        // life of a busy connection, up to a third longer: a changed DNS answer is met
	proofRest   = 100 * time.Millisecond // what a first trial waits for, the time of the way besides: a busy machine may stand still for as long
	mostTrip    = time.Second            // of the way there and back that is reckoned with
	trialLimit  = 5 * time.Second        // for the answer to a trial
	mostTrials  = 16                     // a host and run; rests that are longer still get a new connection
	lostPause   = time.Minute            // nothing goes over a used connection after one was lost
)

// use says which connections a call may go over.
type use uint8

const (
	newConn  use = iota // a new one: to lose it would cost more than it costs, or whether one can be made is the question
	anyConn             // any: it may be sent again
	safeConn            // a new one, or one of which the host has shown that it keeps it: a create
)

func unlessNew(wanted bool, kind use) use {
	if wanted {
		return newConn
	}
	return kind
}

// reuse is what a host has shown of how it keeps connections, and what follows for creates. One goes over a used
// connection where a request was answered before after twice the rest (its clock and ours, and what is between, are not in step),
// and on one that had carried as many. To the host, a connection rests while an answer and the next request are on their way, too:
// the way's time is no proof of its patience. What goes beyond is tried by one call at a time, a rest longer than any before by a GET
// that can make nothing; the first one waits until its answer shows something. So a host that closes without a word costs one
// create at most, be it after a time, after a number of requests or after each answer.
type reuse struct {
	rest      time.Duration // the longest after which a request was answered
	trip      time.Duration // the shortest time in which one was answered, at most mostTrip: the way took no longer; 0: unknown
	carried   int           // the most requests that a connection had carried when another one was answered
	exploring bool          // a call is going beyond these
	trials    int
	single    bool      // the host has closed a used connection without a byte of answer: creates get one each
	lost      time.Time // when it last did
}

// trial is what must come before a call over a used connection: a GET, once the connection has rested for so long.
type trial struct {
	needed bool
	rest   time.Duration
}

// proof is the least rest whose answer says that the next create may go at once.
func (u *reuse) proof() time.Duration { return proofRest + u.trip }

// allows tells whether a call may go over a connection that has rested, and what trial must come first.
func (u *reuse) allows(c *conn, kind use, now time.Time) (may bool, first trial) {
	rest := c.rest(now)
	first = trial{rest > u.rest || u.rest < u.proof(), max(rest, u.proof())}
	switch {
	case kind == newConn || !c.lasts(now, rest):
		return false, first
	case kind == anyConn:
		return u.lost.IsZero() || now.Sub(u.lost) >= lostPause, trial{}
	case u.single || rest >= createRest:
		return false, first
	case !first.needed && rest <= (u.rest-u.trip)/2 && c.carried <= u.carried:
		return true, first
	case u.exploring || first.needed && (u.trials == mostTrials || !c.lasts(now, u.proof())):
		return false, first
	}
	u.exploring, c.explores = true, true
	if first.needed {
		u.trials++
	}
	return true, first
}

// answered notes an answer on a connection, which had rested and carried others before.
func (u *reuse) answered(rested time.Duration, carried int) {
	u.rest, u.carried = max(u.rest, rested), max(u.carried, carried)
}

// took notes how long an exchange took, from its first byte to the answer's last.
func (u *reuse) took(d time.Duration) {
	if d = min(d, mostTrip); u.trip == 0 || d < u.trip {
		u.trip = d
	}
}

// closed notes that a connection was found closed after a rest.
func (u *reuse) closed(rested time.Duration) { u.rest = min(u.rest, rested/2) }

// rest is for how long no call has used the connection, by the wall clock too: the other one stands still while the
// machine sleeps.
func (c *conn) rest(now time.Time) time.Duration {
	return max(now.Sub(c.idleSince), now.Round(0).Sub(c.idleSince.Round(0)))
}

// awaitRest waits until the connection has rested for so long, and returns how long that took.
func (c *conn) awaitRest(ctx context.Context, rest time.Duration) (waited time.Duration) {
	began := time.Now()
	left := rest - c.rest(began)
	if left <= 0 {
		return 0
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	now := time.Now()
	c.rested = c.rest(now)
	return now.Sub(began)
}

// lasts tells whether a connection can carry another call after a rest, by its age and by what the server has announced.
func (c *conn) lasts(now time.Time, rest time.Duration) bool {
	return rest < c.restLimit && c.left != 0 && now.Before(c.retires)
}

// heed notes what a server announces of a connection (header Keep-Alive). Half of the time it names is used: its clock
// began before ours, and ends before what is sent then has arrived. Its number of requests counts the one just answered, for
// some servers count so.
func (c *conn) heed(h http.Header) {
	for _, line := range h["Keep-Alive"] {
		for word := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			n, err := strconv.ParseUint(strings.Trim(value, `" `), 10, 31)
			if err != nil {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "timeout":
				c.restLimit = min(idleLimit, time.Duration(n)*time.Second/2)
			case "max":
				if left := max(int(n)-1, 0); c.left < 0 || left < c.left {
					c.left = left
				}
			}
		}
	}
}
