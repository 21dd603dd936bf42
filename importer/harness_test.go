package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// remote is a service in memory. Its hooks may be nil.
type remote struct {
	mu       sync.Mutex
	delay    time.Duration
	leads    map[string]*leadapi.Lead
	answered map[string]leadapi.Lead   // by ID, as the last answer to a change showed it
	checked  map[string]leadapi.Lead   // by ID, as the last answer to a read showed it since
	ever     map[string][]leadapi.Lead // by ID, as each answer showed it, even if it did not arrive
	madeFor  map[string]string         // key of the row that a lead was made of, by its ID
	patches  []string                  // updates that arrived: lead and body
	sends    map[string]int            // creates that arrived, by name
	ids      map[string][]string       // their request IDs, by key
	order    []string                  // names, as their leads were made
	inFlight map[string]int
	clash    bool                           // two requests of one lead were in flight at once
	dead     bool                           // nothing arrives any more
	named    bool                           // a lead has its name in its ID
	arrive   func(key string)               // a create arrives
	answer   func(name string, n int) error // to the nth create of this name; nil: accepted
	update   func(id string) error          // an update arrives; the error is the answer
	meet     func(op, id string)            // any request arrives
	fate     func(op, id string) string
}

func newRemote() *remote {
	return &remote{
		delay: 10 * time.Millisecond, leads: map[string]*leadapi.Lead{}, answered: map[string]leadapi.Lead{},
		checked: map[string]leadapi.Lead{}, ever: map[string][]leadapi.Lead{}, madeFor: map[string]string{},
		inFlight: map[string]int{}, sends: map[string]int{}, ids: map[string][]string{},
	}
}

// serve ends a request by its fate: "" is applied and answered; "lost" is applied only; "silent" is neither. A number
// is a status and not applied, "500-stored" is applied too. "no-content" and "other-..." answer with a wrong lead.
func (s *remote) serve(op, id string, arrive func(), answer func() error, news func() bool, apply func() *leadapi.Lead) (lead leadapi.Lead, err error) {
	s.mu.Lock()
	s.inFlight[id]++
	s.clash = s.clash || s.inFlight[id] > 1
	meet, fate, dead := s.meet, "", s.dead
	if s.fate != nil {
		fate = s.fate(op, id)
	}
	s.mu.Unlock()
	if meet != nil {
		meet(op, id)
	}
	arrive()
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight[id]--
	if err := answer(); err != nil {
		return lead, err
	}
	silence := &leadapi.Error{Op: op, Applied: leadapi.Maybe, Reason: leadapi.ReasonTimeout, Message: "no answer in time"}
	var status int
	_, _ = fmt.Sscanf(fate, "%d", &status)
	switch {
	case dead || fate == "silent":
		return lead, silence
	case status != 0 && !strings.HasSuffix(fate, "-stored"):
		return lead, refusedWith(op, status)
	}
	told := news()
	lead = *apply()
	lead.HasExternal = true
	shown := lead
	lead.Content, shown.Content = maps.Clone(lead.Content), maps.Clone(lead.Content)
	s.ever[lead.ID] = append(s.ever[lead.ID], shown)
	switch {
	case s.dead || fate == "lost":
		return lead, silence
	case status != 0:
		return lead, refusedWith(op, status)
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

// refusedWith is an answer with a status. From 500 on, and with 3xx, it may have been applied.
func refusedWith(op string, status int) error {
	e := &leadapi.Error{Op: op, Status: status, Message: "no", Reason: leadapi.ReasonRefused}
	switch {
	case status >= 500, status/100 == 3:
		e.Applied, e.Reason = leadapi.Maybe, leadapi.ReasonServerError
	case status == 429:
		e.Reason = leadapi.ReasonThrottled
	}
	return e
}

// How a create may end without an answer.
var (
	unsent = &leadapi.Error{Op: "create", Applied: leadapi.No, Reason: "connect"}
	broken = &leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: "no_answer"}
)

func httpError(status int) error { return refusedWith("create", status) }

func (*remote) SignIn(context.Context) error { return nil }

func (s *remote) Create(_ context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	of := map[string]string{}
	for _, f := range r.Content {
		of[f.Key] = f.Value
	}
	name, key, n := of["name"], of["ref"], 0
	arrive := func() {
		s.mu.Lock()
		s.sends[name]++
		n, s.ids[key] = s.sends[name], append(s.ids[key], r.RequestID)
		s.mu.Unlock()
		if s.arrive != nil {
			s.arrive(key)
		}
	}
	answer := func() error {
		if s.answer == nil {
			return nil
		}
		return s.answer(name, n)
	}
	lead, err := s.serve("create", "new "+key, arrive, answer, func() bool { return true }, func() *leadapi.Lead {
		s.order = append(s.order, name)
		l := &leadapi.Lead{ID: fmt.Sprintf("lead-%04d", len(s.order)), Status: cmp.Or(r.Status, "open"), OwnerID: r.OrganizationID, Content: map[string]jsontext.Value{}}
		if s.named {
			l.ID = "lead-" + name
		}
		setContent(l, r.Content)
		s.leads[l.ID], s.madeFor[l.ID] = l, key
		return l
	})
	if err != nil {
		return nil, err
	}
	return &leadapi.Created{LeadID: lead.ID, OrganizationID: lead.OwnerID, HTTPStatus: 201}, nil
}

func (s *remote) Update(_ context.Context, id string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	s.mu.Lock()
	known := s.leads[id] != nil
	s.patches = append(s.patches, id+" "+string(r.AppendJSON(nil)))
	s.mu.Unlock()
	if !known {
		return nil, refusedWith("update", 404)
	}
	var refused error
	arrive := func() {
		if s.update != nil {
			refused = s.update(id)
		}
	}
	news := func() bool {
		return r.Status != nil || len(r.Content) > 0 || r.ExternalID != nil && *r.ExternalID != s.leads[id].ExternalID
	}
	lead, err := s.serve("update", id, arrive, func() error { return refused }, news, func() *leadapi.Lead {
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

// typed changes what a lead holds as a person does in the console.
func (s *remote) typed(id, field, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads[id] == nil { // somebody else made it
		s.leads[id] = &leadapi.Lead{ID: id, Content: map[string]jsontext.Value{}}
	}
	s.change(id, field, value)
}

func (s *remote) change(id, field, value string) {
	switch l := s.leads[id]; field {
	case "Status":
		l.Status = value
	case "ExternalID":
		l.ExternalID = value
	default:
		l.Content[field] = jsontext.Value(value)
	}
}

func (s *remote) lead(id string) leadapi.Lead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.leads[id]
}

// sent returns the updates that arrived since its last call, one a line, with "read" for a read.
func (s *remote) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, p := range s.patches {
		b.WriteString(strings.Replace(p, `{"Content":{}}`, "read", 1) + "\n")
	}
	s.patches = nil
	return b.String()
}

// fileStore is a checkpoint in a file that is never synced to disk.
type fileStore struct {
	checkpoint.Store
	t    testing.TB
	path string
	// Refuse may be nil. It sees each change before its commit, and its error refuses the change.
	Refuse func(c *checkpoint.Change) error
	mu     sync.Mutex // held during a commit
}

func newFileStore(t testing.TB) *fileStore {
	return openFileStore(t, filepath.Join(t.TempDir(), "c.db"))
}

func openFileStore(t testing.TB, path string) *fileStore {
	t.Helper()
	target := checkpoint.Target{BaseURL: "https://a.example.com", LeadsURL: "https://leads.example.com", TrunkID: "trunk"}
	s, err := bolt.Open(path, target, bolt.Options{AnyPlace: true, Unsynced: true})
	must.Do(t, err)
	t.Cleanup(func() { s.Close() })
	return &fileStore{Store: s, t: t, path: path}
}

func (s *fileStore) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var good []*checkpoint.Change
	for _, c := range changes {
		if s.Refuse != nil {
			c.Err = s.Refuse(c)
		}
		if c.Err == nil {
			good = append(good, c)
		}
	}
	return s.Store.Commit(ctx, good)
}

// killed copies the file as a process that is killed now leaves it.
func (s *fileStore) killed() (path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := os.ReadFile(s.path)
	if err == nil {
		err = os.WriteFile(s.path+".killed", data, 0o600)
	}
	must.Do(s.t, err)
	return s.path + ".killed"
}

// entryOf is what a store knows of a key.
func entryOf(t testing.TB, s checkpoint.Store, key string) checkpoint.Entry {
	var e checkpoint.Entry
	if err := s.Find(context.Background(), []checkpoint.Query{{Key: key, Entry: &e}}); err != nil {
		t.Error(err)
	}
	return e
}

// commitTime is how long the twin's commits take.
const commitTime = time.Millisecond

// ledgerTwin is a checkpoint whose commits take commitTime and may be made to fail.
type ledgerTwin struct {
	*fileStore
	mu     sync.Mutex
	writes int           // changes so far
	failAt int           // this change and all later ones fail; 0: none
	failed time.Time     // when the first change failed
	hold   chan struct{} // settlements wait for it; nil: they do not

	slowWithdraw time.Duration
}

var errDisk = errors.New("the disk is full")

func newLedgerTwin(t testing.TB) *ledgerTwin { return &ledgerTwin{fileStore: newFileStore(t)} }

// Commit makes changes durable, or fails.
func (l *ledgerTwin) Commit(ctx context.Context, changes []*checkpoint.Change) error {
	for _, c := range changes {
		switch {
		case c.Kind == checkpoint.Withdraw:
			time.Sleep(l.slowWithdraw)
		case c.Kind == checkpoint.Settle && l.hold != nil:
			<-l.hold
		}
	}
	time.Sleep(commitTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes += len(changes)
	if l.failAt > 0 && l.writes >= l.failAt {
		if l.failed.IsZero() {
			l.failed = time.Now()
		}
		return errDisk
	}
	return l.fileStore.Commit(ctx, changes)
}

// Close does nothing, so that a test can still read the ledger.
func (l *ledgerTwin) Close() error { return nil }

func (l *ledgerTwin) failedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// settle stores outcomes of earlier runs.
func (l *ledgerTwin) settle(t testing.TB, entries ...checkpoint.Entry) {
	t.Helper()
	var changes []*checkpoint.Change
	for _, e := range entries {
		changes = append(changes, &checkpoint.Change{Kind: checkpoint.Settle, Entry: e})
	}
	must.Do(t, l.fileStore.Commit(t.Context(), changes))
}

func (l *ledgerTwin) state(key string) checkpoint.State { return entryOf(l.t, l, key).State }

// records keeps what the engine shows of rows.
type records struct {
	lines []*item
	see   func(*item)
}

func (r *records) add(it *item) error {
	r.lines = append(r.lines, it)
	if r.see != nil {
		r.see(it)
	}
	return nil
}

func parsed(t must.TB, text string) *mapping.Mapping {
	m, err := mapping.Parse("m.yaml", []byte(text), nil)
	must.Do(t, err)
	return m
}

// trial is a run over a file of rows, with a fake ledger and a fake service.
type trial struct {
	*run
	*records
	ledger  *ledgerTwin // of newTrial
	service *remote
}

// started prepares the run of a command over a file. The engine's carryAll does it.
func started(t testing.TB, command, path, text string, o Options, service *remote) *trial {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	o.Inputs, o.Log = []*source.File{opened(t, path, source.Options{})}, slog.New(slog.DiscardHandler)
	o.MaxWait, o.ResendOn = cmp.Or(o.MaxWait, time.Hour), map[int]bool{429: true}
	o.Command = command
	tr := &trial{run: newRun(o), records: &records{}, service: service}
	must.Do(t, tr.intake.bind())
	tr.sender, tr.handOver = service, tr.records.add
	tr.breaker.Reach = func(context.Context) error { return nil }
	return tr
}

const twinMapping = `version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead:
  type_key: t
  type_label: T
  content: {name: "{name}", ref: "{id}"}
`

// newTrial makes an import of rows of "id,name".
func newTrial(t testing.TB, rows []string, o Options) *trial {
	t.Helper()
	o.Mapping, o.Concurrency = parsed(t, twinMapping), max(o.Concurrency, 1)
	text := "id,name,org\n" + strings.Join(rows, ",o-1\n") + ",o-1\n"
	tr := started(t, "import", filepath.Join(t.TempDir(), "leads.csv"), text, o, newRemote())
	tr.ledger, tr.service.named, tr.service.delay = newLedgerTwin(t), true, 20*time.Millisecond
	tr.keepIn(checkpoint.NewLedger(tr.ledger, checkpoint.Gathering{Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency}))
	return tr
}

// tried runs f with a newTrial in its own synctest bubble.
func tried(t *testing.T, rows []string, o Options, f func(t *testing.T, tr *trial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newTrial(t, rows, o)) })
}

// remap adds lines to the mapping.
func (tr *trial) remap(t testing.TB, lines string) {
	t.Helper()
	tr.Mapping, tr.intake.paths = parsed(t, twinMapping+lines), nil
	must.Do(t, tr.intake.bind())
}

// keepIn gives the run another ledger.
func (tr *trial) keepIn(l *checkpoint.Ledger) {
	if tr.run.ledger != nil {
		tr.run.ledger.Close()
	}
	tr.run.keepIn(l)
}

// carry takes all rows to their outcome and closes the ledger.
func (tr *trial) carry(ctx context.Context) {
	e := newEngine(ctx, tr.run)
	end := tr.run.member.start(ctx, e)
	e.carryAll()
	end()
	tr.run.ledger.Close()
}

// ends carries out the run and compares its outcomes.
func (tr *trial) ends(t *testing.T, want string) {
	t.Helper()
	if tr.carry(t.Context()); tr.outcomes() != want {
		t.Errorf("%s, want %s", tr.outcomes(), want)
	}
}

// ending is the outcome of the run and its exit code.
func (tr *trial) ending() (outcome string, code int) {
	s := tr.run.soFar()
	tr.run.setOutcome(s)
	return s.Outcome, s.ExitCode
}

func (tr *trial) outcomes() string {
	var list []string
	for o := range Pending + 1 {
		if n := *tr.tally.counts.Of(o); n > 0 {
			list = append(list, fmt.Sprint(o, " ", n))
		}
	}
	return strings.Join(list, " ")
}

// text is how the row with this key ended, and why.
func (tr *trial) text(key string) string {
	for _, l := range tr.lines {
		if l.rec.Key == key {
			return l.outcome.String() + ": " + l.text
		}
	}
	return "no such row"
}

// numbered returns n rows, each with its own key and name.
func numbered(n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("k%03d,n%03d", i, i)
	}
	return rows
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
	errorf  func(format string, args ...any) // reports a mistake
	dir     string
	store   *fileStore
	db      *checkpoint.Ledger
	service *remote
	runs    int
}

// paired runs f with a new pair in its own synctest bubble.
func paired(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{t: t, errorf: t.Errorf, dir: t.TempDir(), store: newFileStore(t), service: newRemote()}
		p.open()
		defer func() { p.db.Close() }()
		f(t, p)
		if p.service.clash {
			p.errorf("two requests of one lead were in flight at once")
		}
	})
}

// drawn is paired for rapid. It returns the mistakes, so that the caller can show them with what was drawn.
func drawn(t *testing.T, f func(p *pair)) (faults []string) {
	paired(t, func(_ *testing.T, p *pair) {
		p.errorf = func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
		f(p)
	})
	return faults
}

func (p *pair) open() { p.db = checkpoint.NewLedger(p.store, checkpoint.Gathering{Slots: 6}) }

// run runs a command over rows of "id,lead,ext,status,name,phone".
func (p *pair) run(command string, o Options, rows ...string) *trial {
	p.runs++
	if o.Mapping == nil {
		o.Mapping = parsed(p.t, pairMapping)
	}
	o.Concurrency, o.RunID = max(o.Concurrency, 4), fmt.Sprintf("run-%d", p.runs)
	text := "id,lead,ext,status,name,phone\n" + strings.Join(rows, "\n") + "\n"
	tr := started(p.t, command, filepath.Join(p.dir, o.RunID+".csv"), text, o, p.service)
	tr.keepIn(p.db)
	if tr.drift != nil {
		must.Do(p.t, tr.prepareReconciliation(p.t.Context()))
	}
	newEngine(p.t.Context(), tr.run).carryAll()
	tr.findAbsent(p.t.Context(), &writer{files: new(report.Run)})
	return tr
}

// known is the checkpoint's entry of a key.
func (p *pair) known(key string) checkpoint.Entry { return entryOf(p.t, p.db.Store, key) }

func (p *pair) must(want string, r *trial) *trial {
	p.t.Helper()
	if got := r.outcomes(); got != want {
		p.t.Errorf("%s, want %s", got, want)
	}
	return r
}

func opened(t testing.TB, name string, o source.Options) *source.File {
	t.Helper()
	f, err := source.Open(name, o)
	must.Do(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
