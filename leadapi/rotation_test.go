package leadapi

import (
	"fmt"
	"testing"
	"time"
)

// Each renewal may give another refresh token, and the one before is worth nothing then: the newest one is kept.
// faults 72, 73
func TestNewestRefreshTokenIsUsed(t *testing.T) {
	s := &issuer{}
	c, elapsed := issue(t, s)
	want := []string{byAccount}
	for renewals := range 4 {
		if e := fault(t, c); e != nil {
			t.Fatal(e)
		}
		s.want(want...)
		elapsed.Add(int64(3 * time.Hour))
		want = append(want, fmt.Sprintf("refresh_token+r/%d", renewals+1))
	}
}
