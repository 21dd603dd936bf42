package importer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// remote is the service's side: its leads, and what it last answered about each.
type remote struct {
	mu       sync.Mutex
	delay    time.Duration
	leads    map[string]*leadapi.Lead
	answered map[string]leadapi.Lead   // as the last answer that arrived showed it
	checked  map[string]leadapi.Lead   // as an answer without news showed it since
	ever     map[string][]leadapi.Lead // as each answer showed it, whether or not it arrived
	madeFor  map[string]string         // lead → key of the row that it was made of
	patches  []patch
	creates  int
	inFlight map[string]int
	clash    bool
	dead     bool // nothing arrives any more
	fate     func(op, id string) string
	arrive   func(op, id string)
}

// patch is an update that arrived.
type patch struct{ id, body string }

func newRemote() *remote {
	return &remote{
		delay: 10 * time.Millisecond, leads: map[string]*leadapi.Lead{}, answered: map[string]leadapi.Lead{}, checked: map[string]leadapi.Lead{}, ever: map[string][]leadapi.Lead{}, madeFor: map[string]string{}, inFlight: map[string]int{},
	}
}

// The fates of a request: "" is answered well; "lost" is applied without an answer,
// "silent" is neither; a number is a status, not applied; "500-stored" is applied;
// "other-id", "other-status", "other-content" and "no-content" answer so.
func (s *remote) serve(op, id string, news func() bool, apply func() *leadapi.Lead) (leadapi.Lead, error) {
	s.mu.Lock()
	s.inFlight[id]++
	s.clash = s.clash || s.inFlight[id] > 1
	arrive, fate, dead := s.arrive, "", s.dead
	if s.fate != nil {
		fate = s.fate(op, id)
	}
	s.mu.Unlock()
	if arrive != nil {
		arrive(op, id)
	}
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight[id]--
	if dead || s.dead && fate == "silent" {
		return leadapi.Lead{}, silence(op)
	}
	var status int
	if _, err := fmt.Sscanf(fate, "%d", &status); err == nil && !strings.HasSuffix(fate, "-stored") {
		return leadapi.Lead{}, refusedWith(op, status)
	}
	if fate == "silent" {
		return leadapi.Lead{}, silence(op)
	}
	told := news()
	lead := *apply()
	lead.HasExternal = true
	lead.Content = maps.Clone(lead.Content)
	shown := lead
	shown.Content = maps.Clone(lead.Content)
	s.ever[lead.ID] = append(s.ever[lead.ID], shown)
	if s.dead || fate == "lost" {
		return leadapi.Lead{}, silence(op)
	}
	if status != 0 {
		return leadapi.Lead{}, refusedWith(op, status)
	}
	switch {
	case fate == "other-id":
	case told:
		s.answered[lead.ID] = lead
		delete(s.checked, lead.ID)
	default:
		s.checked[lead.ID] = lead
	}
	switch fate {
	case "other-id":
		lead.ID = "lead-of-another"
	case "other-status":
		lead.Status = "closedBoughtOtherBrand"
	case "other-external":
		lead.ExternalID = "nobody"
	case "other-content":
		lead.Content["name"] = jsontext.Value(`"Nobody"`)
	case "no-content":
		lead.Content = nil
	}
	return lead, nil
}

func silence(op string) error {
	return &leadapi.Error{Op: op, Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
}

func refusedWith(op string, status int) error {
	e := &leadapi.Error{Op: op, Status: status, Message: "no", Reason: leadapi.ReasonRefused}
	switch {
	case status >= 500:
		e.Applied, e.Reason = leadapi.Maybe, leadapi.ReasonServerError
	case status == 429:
		e.Reason = leadapi.ReasonThrottled
	}
	return e
}

func (s *remote) Create(_ context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	ref := ""
	for _, f := range r.Content {
		if f.Key == "ref" {
			ref = f.Value
		}
	}
	lead, err := s.serve("create", "new "+ref, func() bool { return true }, func() *leadapi.Lead {
		s.creates++
		l := &leadapi.Lead{ID: fmt.Sprintf("lead-%04d", s.creates), Status: r.Status, OwnerID: r.OrganizationID, Content: map[string]jsontext.Value{}}
		if l.Status == "" {
			l.Status = "open"
		}
		setContent(l, r.Content)
		s.leads[l.ID], s.madeFor[l.ID] = l, ref
		return l
	})
	if err != nil {
		return nil, err
	}
	return &leadapi.Created{LeadID: lead.ID, OrganizationID: lead.OwnerID, Status: 201}, nil
}

func (s *remote) Update(_ context.Context, id string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	s.mu.Lock()
	known := s.leads[id] != nil
	s.patches = append(s.patches, patch{id, string(r.AppendJSON(nil))})
	s.mu.Unlock()
	if !known {
		return nil, refusedWith("update", 404)
	}
	news := func() bool {
		return r.Status != nil || len(r.Content) > 0 || r.ExternalID != nil && *r.ExternalID != s.leads[id].ExternalID
	}
	lead, err := s.serve("update", id, news, func() *leadapi.Lead {
		l := s.leads[id]
		if r.Status != nil {
			l.Status = *r.Status
		}
		if r.ExternalID != nil {
			l.ExternalID = *r.ExternalID
		}
		setContent(l, r.Content)
		return l
	})
	if err != nil {
		return nil, err
	}
	return &lead, nil
}

func setContent(l *leadapi.Lead, fields []leadapi.ContentField) {
	for _, f := range fields {
		value := jsontext.Value(f.Value)
		if !f.Literal {
			value, _ = jsontext.AppendQuote(nil, f.Value)
		}
		l.Content[f.Key] = value
	}
}

// console changes a lead's status as a person does.
func (s *remote) console(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads[id].Status = status
}

func (s *remote) lead(id string) leadapi.Lead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.leads[id]
}

// sent gives the updates that arrived since it was asked last, one a line, and reads as such.
func (s *remote) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, p := range s.patches {
		b.WriteString(p.id + " " + strings.Replace(p.body, `{"Content":{}}`, "read", 1) + "\n")
	}
	s.patches = nil
	return b.String()
}

const pairMapping = `version: 1
key: "{id}"
lead_id: "{lead}"
assign: [{organization: "org-1"}]
lead:
  type_key: t
  type_label: T
  external_id: "{ext}"
  status: "{status}"
  content: {name: "{name}", phone: "{phone}", ref: "{@key}", line: "{@line}"}
`

// pair is a checkpoint and a service over several runs.
type pair struct {
	t       testing.TB
	errorf  func(format string, args ...any) // tells what is not as it should be
	dir     string
	store   *fileStore
	db      *checkpoint.Ledger
	service *remote
	runs    int
}

func newPair(t testing.TB, dir string) *pair {
	p := &pair{t: t, errorf: t.Errorf, dir: dir, store: newFileStore(t), service: newRemote()}
	p.open()
	return p
}

func (p *pair) open() { p.db = checkpoint.NewLedger(p.store, checkpoint.Gathering{Slots: 6}) }

// ended is a run that is over.
type ended struct {
	*run
	lines []line
}

func (r *ended) outcomes() string { return (&trial{run: r.run}).outcomes() }

// text is how the row with this key ended, and why.
func (r *ended) text(key string) string {
	for _, l := range r.lines {
		if l.it.rec.Key == key {
			return l.r.outcome.String() + ": " + l.r.text
		}
	}
	return "no such row"
}

// run runs an import or a sync over rows of "id,lead,ext,status,name,phone".
func (p *pair) run(command string, o Options, rows ...string) *ended {
	p.runs++
	file := filepath.Join(p.dir, fmt.Sprintf("rows-%d.csv", p.runs))
	text := "id,lead,ext,status,name,phone\n" + strings.Join(rows, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	f, err := source.Open(file, source.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	if o.Mapping == nil {
		if o.Mapping, err = mapping.Parse("pair.yaml", []byte(pairMapping), nil); err != nil {
			p.t.Fatal(err)
		}
	}
	o.Inputs, o.Log = []*source.File{f}, slog.New(slog.NewTextHandler(io.Discard, nil))
	o.Concurrency, o.RunID = max(o.Concurrency, 4), fmt.Sprintf("run-%d", p.runs)
	if o.MaxWait == 0 {
		o.MaxWait = time.Hour
	}
	e := newImport(o)
	switch command {
	case "sync":
		e = newSync(o)
	case "reconcile":
		e = newReconcile(o)
	}
	if err := e.intake.bind(); err != nil {
		p.t.Fatal(err)
	}
	rec := &records{}
	e.keepIn(p.db)
	e.sender, e.recorder = p.service, rec
	e.retrier.Reach = func(context.Context) error { return nil }
	if e.drift != nil {
		if err := e.prepareReconciliation(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
	}
	e.takeRows(p.t.Context())
	e.findAbsent(p.t.Context(), nil)
	return &ended{e, rec.lines}
}

// known is the checkpoint's entry of a key.
func (p *pair) known(key string) checkpoint.Entry {
	out := make([]checkpoint.Entry, 1)
	if err := p.db.Find(p.t.Context(), []checkpoint.Query{{Key: key}}, out, make([]checkpoint.Match, 1)); err != nil {
		p.t.Fatal(err)
	}
	return out[0]
}
