package importer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// commitTime is how long the twin's commits take.
const commitTime = time.Millisecond

// ledgerTwin keeps in memory what the checkpoint keeps on disk and counts a change
// as durable only after commitTime. It notes what the engine must never do.
type ledgerTwin struct {
	mu      sync.Mutex
	entries map[string]checkpoint.Entry
	intents map[string]checkpoint.Entry
	ids     map[string]string
	queue   chan func()
	done    sync.WaitGroup
	writes  int           // commits so far
	failAt  int           // this commit and all later ones fail; 0: none
	failed  time.Time     // when the first did
	hold    chan struct{} // settlements wait for it; nil: they do not

	slowWithdraw time.Duration
}

var errDisk = errors.New("the disk is full")

func newLedgerTwin() *ledgerTwin {
	l := &ledgerTwin{
		entries: map[string]checkpoint.Entry{}, intents: map[string]checkpoint.Entry{}, ids: map[string]string{},
		queue: make(chan func(), 10000),
	}
	l.done.Go(func() {
		for write := range l.queue {
			time.Sleep(commitTime)
			write()
		}
	})
	return l
}

func (l *ledgerTwin) close() {
	close(l.queue)
	l.done.Wait()
}

func (l *ledgerTwin) Sum(b []byte) (d checkpoint.Digest) {
	copy(d[:], fmt.Sprintf("%x", len(b)))
	for i, c := range b {
		d[i%16] = d[i%16]*31 + c
	}
	return d
}

func (l *ledgerTwin) SumName(name string) (d [4]byte) {
	binary.BigEndian.PutUint32(d[:], crc32.ChecksumIEEE([]byte(name)))
	return d
}

func (l *ledgerTwin) SumValue(name, value string) (d [4]byte) {
	return l.SumName(name + "=" + value)
}

func (l *ledgerTwin) Hurry() {}

func (l *ledgerTwin) Note(checkpoint.Shape) {}

func (l *ledgerTwin) MayLack(*checkpoint.Entry) bool { return false }

func (l *ledgerTwin) Find(qs []checkpoint.Query, out []checkpoint.Entry, how []checkpoint.Match) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range qs {
		out[i], how[i] = l.find(q)
		out[i].Content = slices.Clone(out[i].Content)
	}
	return nil
}

func (l *ledgerTwin) find(q checkpoint.Query) (checkpoint.Entry, checkpoint.Match) {
	if in, ok := l.intents[q.Key]; ok {
		return in, checkpoint.ByKey
	}
	own, owner := l.entries[q.Key], l.ids[q.LeadID]
	own.Key = q.Key
	switch {
	case own.State == checkpoint.Created || own.State == checkpoint.Partial:
		if owner != "" && owner != q.Key {
			return own, checkpoint.Ambiguous
		}
		return own, checkpoint.ByKey
	case own.State == checkpoint.Forgotten:
		return own, checkpoint.ByKey
	case owner != "":
		return l.entries[owner], checkpoint.ByLeadID
	}
	var linked []checkpoint.Entry
	for _, e := range l.entries {
		if q.ExternalID != "" && e.ExternalID == q.ExternalID {
			linked = append(linked, e)
		}
	}
	switch {
	case len(linked) == 0:
		return own, checkpoint.NoMatch
	case len(linked) > 1 || q.LeadID != "":
		return own, checkpoint.Ambiguous
	}
	return linked[0], checkpoint.ByExternalID
}

func (l *ledgerTwin) Mark(e checkpoint.Entry, done func(checkpoint.Entry, error)) {
	l.queue <- func() {
		err := l.commit(func() {
			known, ok := l.entries[e.Key]
			if !ok {
				known, l.ids[e.LeadID] = e, e.Key
			}
			known.Unsettled, known.Sought = e.Unsettled, e.Sought
			known.Content = slices.Clone(known.Content)
			l.entries[e.Key], e = known, known
		})
		done(e, err)
	}
}

// commit makes a change durable, or fails.
func (l *ledgerTwin) commit(change func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.failAt > 0 && l.writes >= l.failAt {
		if l.failed.IsZero() {
			l.failed = time.Now()
		}
		return errDisk
	}
	change()
	return nil
}

func (l *ledgerTwin) Claim(in checkpoint.Intent, done func(error)) {
	l.queue <- func() {
		done(l.commit(func() {
			l.intents[in.Key] = checkpoint.Entry{Key: in.Key, State: checkpoint.InDoubt, Digest: in.Digest, WantLink: in.ExternalID, Updated: in.Sent}
		}))
	}
}

func (l *ledgerTwin) Withdraw(key string, done func(error)) {
	l.queue <- func() {
		time.Sleep(l.slowWithdraw)
		done(l.commit(func() { delete(l.intents, key) }))
	}
}

func (l *ledgerTwin) Settle(e checkpoint.Entry, done func(checkpoint.Entry, error)) {
	l.queue <- func() {
		if l.hold != nil {
			<-l.hold
		}
		err := l.commit(func() {
			if owner, taken := l.ids[e.LeadID]; e.LeadID != "" && taken && owner != e.Key {
				e = checkpoint.Entry{Key: e.Key, State: checkpoint.InDoubt, Reason: checkpoint.ReasonLeadTaken}
			}
			if e.State == checkpoint.InDoubt {
				l.intents[e.Key] = e
				return
			}
			delete(l.intents, e.Key)
			l.entries[e.Key] = e
			if e.LeadID != "" {
				l.ids[e.LeadID] = e.Key
			}
		})
		done(e, err)
	}
}

func (l *ledgerTwin) failedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *ledgerTwin) claimed(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.intents[key]
	return ok
}

func (l *ledgerTwin) state(key string) checkpoint.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.intents[key]; ok {
		return checkpoint.InDoubt
	}
	return l.entries[key].State
}

// serviceTwin answers each create by the row's name and keeps a ledger of its own.
type serviceTwin struct {
	mu       sync.Mutex
	delay    time.Duration
	answer   func(name string, n int) error // nil: accepted; n counts the sends of this row from 1
	sends    map[string]int
	inFlight map[string]int
	order    []string // names in the order in which they were accepted
	arrive   func(key string)
	update   func(id string)
	unlinked func() error // nil: updates are accepted
	clash    bool         // two requests of one key at once
}

func newServiceTwin() *serviceTwin {
	return &serviceTwin{delay: 20 * time.Millisecond, sends: map[string]int{}, inFlight: map[string]int{}}
}

func (s *serviceTwin) Create(ctx context.Context, r *leadapi.CreateRequest) (*leadapi.Created, error) {
	name, key := r.Content[0].Value, r.Content[1].Value
	s.mu.Lock()
	s.sends[name]++
	n := s.sends[name]
	s.inFlight[key]++
	s.clash = s.clash || s.inFlight[key] > 1
	s.mu.Unlock()
	if s.arrive != nil {
		s.arrive(key)
	}
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight[key]--
	if s.answer != nil {
		if err := s.answer(name, n); err != nil {
			return nil, err
		}
	}
	s.order = append(s.order, name)
	return &leadapi.Created{LeadID: "lead-" + name, OrganizationID: r.OrganizationID, Status: 201}, nil
}

func (s *serviceTwin) Update(_ context.Context, id string, r *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	if s.update != nil {
		s.update(id)
	}
	time.Sleep(s.delay)
	if s.unlinked != nil {
		if err := s.unlinked(); err != nil {
			return nil, err
		}
	}
	return &leadapi.Lead{ID: id, ExternalID: *r.ExternalID, Status: "open"}, nil
}

// records keeps what the engine shows of rows.
type records struct {
	lines []line
	see   func(*item, *result)
}

func (r *records) add(it *item, res *result) error {
	r.lines = append(r.lines, line{it, *res})
	if r.see != nil {
		r.see(it, res)
	}
	return nil
}

const twinMapping = `version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead:
  type_key: t
  type_label: T
  content: {name: "{name}", id: "{id}"}
`

// trial is an engine over a file of rows, with twins on both sides.
type trial struct {
	*engine
	ledger  *ledgerTwin
	service *serviceTwin
	records *records
}

// newTrial makes an engine for rows of "id,name".
func newTrial(t testing.TB, rows []string, o Options) *trial {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leads.csv")
	text := "id,name,org\n"
	for _, r := range rows {
		text += r + ",o-1\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := source.Open(path, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if o.Mapping, err = mapping.Parse("twin.yaml", []byte(twinMapping)); err != nil {
		t.Fatal(err)
	}
	o.Inputs, o.Log = []*source.File{f}, slog.New(slog.NewTextHandler(io.Discard, nil))
	o.Concurrency, o.MaxWait = max(o.Concurrency, 1), time.Hour
	tr := &trial{ledger: newLedgerTwin(), service: newServiceTwin(), records: &records{}}
	e := newEngine(o, importPlanner{})
	if err := e.rows.bind(); err != nil {
		t.Fatal(err)
	}
	e.sender, e.recorder = tr.service, tr.records
	e.keepIn(tr.ledger)
	tr.engine = e
	return tr
}

// remap adds lines to the mapping.
func (tr *trial) remap(t testing.TB, lines string) {
	t.Helper()
	m, err := mapping.Parse("twin.yaml", []byte(twinMapping+lines))
	if err != nil {
		t.Fatal(err)
	}
	tr.rows.mapping, tr.rows.names = m, nil
	if err := tr.rows.bind(); err != nil {
		t.Fatal(err)
	}
}

// run runs the engine and the ledger to their end.
func (tr *trial) run(ctx context.Context) {
	tr.engine.run(ctx)
	tr.ledger.close()
}

// numbered is n rows with keys and names of their own.
func numbered(n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("k%03d,n%03d", i, i)
	}
	return rows
}

func (tr *trial) outcomes() string {
	var b strings.Builder
	for o, n := range tr.tally.outcomes {
		if n > 0 {
			fmt.Fprintf(&b, "%s %d ", Outcome(o), n)
		}
	}
	return strings.TrimSpace(b.String())
}

// linker answers every update alike.
type linker struct {
	lead leadapi.Lead
	err  error
}

func (l linker) Create(context.Context, *leadapi.CreateRequest) (*leadapi.Created, error) {
	return nil, errors.New("nothing is to be created")
}

func (l linker) Update(context.Context, string, *leadapi.UpdateRequest) (*leadapi.Lead, error) {
	return &l.lead, l.err
}
