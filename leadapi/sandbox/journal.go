package sandbox

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Counts says how many requests of each kind were given each HTTP status, 0 for no answer at all.
// Kinds are create, update, token, login, client, proxy and other.
type Counts map[string]map[int]int

// Request is what became of one request. It holds no query and no body: secrets travel there.
type Request struct {
	Number    int // from 1, in the order in which answers began
	At        time.Time
	Kind      string // as in Counts
	Method    string
	Path      string // 200 bytes of it at most
	RequestID string // its X-Request-ID, 100 bytes at most
	Status    int    // as it was answered; 0 for no answer
	Reason    string // of a refusal
	Fault     string // that hit it, by its name in FaultHelp
	LeadID    string // of the lead that was made or changed, whatever was answered
}

// mostRequests is how many requests a journal keeps.
const mostRequests = 1000

// journal keeps what was answered: how often, and the last requests.
type journal struct {
	mu     sync.Mutex
	counts Counts
	hits   map[string]int
	newest [2]string // the lead answered last, and the other one before
	number int
	ring   []Request // that of a number stands at the number - 1, modulo mostRequests
}

// entry is the Request of what came in, and what it was answered.
func (s *Server) entry(kind string, r *http.Request, f *fault, a answer) Request {
	e := Request{
		At: s.now(), Kind: kind, Method: cut(r.Method, 20), Path: cut(r.URL.Path, 200), RequestID: cut(r.Header.Get("X-Request-Id"), 100),
		Status: a.status, Reason: a.reason, LeadID: a.leadID,
	}
	if f != nil {
		e.Fault = f.text
	}
	return e
}

// cut keeps n bytes of a text, and no memory of the rest.
func cut(text string, n int) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(n, len(text))], ""))
}

// note keeps one request. It returns the last lead answered that is not that of this one, or "".
func (j *journal) note(e Request) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.counts[e.Kind] == nil {
		j.counts[e.Kind] = map[int]int{}
	}
	j.counts[e.Kind][e.Status]++
	if e.Fault != "" {
		j.hits[e.Fault]++
	}
	if e.LeadID != "" && e.LeadID != j.newest[0] {
		j.newest = [2]string{e.LeadID, j.newest[0]}
	}
	j.number++
	e.Number = j.number
	if len(j.ring) < mostRequests {
		j.ring = append(j.ring, e)
	} else {
		j.ring[(e.Number-1)%mostRequests] = e
	}
	return j.newest[1]
}

// Counts returns the requests answered so far.
func (s *Server) Counts() Counts {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	c := make(Counts, len(s.journal.counts))
	for kind, m := range s.journal.counts {
		c[kind] = maps.Clone(m)
	}
	return c
}

// Hits says how many requests each fault has hit so far, by its name.
func (s *Server) Hits() map[string]int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return maps.Clone(s.journal.hits)
}

// Answered returns how many requests were answered so far: where that has not grown, no lead has changed.
func (s *Server) Answered() int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.number
}

// Requests returns the newest requests that want says yes to, the newest first: limit of them at most, of the last 1,000.
func (s *Server) Requests(limit int, want func(Request) bool) (found []Request) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	for i := range s.journal.ring {
		e := s.journal.ring[(s.journal.number-1-i)%mostRequests]
		if len(found) == limit {
			break
		}
		if want(e) {
			found = append(found, e)
		}
	}
	return found
}

// Faults returns Options.Faults: what goes wrong how often.
func (s *Server) Faults() string { return strings.TrimSpace(s.options.Faults) }

// OrganizationName returns the name of an organization of the brand, "" where it has none.
func (s *Server) OrganizationName(id string) string { return s.directory.names[id] }
