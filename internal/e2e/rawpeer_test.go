package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/internal/testsupport/must"
)

// rawPeer imitates the service at the level of bytes. It accepts every sign-in with the
// right secret, stores leads and answers rightly, except for the requests that its script
// names: there it does what an act says. Tests judge the program by the peer's leads.
type rawPeer struct {
	api, leads *rawDoor // the general API; the lead creation application

	mu      sync.Mutex
	script  rawScript
	posts   []rawPost
	patches []rawPatch
	held    map[string]*rawLead // by lead ID
	tokens  int
	asked   []time.Time // when tokens were asked for
	gets    int

	elsewhere string // the organization that every lead is assigned to; "": the row's
}

// rawScript says which creates (POST) or updates (PATCH) get the act as answer: times of
// them, beginning with number from.
type rawScript struct {
	act         rawAct
	store       bool // the request is applied first
	update      bool // for PATCH instead of POST
	from, times int
	turns       []rawTurn // for the first creates, in place of act, store, from and times
	deaf        bool      // a GET gets no answer either
	busyGets    int       // how many GETs after create number from are asked to wait a second
	closed      bool      // those GETs get 503, and the last of them ends the faults of creates
	busyTokens  []int     // numbers of the token requests that are asked to wait
}

// rawTurn is how one create is answered. The zero value stores it and answers rightly.
type rawTurn struct {
	act    rawAct
	faulty bool
	store  bool
}

// turn is the turn of the nth create.
func (p *rawPeer) turn(nth int) rawTurn {
	switch s := &p.script; {
	case nth <= len(s.turns):
		return s.turns[nth-1]
	case p.scripted(false, nth):
		return rawTurn{s.act, true, s.store}
	}
	return rawTurn{}
}

// rawAct is what the peer does with one request. The zero value reads it whole and answers rightly.
type rawAct struct {
	say   string        // the answer; "": the right one, unless mute
	mute  bool          // no answer
	flood string        // repeated after the answer until the program hangs up
	pace  time.Duration // between the bytes of the answer
	end   rawEnding
}

type rawEnding int

// Ways in which a connection ends; keepOpen goes on with the next request.
const (
	keepOpen rawEnding = iota
	hangUp             // closed in order: FIN, or RST if bytes were not read
	reset              // RST at once
	hold               // no more bytes until the program hangs up
)

// Lead IDs for scripts. The peer replaces ownID by the ID of the lead that the request is about.
const (
	ownID   = "ID-OF-THE-ROW-KEY"
	firstID = "lead-00000000-001"
)

type rawPost struct {
	ref    string // importRef, "" if the request did not come whole
	faulty bool   // answered by the script
	stored bool
	at     time.Time
}

type rawPatch struct {
	id, body string
	faulty   bool
}

type rawLead struct {
	ID, Status, ExternalID, OwnerID string
	Content                         map[string]any
}

// Secrets that the peer hands out, beside the client secret of the tests.
const (
	rawSecret  = "Zq7-planted/client+secret&9f3b"
	rawAccess  = "eyJ.planted-access-token-4c1d."
	rawRefresh = "rf_planted+refresh/token-77aa."
	rawOrg     = "org-of-the-row-1"
)

func newRawPeer(t *testing.T, s rawScript) *rawPeer {
	p := &rawPeer{script: s, held: map[string]*rawLead{}}
	p.api = openDoor(t, listenRaw(t), p.serveAPI)
	p.leads = openDoor(t, listenRaw(t), p.serveLeads)
	return p
}

// serveAPI answers token requests and updates.
func (p *rawPeer) serveAPI(c net.Conn, r *bufio.Reader) {
	for {
		q, err := takeRequest(r)
		switch {
		case err != nil:
			return
		case q.method == "POST" && strings.HasPrefix(q.path, "/v3/oauth2/token?"):
			say(c, p.token(q), 0)
			continue
		case q.method != "PATCH":
			say(c, answered(404, "{}"), 0)
			continue
		}
		if !p.patch(c, q) {
			return
		}
	}
}

// tokenWait is how long a token request is asked to wait.
const tokenWait = 2 * time.Second

// token is the answer to a token request with the right secret.
func (p *rawPeer) token(q rawRequest) string {
	_, query, _ := strings.Cut(q.path, "?")
	v, err := url.ParseQuery(query)
	if err != nil || v.Get("client_secret") != rawSecret {
		return answered(400, `{"error":"invalid_client"}`)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, time.Now())
	if slices.Contains(p.script.busyTokens, len(p.asked)) {
		return answered(429, "{}", "Retry-After: "+itoa(int(tokenWait/time.Second)))
	}
	p.tokens++
	return answered(200, fmt.Sprintf(`{"access_token":"%s%d","expires_in":10800,"refresh_token":"%s%d","token_type":"Bearer"}`, rawAccess, p.tokens, rawRefresh, p.tokens))
}

// heal makes the peer answer rightly from now on.
func (p *rawPeer) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script.times, p.script.turns, p.script.deaf = 0, nil, false
}

// scripted reports whether the script answers the nth request of its kind.
func (p *rawPeer) scripted(update bool, nth int) bool {
	s := &p.script
	return s.update == update && nth >= s.from && nth < s.from+s.times
}

// patch carries out and answers one update; false: the connection is over.
func (p *rawPeer) patch(c net.Conn, q rawRequest) bool {
	id := strings.TrimPrefix(q.path, "/v3/lead/")
	p.mu.Lock()
	faulty, script := p.scripted(true, len(p.patches)+1), p.script
	p.patches = append(p.patches, rawPatch{id, q.body, faulty})
	right := p.change(id, q.body, !faulty || script.store)
	p.mu.Unlock()
	if !faulty {
		return say(c, answered(200, right), 0)
	}
	script.act.say = strings.ReplaceAll(script.act.say, rightLead, right)
	return perform(c, &script.act, id, answered(200, right))
}

// rightLead in a script is replaced by the Lead that a right answer to an update has.
const rightLead = "THE-LEAD"

// change returns the Lead after an update as JSON, and stores it if store is set.
func (p *rawPeer) change(id, body string, store bool) string {
	now := rawLead{ID: id, Status: "open", OwnerID: cmp.Or(p.elsewhere, rawOrg), Content: map[string]any{}}
	if old := p.held[id]; old != nil {
		now.Status, now.ExternalID = old.Status, old.ExternalID
		for k, v := range old.Content {
			now.Content[k] = v
		}
	}
	if err := json.Unmarshal([]byte(body), &now); err != nil { // merges Content, as the service does
		panic(err)
	}
	if store {
		p.held[id] = &now
	}
	text, err := json.Marshal(now)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// serveLeads answers as the lead creation application.
func (p *rawPeer) serveLeads(c net.Conn, r *bufio.Reader) {
	for {
		if _, err := r.Peek(1); err != nil {
			return
		}
		if ask, err := r.Peek(4); err == nil && string(ask) == "GET " {
			if !p.get(c, r) {
				return
			}
			continue
		}
		nth, a := p.begin()
		q, err := takeRequest(r)
		if err != nil {
			return
		}
		id := p.create(nth, q)
		right := created(id)
		if p.elsewhere != "" {
			right = answered(201, strings.Replace(createdBody(id), rawOrg, p.elsewhere, 1))
		}
		if !perform(c, &a, id, right) {
			return
		}
	}
}

// get answers a GET, with which the program asks whether the service answers at all.
func (p *rawPeer) get(c net.Conn, r *bufio.Reader) bool {
	_, err := takeRequest(r)
	p.mu.Lock()
	p.gets++
	mute, busy := p.script.deaf, p.script.busyGets > 0 && len(p.posts) >= p.script.from
	if busy {
		p.script.busyGets--
		if p.script.closed && p.script.busyGets == 0 {
			p.script.times = 0
		}
	}
	closed := p.script.closed
	p.mu.Unlock()
	if busy && closed {
		return err == nil && say(c, answered(503, "{}", "Retry-After: 1"), 0)
	}
	if busy {
		return err == nil && say(c, answered(429, "{}", "Retry-After: 1"), 0)
	}
	if mute {
		io.Copy(io.Discard, c)
	}
	return err == nil && !mute && say(c, answered(401, "{}"), 0)
}

// begin counts a create when its first byte is there.
func (p *rawPeer) begin() (nth int, a rawAct) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nth = len(p.posts) + 1
	turn := p.turn(nth)
	p.posts = append(p.posts, rawPost{faulty: turn.faulty, at: time.Now()})
	return nth, turn.act
}

// create notes a create and stores it, unless the script says otherwise.
func (p *rawPeer) create(nth int, q rawRequest) (id string) {
	var body struct {
		Content map[string]any `json:"content"`
		Status  string         `json:"status"`
	}
	whole := json.Unmarshal([]byte(q.body), &body) == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	post := &p.posts[nth-1]
	post.ref, _ = body.Content["importRef"].(string)
	post.stored = whole && (!post.faulty || p.turn(nth).store)
	id = fmt.Sprintf("lead-00000000-%03d", nth)
	if post.stored {
		p.held[id] = &rawLead{ID: id, Status: body.Status, OwnerID: rawOrg, Content: body.Content}
	}
	return id
}

// perform sends what the act says and reports whether the connection stays open.
func perform(c net.Conn, a *rawAct, id, right string) bool {
	text := a.say
	if text == "" && !a.mute {
		text = right
	}
	ok := say(c, strings.ReplaceAll(text, ownID, id), a.pace)
	for a.flood != "" && ok {
		ok = say(c, a.flood, a.pace)
	}
	switch a.end {
	case hold:
		io.Copy(io.Discard, c)
		return false
	case reset:
		if tcp, is := c.(*net.TCPConn); is {
			tcp.SetLinger(0)
		}
		return false
	case hangUp:
		return false
	}
	return ok
}

// say writes a text. With a pace, it writes one byte at a time.
func say(c net.Conn, text string, pace time.Duration) bool {
	if pace == 0 {
		_, err := io.WriteString(c, text)
		return err == nil
	}
	for i := range len(text) {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return false
		}
		time.Sleep(pace)
	}
	return true
}

// created is the right answer to a create.
func created(id string) string {
	return answered(201, createdBody(id))
}

func createdBody(id string) string {
	return fmt.Sprintf(`{"leadID":"%s","assignedOrganizationID":"%s","assignedLocationName":""}`, id, rawOrg)
}

// answered is an answer with its length.
func answered(status int, body string, headers ...string) string {
	text := fmt.Sprintf("HTTP/1.1 %03d Said\r\nContent-Length: %d\r\n", status, len(body))
	for _, h := range headers {
		text += h + "\r\n"
	}
	return text + "\r\n" + body
}

// rawRequest is a request as it came.
type rawRequest struct{ method, path, head, body string }

// takeRequest takes a request whole.
func takeRequest(r *bufio.Reader) (q rawRequest, err error) {
	one := make([]byte, 1)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		if _, err := io.ReadFull(r, one); err != nil {
			return q, err
		}
		head.Write(one)
	}
	q.head = head.String()
	first := strings.Fields(q.head)
	if len(first) < 3 {
		return q, fmt.Errorf("no request: %q", q.head)
	}
	q.method, q.path = first[0], first[1]
	length := 0
	for line := range strings.Lines(q.head) {
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return q, err
			}
		}
	}
	body := make([]byte, length)
	_, err = io.ReadFull(r, body)
	q.body = string(body)
	return q, err
}

// rawDoor is a listener whose connections are each served by one function, in a
// goroutine that the test's end waits for.
type rawDoor struct {
	net.Listener
	wait sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]bool
	accepted int
}

func listenRaw(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	return l
}

func openDoor(t *testing.T, l net.Listener, serve func(net.Conn, *bufio.Reader)) *rawDoor {
	d := &rawDoor{Listener: l, conns: map[net.Conn]bool{}}
	d.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns[c] = true
			d.accepted++
			d.mu.Unlock()
			d.wait.Go(func() {
				defer d.forget(c)
				serve(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(d.close)
	return d
}

func (d *rawDoor) forget(c net.Conn) {
	d.mu.Lock()
	delete(d.conns, c)
	d.mu.Unlock()
	c.Close()
}

// close ends what is served and waits for it.
func (d *rawDoor) close() {
	d.Listener.Close()
	d.mu.Lock()
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.wait.Wait()
}

// visits is how many connections were made.
func (d *rawDoor) visits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.accepted
}

func (d *rawDoor) url() string { return "http://" + d.Addr().String() }
