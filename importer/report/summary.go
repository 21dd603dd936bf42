package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/internal/spelling"
)

// Summary is a run in figures; docs/scripting.md defines its JSON. Its counted lists have the most frequent item first.
type Summary struct {
	RunID              string         `json:"run_id"`
	Command            string         `json:"command"`
	Version            string         `json:"version"`
	DryRun             bool           `json:"dry_run"`
	Outcome            string         `json:"outcome"` // complete, attention, stopped, interrupted, Running or Refused
	StopReason         string         `json:"stop_reason"`
	ExitCode           int            `json:"exit_code"`
	StartedAt          time.Time      `json:"started_at"`
	FinishedAt         time.Time      `json:"finished_at"`
	DurationS          float64        `json:"duration_s"`
	Inputs             []Input        `json:"inputs"`
	Mapping            File           `json:"mapping"`
	Checkpoint         Checkpoint     `json:"checkpoint"`
	Target             Target         `json:"target"`
	Rows               RowCounts      `json:"rows"`
	Requests           Requests       `json:"requests"`
	LatencyMs          Latency        `json:"latency_ms"`
	Timeline           []Bucket       `json:"timeline"`
	InDoubt            []Doubt        `json:"in_doubt"`
	Organizations      []Organization `json:"organizations"`
	Transitions        []Transition   `json:"transitions"`
	Errors             []Reason       `json:"errors"`
	ThroughputRowsPerS float64        `json:"throughput_rows_per_s"`
	PeakInFlight       int            `json:"peak_in_flight"`
	DroppedValues      int            `json:"dropped_values"`  // values that on_invalid left out
	Checks             *Checks        `json:"checks,omitzero"` // of runs that send nothing

	InService *InService  `json:"in_service,omitempty"` // of import and sync
	Asks      *Attentions `json:"attention,omitempty"`

	Reconciliation *Reconciliation `json:"reconciliation,omitempty"` // of reconcile only

	Fleet string `json:"fleet,omitempty"` // name of the fleet: of a worker, and of the report of a fleet
	Shard string `json:"shard,omitempty"` // the worker's part of the input, as I/N; "" in the report of a fleet

	Files []NamedFile `json:"files"` // left by the run
	Notes []string    `json:"notes"` // remarks for people
	Next  []Step      `json:"next"`  // as Steps returns them

	Unkept      []Unkept `json:"-"` // leads whose ID the checkpoint could not keep
	Pulled      int      `json:"-"` // leads in the pull file
	Wordless    int      `json:"-"` // leads that the pull file lacks because their status has no word
	Total       int      `json:"-"` // rows that a running run will read; 0: not known
	Sent        int      `json:"-"` // rows whose requests are finished
	InFlight    int      `json:"-"` // requests of a running run
	Paused      string   `json:"-"` // why requests of a running run wait, or ""
	Hint        string   `json:"-"` // what to do about a stop before running again, or ""
	Flags       []string `json:"-"` // the next command needs them; of a check, those about its input
	Standing    int      `json:"-"` // rows in doubt from earlier runs, if --max-in-doubt is below their number; else 0
	Resent      bool     `json:"-"` // rows in doubt were sent again: the same command would send them once more
	Same        bool     `json:"-"` // the same command would stop at the same place
	SummaryPath string   `json:"-"` // path of the summary itself

	settled   bool // for a fleet: no row is in doubt any more
	witnessed bool // the results are in the run's folder, which also holds its witness
	read      bool // the summary was read from a file: Steps returns its Next
}

// Running is the Outcome of a run that has not ended.
const Running = "running"

// Input is one file that was read. Bytes and Rows count what was read. SHA256 is "" if that was not all of it.
type Input struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
	Blank  int    `json:"blank"` // rows without any data, which Rows does not count
	SHA256 string `json:"sha256"`

	Delimiter     rune `json:"-"`               // 0 is a comma
	ByteOrderMark bool `json:"-"`               // JSONL rejects begin with one: the flags name another encoding
	Changed       bool `json:"-"`               // another program wrote to it during the run
	Unread        bool `json:"unread,omitzero"` // it was not read to its end, or not all its rows were processed
}

// File is a file by its path and the SHA-256 of its bytes in hexadecimal.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Checkpoint is the checkpoint of a run. Sequence numbers its last commit; New and Leads are from the start of the run.
type Checkpoint struct {
	Path     string `json:"path"`
	ID       string `json:"id"`
	Sequence uint64 `json:"sequence"`
	New      bool   `json:"new"`
	Leads    int    `json:"leads"`
}

// Target is the service that a run talked to.
type Target struct {
	BaseURL  string `json:"base_url"`
	LeadsURL string `json:"leads_url"`
	TrunkID  string `json:"trunk_id"`
}

// String is a short name of the target: the leads host (a word for the sandbox) and the trunk.
func (t Target) String() string {
	host := ""
	if u, err := url.Parse(t.LeadsURL); err == nil {
		host = cmp.Or(u.Host, u.Path)
	}
	return strings.ToValidUTF8(host+"/"+t.TrunkID, "?")
}

// Requests counts requests by kind and by HTTP status, including repeated ones.
type Requests struct {
	Create   int            `json:"create"`
	Update   int            `json:"update"`
	Token    int            `json:"token"`
	Retries  int            `json:"retries"`
	ByStatus map[string]int `json:"by_status"`
}

// Latency is how long lead requests took, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// MostBuckets is the most buckets of a timeline.
const MostBuckets = 240

// Bucket is one of the equal periods of a run's time: rows that ended, lead requests that ended and how many
// milliseconds they took, retries, and for how many seconds all requests waited or were sent one at a time.
type Bucket struct {
	Time     time.Time `json:"time"` // of its beginning
	Rows     int       `json:"rows"`
	Requests int       `json:"requests"`
	Retries  int       `json:"retries"`
	P50      float64   `json:"p50"`
	P95      float64   `json:"p95"`
	P99      float64   `json:"p99"`
	Paused   float64   `json:"paused"`
}

// Organization is one location of an organization to which leads were assigned.
type Organization struct {
	ID       string `json:"id"`
	Location string `json:"location"`
	Leads    int    `json:"leads"`
}

// Organizations lists the counted organizations, the keys without Leads, most leads first.
func Organizations(leads map[Organization]int) []Organization {
	return mostFirst(leads, func(o *Organization, n int) { o.Leads = n })
}

// Transition counts leads whose status was changed.
type Transition struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Leads int    `json:"leads"`
}

// Transitions lists the counted transitions, the keys without Leads, most leads first.
func Transitions(leads map[Transition]int) []Transition {
	return mostFirst(leads, func(t *Transition, n int) { t.Leads = n })
}

// CountLead counts a lead under the key of. After 10,000 keys, a new key counts as others: memory has a limit.
func CountLead[K comparable](leads map[K]int, of, others K) {
	if _, known := leads[of]; !known && len(leads) >= 10_000 {
		of = others
	}
	leads[of]++
}

// mostFirst lists what was counted, most first, then by name. count puts the number into a key.
func mostFirst[T comparable](leads map[T]int, count func(*T, int)) []T {
	list := slices.SortedFunc(maps.Keys(leads), func(a, b T) int {
		if order := cmp.Compare(leads[b], leads[a]); order != 0 {
			return order
		}
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	each(list, func(key *T) { count(key, leads[*key]) })
	return list
}

// Doubt is a row in doubt, which a person has to look up. OrganizationID is where it was sent; it may be "locator ID".
type Doubt struct {
	Place
	SentAt         time.Time `json:"sent_at"`
	OrganizationID string    `json:"organization_id"`
	Reason         string    `json:"reason"`
	RequestID      string    `json:"request_id,omitempty"`
}

// Reason is why rows ended as they did, or a check that they fail, with the number of rows and the places of the first
// three. Column names the columns that the value comes from, if any.
type Reason struct {
	Outcome  string  `json:"outcome,omitempty"`
	Rule     string  `json:"rule,omitempty"`
	Column   string  `json:"column,omitempty"`
	Error    string  `json:"error"`
	Rows     int     `json:"rows"`
	Examples []Place `json:"examples"`
}

func (r *Reason) escape() { r.Column, r.Error = spelling.Escape(r.Column), spelling.Escape(r.Error) }

func (r Reason) line() Line {
	places, text := make([]string, len(r.Examples)), inColumn(r.Column, r.Error)
	for i, at := range r.Examples {
		places[i] = at.String()
	}
	if r.Rows > len(places) && len(places) > 0 {
		places = append(places, "…")
	}
	return Line{Count: r.Rows, Name: cmp.Or(r.Outcome, r.Rule), Text: text, Where: strings.Join(places, ", ")}
}

// WriteJSON writes the summary as an indented JSON object and a line end. Times are in UTC, texts from outside escaped.
func (s *Summary) WriteJSON(w io.Writer) error {
	s.escape()
	c := *s
	c.StopReason = spelling.Escape(s.StopReason)
	c.Notes, c.Next = checkpoint.Map(s.Notes, spelling.Escape), s.Steps()
	// A file's name may be broken UTF-8, but the summary must be valid.
	b, err := json.Marshal(&c, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = w.Write(append(spelling.EscapeJSON(b), '\n'))
	return err
}

// escape rounds figures to a useful precision and makes texts from outside safe to show.
func (s *Summary) escape() {
	s.StartedAt, s.FinishedAt = utc(s.StartedAt), utc(s.FinishedAt)
	s.DurationS, s.ThroughputRowsPerS = round(s.DurationS), round(s.ThroughputRowsPerS)
	each(s.Organizations, func(o *Organization) { o.Location = spelling.Escape(o.Location) })
	each(s.Errors, (*Reason).escape)
	each(s.Timeline, func(b *Bucket) { b.Time = utc(b.Time) })
	each(s.InDoubt, func(d *Doubt) { d.SentAt, d.OrganizationID = utc(d.SentAt), spelling.Escape(d.OrganizationID) })
	if s.Checks != nil {
		s.Checks.escape()
	}
}

func each[T any](items []T, do func(*T)) {
	for i := range items {
		do(&items[i])
	}
}

func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

// Unwritten returns the reason and the hint of a run that could not write its files.
func Unwritten(err error) (reason, hint string) {
	hint = "make room or name another place"
	if errors.Is(err, syscall.EPIPE) { // writing to a named pipe
		hint = "let the program that reads it read to its end"
	}
	return fmt.Sprintf("the run's files could not be written: %v", err), hint +
		": the checkpoint has every outcome, so the results of the next run are complete"
}

// Exit codes of a run (README, "Exit codes").
const (
	CodeComplete    = 0
	CodeAttention   = 1
	CodeStopped     = 3
	CodeCheckpoint  = 4
	CodeInDoubt     = 5
	CodeFenced      = 6
	CodeInterrupted = 130
)

// WorseExitCode returns the exit code of the two that takes precedence (README, "Exit codes").
func WorseExitCode(one, other int) int {
	for _, code := range []int{CodeInterrupted, CodeCheckpoint, CodeFenced, CodeStopped, CodeInDoubt, CodeAttention} {
		if code == one || code == other {
			return code
		}
	}
	return one
}

// Stopped makes the summary say that the run stopped, unless it has a graver exit code. The first hint stays.
func (s *Summary) Stopped(reason, hint string) {
	if WorseExitCode(s.ExitCode, CodeStopped) == CodeStopped && !strings.Contains(s.StopReason, reason) {
		s.StopReason, s.Hint = strings.TrimPrefix(s.StopReason+"; "+reason, "; "), cmp.Or(s.Hint, hint)
		s.ExitCode, s.Outcome = CodeStopped, "stopped"
	}
}
