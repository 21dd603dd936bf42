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
	maxHead     = 64 << 10 // of a head, informational answers included
	maxBody     = 1 << 20  // of a body, unpacked too
	maxText     = 500      // characters of a text from outside
	secretPiece = 12       // running, of a secret, give it away
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
	restLimit  = 750 * time.Millisecond // at most; some balancers close after a second, as they count it
	maxWrite   = 8 << 10                // bytes a write
	keptBuffer = 64 << 10               // bytes for requests and answers that it keeps while it rests
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
