package leadapi

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// NewRequestID returns a random UUID for the header that [Config].RequestIDHeader names, to be that of a request's first
// attempt.
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return RequestIDOf(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]), 1)
}

// RequestIDOf is the ID of a request's n-th attempt, n from 1: its last two digits count them. So each attempt has an ID of its
// own, and one that is known before the first leaves tells all; "" has none.
func RequestIDOf(id string, n int) string {
	if len(id) < 2 {
		return id
	}
	return fmt.Sprintf("%s%02x", id[:len(id)-2], min(n, 255))
}

// CheckRequestIDHeader refuses, by a *[ConfigError], names that a request ID cannot stand under: those of HTTP itself, and those
// for which somebody on the way might send the request again or somewhere else.
func CheckRequestIDHeader(name string) error {
	if name == "" {
		return nil
	}
	fail := func(sentence, hint string) error {
		return &ConfigError{"RequestIDHeader", "the header for request IDs " + sentence, hint}
	}
	small := strings.ToLower(name)
	meaning := func(prefix string) bool { return strings.HasPrefix(small, prefix) }
	switch {
	case len(name) > 64 || !httpguts.ValidHeaderFieldName(name):
		return fail("is not a name of a header", "letters, digits and - only, at most 64, such as X-Request-ID")
	case strings.Contains(small, "idempot"):
		return fail("would let others repeat the request", "the service knows no idempotency keys; use a name such as X-Request-ID")
	case slices.Contains(takenHeaders, small) || slices.ContainsFunc(takenPrefixes, meaning):
		return fail("has a meaning of its own in HTTP", "use a name such as X-Request-ID")
	}
	return nil
}

var (
	takenHeaders = []string{
		"age", "allow", "authorization", "cache-control", "connection", "cookie", "cookie2", "date", "dnt", "early-data", "etag", "expect", "expires",
		"forwarded", "from", "host", "http2-settings", "keep-alive", "last-modified", "location", "max-forwards", "origin", "pragma", "prefer", "priority", "range",
		"referer", "retry-after", "server", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests", "user-agent", "vary",
		"via", "warning", "www-authenticate", "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-real-ip", "x-rewrite-url",
	}
	takenPrefixes = []string{"accept", "access-control-", "content-", "if-", "proxy-", "sec-", "x-forwarded-"}
)
