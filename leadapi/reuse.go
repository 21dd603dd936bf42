package leadapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A connection is used again by three rules:
//
//  1. It has rested for less than 750 ms, or half of what Keep-Alive announces, or half of the rest after which the host had
//     closed one.
//  2. Bytes that arrive when none are awaited, or stay behind an answer, end it. A late answer on a resting connection counts
//     as closed.
//  3. After the host has closed a used connection under a request, each of its creates gets a connection of its own.

// usage is what a connection has been through, and for how long it is good.
type usage struct {
	carried   int           // requests so far
	idleSince time.Time     // since when no call uses it
	restLimit time.Duration // for how long it may rest
	left      int           // requests that it may still carry; negative: no limit is known
	rested    time.Duration // before the call that uses it
}

// use says which connections a call may go over.
type use uint8

const (
	newConn  use = iota // a new one: whether one can be made is the question, or another node has to be met
	anyConn             // any: it may be sent again
	safeConn            // a used one only of a host that has closed none under a request: a create
)

func unlessNew(wanted bool, kind use) use {
	if wanted {
		return newConn
	}
	return kind
}

// rest is for how long no call has used the connection, by the wall clock too: the other one stands still while the
// machine sleeps.
func (c *usage) rest(now time.Time) time.Duration {
	return max(now.Sub(c.idleSince), now.Round(0).Sub(c.idleSince.Round(0)))
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
				c.restLimit = min(restLimit, time.Duration(n)*time.Second/2)
			case "max":
				if left := max(int(n)-1, 0); c.left < 0 || left < c.left {
					c.left = left
				}
			}
		}
	}
}
