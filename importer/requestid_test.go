package importer

import (
	"strings"
	"sync"
	"testing"

	"leadferry/checkpoint"
	"leadferry/leadapi"
)

// Each attempt has an ID of its own, of which the ledger knew before it left, and a row in doubt shows that of its last one.
func TestARowInDoubtShowsTheIDOfItsLastAttempt(t *testing.T) {
	tried(t, numbered(8), Options{Sending: Sending{Concurrency: 4, Retries: 5, Client: leadapi.Config{RequestIDHeader: "X-Request-ID"}}}, func(t *testing.T, tr *trial) {
		kept := func(key string) checkpoint.Entry { return entryOf(t, tr.ledger, key) }
		var mu sync.Mutex
		sent := map[string][]string{} // by key
		tr.service.see = func(key string, r *leadapi.CreateRequest) {
			mu.Lock()
			defer mu.Unlock()
			if id := kept(key).RequestID; id == "" || !strings.HasPrefix(r.RequestID, id+"-") {
				t.Errorf("row %s left with ID %q, kept is %q", key, r.RequestID, id)
			}
			sent[key] = append(sent[key], r.RequestID)
		}
		tr.service.answer = func(name string, n int) error {
			switch {
			case name == "n003" && n == 1:
				return &leadapi.Error{Op: "create", Status: 429, HasRetryAfter: true}
			case name == "n003", name == "n005":
				return httpError(500)
			}
			return nil
		}
		tr.carry(t.Context())
		all := map[string]bool{}
		for key, ids := range sent {
			for i, id := range ids {
				if all[id] || !strings.HasSuffix(id, []string{"-1", "-2"}[i]) {
					t.Errorf("row %s, attempt %d: %s", key, i+1, id)
				}
				all[id] = true
			}
			want := ""
			if key == "k003" || key == "k005" {
				want = ids[len(ids)-1]
			}
			if got := kept(key); got.RequestID != want {
				t.Errorf("row %s: kept %+v, sent with %s", key, got, ids)
			}
		}
		if len(sent["k003"]) != 2 || len(all) != 9 {
			t.Errorf("%v", sent)
		}
		for i := range tr.records.lines {
			l := &tr.records.lines[i]
			got := WithRequestID(l.r.text, &l.r.entry)
			if id := kept(l.it.rec.Key).RequestID; l.r.outcome == InDoubt && !strings.HasSuffix(got, "; request ID "+id) || l.r.outcome != InDoubt && got != l.r.text {
				t.Errorf("row %s: %q", l.it.rec.Key, got)
			}
		}
	})
}
