package leadapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// host is an application of the service and the connections to it: straight there or through a proxy, HTTP/1.1 only.
type host struct {
	name        string           // as the header Host says it
	domain      string           // without port
	address     string           // host and port, to dial
	tls         *tls.Config      // nil: plain HTTP, on loopback
	certificate *tls.Certificate // to show where one is asked for; nil: none
	proxy       *Proxy           // nil: none
	proxyTLS    *tls.Config      // nil: the way to the proxy is plain
	room        chan struct{}    // one token a connection in use or being dialled

	mu         sync.Mutex
	idle       []*conn   // the one used last comes last
	generation int       // connections of an earlier one are not used again
	opened     time.Time // when a connection was made last
	reuse      reuse
	traced     bool // calls are
}

// newHost returns the host of an address. An error is a *ConfigError.
func (c Config) newHost(u *url.URL) (*host, error) {
	h := &host{traced: c.Trace != nil, name: u.Host, domain: u.Hostname(), certificate: c.Certificate, room: make(chan struct{}, c.Concurrency)}
	h.address = net.JoinHostPort(h.domain, cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	if c.Proxy != nil {
		h.proxy = c.Proxy(u)
	}
	overTLS := h.proxy != nil && h.proxy.scheme == "https"
	if u.Scheme != "https" && !overTLS {
		return h, nil
	}
	trusted, err := roots(c.Authorities)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		h.tls = tlsConfig(h.domain, trusted, c.Concurrency)
	}
	if overTLS {
		h.proxyTLS = tlsConfig(h.proxy.name, trusted, c.Concurrency)
	}
	return h, nil
}

// take returns a connection that no other call uses: the idle one that was used last, if this call may go over it, or a
// new one; first says that the host must have answered something over it before that can make nothing. Where there may be no more
// connections it waits, at most until limit. The caller must put it back.
func (h *host) take(ctx context.Context, limit time.Time, kind use) (c *conn, first trial, err error) {
	if err := h.enter(ctx, limit); err != nil {
		return nil, first, err
	}
	if c, first = h.takeIdle(kind, time.Now()); c != nil {
		return c, first, nil
	}
	if c, err = h.open(ctx, limit); err != nil {
		<-h.room
		return nil, first, err
	}
	c.restLimit, c.left, c.traced = idleLimit, -1, h.traced
	if kind == safeConn && h.singleUse() {
		c.left = 1
	}
	c.retires = time.Now().Add(retireAfter + rand.N(retireAfter/3))
	return c, trial{}, nil
}

// enter waits until there may be one connection more.
func (h *host) enter(ctx context.Context, limit time.Time) error {
	select {
	case h.room <- struct{}{}: // mostly, and a timer would be dear
		return nil
	default:
	}
	ctx, stop := context.WithDeadline(ctx, limit)
	defer stop()
	select {
	case h.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeIdle takes out the idle connection that was used last, of those that the call may go over; nil where there is none.
// For a new one it makes room: no more than there may be are open, resting ones included.
func (h *host) takeIdle(kind use, now time.Time) (c *conn, first trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range slices.Backward(h.idle) {
		if may, first := h.reuse.allows(c, kind, now); may {
			h.idle = slices.Delete(h.idle, i, i+1)
			c.rested, c.served = c.rest(now), false
			return c, first
		}
	}
	for len(h.idle) > 0 && len(h.room)+len(h.idle) > cap(h.room) {
		h.closeOldest()
	}
	return nil, trial{}
}

func (h *host) closeOldest() {
	h.idle[0].Close()
	h.idle = slices.Delete(h.idle, 0, 1)
}

// put takes back a connection: keep says that another call can use it.
func (h *host) put(c *conn, keep bool) {
	if !h.putIdle(c, keep) {
		c.Close()
	}
	<-h.room
}

// putIdle notes what the call has shown of the host and keeps the connection for another one, unless it is of an earlier
// generation. It closes those that have been idle for too long.
func (h *host) putIdle(c *conn, keep bool) bool {
	c.release()
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.served {
		h.reuse.answered(c)
	}
	if c.explores {
		c.explores, h.reuse.exploring = false, false
	}
	if !keep || c.generation != h.generation || !c.lasts(c.idleSince, 0) {
		return false
	}
	h.idle = append(h.idle, c)
	for !h.idle[0].lasts(c.idleSince, h.idle[0].rest(c.idleSince)) {
		h.closeOldest()
	}
	return true
}

// tried notes that a request was answered over a used connection, which goes on without rest.
func (h *host) tried(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reuse.answered(c)
	c.rested = 0
}

// closed takes back a connection that was found closed before anything was sent over it.
func (h *host) closed(c *conn) {
	h.mu.Lock()
	h.reuse.closed(c.rested)
	h.mu.Unlock()
	h.put(c, false)
}

// lost notes that the host closed a used connection, or fell silent upon it, instead of answering. From now on each create
// gets a connection of its own: first is said when it did not before.
func (h *host) lost(closed bool) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if closed {
		h.reuse.lost = time.Now()
	}
	first, h.reuse.single = !h.reuse.single, true
	return first
}

// singleUse tells whether each create gets a connection of its own.
func (h *host) singleUse() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reuse.single
}

// closeIdle closes the idle connections; those in use are not used again once their calls are over.
func (h *host) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.generation++
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

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

// answered notes an answer on a connection, which had rested and carried others before, and how long the exchange took.
func (u *reuse) answered(c *conn) {
	u.rest, u.carried = max(u.rest, c.rested), max(u.carried, c.carried-1)
	if took := min(c.took, mostTrip); u.trip == 0 || took < u.trip {
		u.trip = took
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
