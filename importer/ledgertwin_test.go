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

// ledgerTwin is a checkpoint whose commits take commitTime, and fail when they
// are told to. It notes what the engine must never do.
type ledgerTwin struct {
	*fileStore
	mu     sync.Mutex
	writes int           // changes so far
	failAt int           // this change and all later ones fail; 0: none
	failed time.Time     // when the first did
	hold   chan struct{} // settlements wait for it; nil: they do not

	slowWithdraw time.Duration
}

var errDisk = errors.New("the disk is full")

func newLedgerTwin(t testing.TB) *ledgerTwin {
	return &ledgerTwin{fileStore: newFileStore(t)}
}

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

// Close leaves it open for those who look what it knows.
func (l *ledgerTwin) Close() error { return nil }

func (l *ledgerTwin) failedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// settle puts outcomes of earlier runs into the twin.
func (l *ledgerTwin) settle(t testing.TB, entries ...checkpoint.Entry) {
	t.Helper()
	var changes []*checkpoint.Change
	for _, e := range entries {
		changes = append(changes, &checkpoint.Change{Kind: checkpoint.Settle, Entry: e})
	}
	if err := l.fileStore.Commit(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

func (l *ledgerTwin) state(key string) checkpoint.State {
	out := make([]checkpoint.Entry, 1)
	if err := l.Find(context.Background(), []checkpoint.Query{{Key: key}}, out, make([]checkpoint.Match, 1)); err != nil {
		panic(err)
	}
	return out[0].State
}

// twinSums are digests that depend on all that they are made of.
type twinSums struct{}

func (twinSums) Sum(b []byte) (d checkpoint.Digest) {
	copy(d[:], fmt.Sprintf("%x", len(b)))
	for i, c := range b {
		d[i%16] = d[i%16]*31 + c
	}
	return d
}

func (twinSums) SumName(name string) (d [4]byte) {
	binary.BigEndian.PutUint32(d[:], crc32.ChecksumIEEE([]byte(name)))
	return d
}

func (s twinSums) SumValue(name, value string) (d [4]byte) { return s.SumName(name + "=" + value) }

// serviceTwin answers each create by the row's name and keeps a ledger of its own.
type serviceTwin struct {
	mu       sync.Mutex
	delay    time.Duration
	answer   func(name string, n int) error // nil: accepted; n counts the sends of this row from 1
	sends    map[string]int
	inFlight map[string]int
	order    []string // names in the order in which they were accepted
	arrive   func(key string)
	see      func(key string, r *leadapi.CreateRequest)
	update   func(id string)
	unlinked func() error // nil: updates are accepted
	clash    bool         // two requests of one key at once
}

// What a service may answer.
var (
	unsent = &leadapi.Error{Op: "create", Applied: leadapi.No, Reason: "connect"}
	broken = &leadapi.Error{Op: "create", Applied: leadapi.Maybe, Reason: "no_answer"}
)

// httpError is the answer to a create with a status: a refusal says that it was not applied.
func httpError(code int) *leadapi.Error {
	if code == 0 || code/100 == 4 { // 0: by the client itself
		return &leadapi.Error{Op: "create", Status: code, Applied: leadapi.No, Reason: "refused"}
	}
	return &leadapi.Error{Op: "create", Status: code, Applied: leadapi.Maybe}
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
	if s.see != nil {
		s.see(key, r)
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
	*run
	ledger  *ledgerTwin
	service *serviceTwin
	records *records
}

// newTrial makes an engine for rows of "id,name".
func newTrial(t testing.TB, rows []string, o Options) *trial {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leads.csv")
	var text strings.Builder
	text.WriteString("id,name,org\n")
	for _, r := range rows {
		text.WriteString(r + ",o-1\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := source.Open(path, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if o.Mapping, err = mapping.Parse("twin.yaml", []byte(twinMapping), nil); err != nil {
		t.Fatal(err)
	}
	o.Inputs, o.Log = []*source.File{f}, slog.New(slog.NewTextHandler(io.Discard, nil))
	o.Concurrency, o.MaxWait = max(o.Concurrency, 1), time.Hour
	tr := &trial{ledger: newLedgerTwin(t), service: newServiceTwin(), records: &records{}}
	e := newImport(o)
	if err := e.intake.bind(); err != nil {
		t.Fatal(err)
	}
	e.sender, e.recorder = tr.service, tr.records
	e.retrier.Reach = func(context.Context) error { return nil }
	tr.run = e
	tr.keepIn(checkpoint.NewLedger(tr.ledger, checkpoint.Gathering{Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency}))
	return tr
}

// remap adds lines to the mapping.
func (tr *trial) remap(t testing.TB, lines string) {
	t.Helper()
	m, err := mapping.Parse("twin.yaml", []byte(twinMapping+lines), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr.Mapping, tr.intake.names = m, nil
	if err := tr.intake.bind(); err != nil {
		t.Fatal(err)
	}
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
	end := tr.run.member.start(ctx)
	tr.takeRows(ctx)
	end()
	tr.run.ledger.Close()
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
