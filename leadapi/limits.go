package leadapi

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Every limit of the client stands here, but for those that a [Config] sets: the time of a request and the number of connections.

// MaxRetryAfter is the longest wait that is taken from an answer: more counts as this.
const MaxRetryAfter = 15 * time.Minute

// Of answers, in bytes.
const (
	maxHead      = 64 << 10 // of a head, informational answers included
	maxBody      = 1 << 20  // of a body, unpacked too
	mostPackings = 3        // how often it may have been packed, one upon the other
	maxText      = 500      // characters of a text from outside
	secretPiece  = 12       // running, of a secret, give it away
)

// Of a dial.
const (
	dialLimit   = 10 * time.Second // connecting, a proxy's answer and the TLS handshakes, together
	recentDial  = 30 * time.Second // since a connection was made: the host is there
	fastFailure = time.Second      // a dial to such a host that fails within it is tried again
	redials     = 2
)

// Of a connection that is used again. A server closes a resting one at a moment of its own, and a request that crosses that close
// has left without an answer: a create would be in doubt.
const (
	idleLimit   = 4 * time.Second        // rest at most; below the 5 s after which common servers close one
	createRest  = 750 * time.Millisecond // before a create; some balancers close after a second, as they count it
	retireAfter = 3 * time.Minute        // life of a busy one, up to a third longer: a changed DNS answer is met
	proofRest   = 100 * time.Millisecond // what a first trial waits for, the time of the way besides: a busy machine may stand still for as long
	mostTrip    = time.Second            // of the way there and back that is reckoned with
	trialLimit  = 5 * time.Second        // for the answer to a trial
	mostTrials  = 16                     // a host and run; rests that are longer still get a new connection
	lostPause   = time.Minute            // nothing goes over a used connection after one was lost
	maxWrite    = 8 << 10                // bytes a write
	keptBuffer  = 64 << 10               // bytes for requests and answers that it keeps while it rests
)

// Of a token.
const (
	renewPause  = 30 * time.Second    // the least time between two renewals that no 401 asked for
	defaultLife = 3 * time.Hour       // of an access token (section "Limits")
	longestLife = 30 * 24 * time.Hour // of a token that is believed
)

const idSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// validID tells whether an ID may stand in a path: 1 to 128 of idSigns, and not dots only.
func validID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && strings.Trim(id, idSigns) == ""
}

// validToken tells whether a token may stand in a header: visible ASCII, at most 16 KiB.
func validToken(token string) bool {
	return token != "" && len(token) <= 16<<10 && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// validStatus tells whether a status looks like one, known or not: at most 64 letters, digits and the signs of labels, with
// a letter or digit first.
func validStatus(status string) bool {
	for i, r := range status {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !word && (i == 0 || !strings.ContainsRune(" ._-|/", r)) {
			return false
		}
	}
	return utf8.RuneCountInString(status) <= 64
}

// validExternalID tells whether an ExternalID can be kept: at most 1,024 bytes, and no control characters.
func validExternalID(id string) bool {
	return len(id) <= 1024 && !strings.ContainsFunc(id, unicode.IsControl)
}
