package e2e

import (
	"testing"

	"leadferry/leadapi/sandbox"
)

// creates is how many creates came to the service, whatever it answered.
func (w *world) creates() (n int) {
	for _, answers := range w.service.Counts()["create"] {
		n += answers
	}
	return n
}

// TestBrownOut: a service that has too much to do for one request in five is asked at
// most 1.3 times a row. fault 61
func TestBrownOut(t *testing.T) {
	t.Parallel()
	const rows = 100
	w := newWorld(t, sandbox.Options{Faults: "create.429:20%,retry-after=0,seed=5"})
	w.leads(rows)
	w.must(0, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", "16", "--retries", "20", "--summary", "s.json")
	n, refused := w.creates(), w.service.Counts()["create"][429]
	t.Logf("%d creates for %d rows, %d of them answered 429", n, rows, refused)
	if n > rows*13/10 || refused < rows/10 {
		t.Errorf("%d creates for %d rows, %d of them answered 429", n, rows, refused)
	}
	if s := w.summary("s.json"); s.Rows.Created != rows || s.Requests.Create != n {
		t.Errorf("the run says %d created by %d creates", s.Rows.Created, s.Requests.Create)
	}
	w.complete(rows)
}

// TestAllRefused: where the first 2 × K rows sent are all refused alike, something is
// wrong with all of them: the run stops and leaves the others alone. faults 54, 55
func TestAllRefused(t *testing.T) {
	t.Parallel()
	const rows = 200
	for _, concurrency := range []int{1, 16} {
		t.Run("-c "+itoa(concurrency), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{Faults: "create.403:100%"})
			w.leads(rows)
			out := w.must(3, "import", "-m", "leads.yaml", "leads.csv", "--out", "none", "-c", itoa(concurrency), "--summary", "s.json")
			s, n := w.summary("s.json"), w.creates()
			if n > 2*concurrency || s.Rows.Rejected != n || s.Rows.Rejected+s.Rows.Pending != s.Rows.Read || s.Rows.InDoubt != 0 {
				t.Errorf("%d creates came, want at most %d; %+v", n, 2*concurrency, s.Rows)
			}
			contains(t, out, "all refused with HTTP 403")
			w.holds(0)
		})
	}
}
