package importer

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/leadapi"
)

// balancer is a service behind a balancer that closes connections, over the real client. It keeps the only ledger that
// counts here: who was made, and how often.
type balancer struct {
	restarts, storm, expires bool

	server *httptest.Server
	mu     sync.Mutex
	made   map[string]int // by name
	posts  int
	tokens int
	asked  time.Time // when the token endpoint asked to wait a second
	early  bool      // it was asked again before
}

// balanced makes a trial whose service is a balancer's. rest is after how long an idle connection is closed; 0: at once.
func balanced(t *testing.T, b *balancer, secure bool, rest time.Duration) *trial {
	t.Helper()
	b.made = map[string]int{}
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog, b.server.Config.IdleTimeout = log.New(io.Discard, "", 0), rest
	if rest == 0 {
		b.server.Config.ConnState = func(c net.Conn, s http.ConnState) {
			if s == http.StateIdle {
				c.Close()
			}
		}
	}
	tr := newTrial(t, numbered(150), Options{Sending: Sending{Concurrency: 8, Retries: 20}})
	config := leadapi.Config{
		TrunkID: "t", ClientID: "c", ClientSecret: "secret-of-the-client", Concurrency: 8, Timeout: 20 * time.Second,
		Leave: tr.retrier.Breaker.Leaves, Observe: tr.meter.Observe,
	}
	if secure {
		b.server.StartTLS()
		config.Authorities = append(config.Authorities, b.server.Certificate())
	} else {
		b.server.Start()
	}
	t.Cleanup(b.server.Close)
	config.BaseURL, config.LeadsURL = b.server.URL, b.server.URL
	client, err := leadapi.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	tr.sender, tr.retrier.Reach = client, client.Reach
	return tr
}

// ServeHTTP decides under the lock, and answers after it.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.HasSuffix(r.URL.Path, "/token"):
		b.token(w)
	default:
		b.create(w, r)
	}
}

// token gives one, after it has asked to wait: at first, and again where the first one expires.
func (b *balancer) token(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens++; b.tokens%2 == 1 {
		b.asked = time.Now()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b.early = b.early || time.Since(b.asked) < time.Second
	fmt.Fprintf(w, `{"access_token":"token-%d"}`, b.tokens/2)
}

func (b *balancer) create(w http.ResponseWriter, r *http.Request) {
	var body struct{ Content struct{ Name string } }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return
	}
	b.mu.Lock()
	b.posts++
	n := b.posts
	switch {
	case b.expires && n > 60 && r.Header.Get("Authorization") == "Bearer token-1":
		b.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	case b.storm && n > 30 && n <= 42:
		b.mu.Unlock()
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	b.made[body.Content.Name]++
	b.mu.Unlock()
	if b.restarts && (n == 20 || n == 90) {
		b.server.CloseClientConnections()
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"leadID":"lead-%s","assignedOrganizationID":"o-1","assignedLocationName":""}`, body.Content.Name)
}

// Whatever a balancer does to the connections, together with whatever else goes on: nothing is made twice or lost, waits are
// heard, and where nothing breaks in mid-request nothing is in doubt but what found out. fault 140
func TestBalancersThatCloseConnections(t *testing.T) {
	var wait sync.WaitGroup
	defer wait.Wait()
	for number := range 32 {
		bit := func(n int) bool { return number/4>>n&1 == 1 }
		b := &balancer{restarts: bit(0), storm: bit(1), expires: bit(1)}
		secure, rest := bit(2), []time.Duration{0, 10 * time.Millisecond, 200 * time.Millisecond, time.Minute}[number%4]
		tr := balanced(t, b, secure, rest)
		wait.Go(func() { // all of them at once: most of it is waiting
			tr.carry(t.Context())
			for _, text := range b.judge(tr) {
				t.Errorf("TLS %v, rest %s, restarts %v, 429 and 401 %v: %s", secure, rest, b.restarts, b.storm, text)
			}
		})
	}
}

// judge says what is wrong with what became of the rows.
func (b *balancer) judge(tr *trial) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range tr.records.lines {
		l := &tr.records.lines[i]
		made := b.made["n"+l.it.rec.Key[1:]]
		if fits := l.r.outcome == Created && made == 1 || l.r.outcome == InDoubt && made <= 1; !fits {
			fault("row %s: %v (%s), made %d times", l.it.rec.Key, l.r.outcome, l.r.text, made)
		}
	}
	most := tr.Concurrency // connections that were closed as their creates left; after that each create gets its own
	if b.restarts {        // twice, with what is in flight
		most += 2 * tr.Concurrency
	}
	if doubts := tr.tally.outcomes[InDoubt]; len(tr.records.lines) != 150 || doubts > most {
		fault("%s; at most %d may be in doubt", tr.outcomes(), most)
	}
	if b.early || b.tokens < 2 || b.tokens > 2 && !b.expires {
		fault("%d token requests; asked again too soon: %v", b.tokens, b.early)
	}
	return faults
}
