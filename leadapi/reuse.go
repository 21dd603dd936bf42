package leadapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// usage is what a connection has been through, the call that uses it included, and for how long it is good.
type usage struct {
	carried   int           // requests so far
	idleSince time.Time     // since when no call uses it
	restLimit time.Duration // for how long it may rest
	left      int           // requests that it may still carry; negative: no limit is known
	retires   time.Time     // when it carries no more

	rested   time.Duration // before the call that uses it
	served   bool          // that call got an answer
	took     time.Duration // from that call's first byte to its answer's last
	explores bool          // that call goes beyond what the host has shown
}

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
func (u *reuse) allows(c *usage, kind use, now time.Time) (may bool, first trial) {
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

// answered notes an answer on a connection, which had rested and carried others before, and how long the exchange took.
func (u *reuse) answered(c *usage) {
	u.rest, u.carried = max(u.rest, c.rested), max(u.carried, c.carried-1)
	if took := min(c.took, mostTrip); u.trip == 0 || took < u.trip {
		u.trip = took
	}
}

// closed notes that a connection was found closed after a rest.
func (u *reuse) closed(rested time.Duration) { u.rest = min(u.rest, rested/2) }

// rest is for how long no call has used the connection, by the wall clock too: the other one stands still while the
// machine sleeps.
func (c *usage) rest(now time.Time) time.Duration {
	return max(now.Sub(c.idleSince), now.Round(0).Sub(c.idleSince.Round(0)))
}

// awaitRest waits until the connection has rested for so long, and returns how long that took.
func (c *usage) awaitRest(ctx context.Context, rest time.Duration) (waited time.Duration) {
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
func (c *usage) lasts(now time.Time, rest time.Duration) bool {
	return rest < c.restLimit && c.left != 0 && now.Before(c.retires)
}

// noteKeepAlive notes what a server announces of a connection (header Keep-Alive). Half of the time it names is used: its clock
// began before ours, and ends before what is sent then has arrived. Its number of requests counts the one just answered, for
// some servers count so.
func (c *usage) noteKeepAlive(h http.Header) {
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
