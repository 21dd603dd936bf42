package importer

import (
	"io"
	"log/slog"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Options are what a run needs. validate needs nothing that concerns the service or the checkpoint.
type Options struct {
	Task
	Sending
	delivery.Limits
	Planning
	Checking
	Keeping
	Hooks
}

// Task is what a run does, and on what.
type Task struct {
	Command     string // import, sync, reconcile or validate
	Version     string
	RunID       string
	Flags       []string // what a follow-up command has to repeat, word by word
	Mapping     *mapping.Mapping
	MappingFile report.File // and the SHA-256 of its bytes
	Inputs      []*source.File
	Limit       int               // rows of all inputs together; 0 = all
	Shard       mapping.Shard     // the part of these rows that this worker takes
	Terms       *checkpoint.Terms // those of this worker's fleet; nil: the run has no fleet
	Log         *slog.Logger
}

// Sending is where requests go, and how.
type Sending struct {
	Client      leadapi.Config
	Target      checkpoint.Target
	Concurrency int           // requests in flight at most
	Rate        float64       // requests a second at most; 0 = no limit
	Retries     int           // further tries, after a pause, of a request that may be sent again
	MaxWait     time.Duration // how long the service may stay silent
	MaxDuration time.Duration // after this time, no more rows are taken; 0 = no limit
	ResendOn    map[int]bool  // statuses after which a create may be sent again; without 429, one leaves doubt
}

// Planning says what to do with rows that are known already.
type Planning struct {
	ResendInDoubt    bool // --in-doubt resend
	RetryRejected    bool
	Changed          string // rows of an import whose data changed: UpdateChanged, IgnoreChanged, else only reported
	CreateAlikes     bool   // --look-alikes create
	NewKey           string // a person's answer: other columns or another key are meant
	Missing          string // rows of a sync without a known lead: MissingCreate, MissingIgnore, else only reported
	CheckRemote      Reads
	Reconciling      Reconciling
	Conflict         mapping.Rule // what to do about a field that others changed; "": RuleReport
	HoldReopen       bool         // --reopen hold
	ReadByExternalID bool         // --read external-id: a read sends the ExternalID last confirmed
}

// The words of --changed and --missing that do more than report rows.
const (
	UpdateChanged, IgnoreChanged = "update", "ignore" // send the differences; count the rows as unchanged
	MissingCreate, MissingIgnore = "create", "ignore" // make their leads; leave them out
)

// Checking is what a run that sends nothing checks, and what counts for the exit code.
type Checking struct {
	DryRun   bool           // of Import and Sync
	OnlyNew  bool           // --attention new: what needed attention in the run before does not count
	Strict   bool           // validate: what only looks wrong counts as wrong
	Tolerate delivery.Share // validate: the exit code is report.CodeComplete with up to this many bad rows
	Show     int            // requests to show
	Shown    io.Writer      // gets these requests, exactly as they would be sent
}

// Keeping is where the run is kept: the checkpoint, its witnesses, the fleet and the files.
type Keeping struct {
	Checkpoint string // path
	// Open opens the checkpoint (ledger.Opener). With require, one that is missing or knows nothing is an error that
	// wraps checkpoint.ErrMissing. With readOnly, it makes no checkpoint.
	Open       func(require, readOnly bool) (checkpoint.Store, error)
	Witnesses  *checkpoint.Witnesses        // the notes about earlier ledgers; nil: there are none
	Answer     string                       // a person's answer to the witnesses (--new-checkpoint)
	Machine    string                       // ID of this machine; "": it has none
	Fleet      func(checkpoint.Store) Fleet // connects a worker with its fleet; only with Terms
	Require    bool                         // the checkpoint must exist
	Files      report.Files                 // all empty: none are written
	OwnColumns bool                         // results carry the rows' own columns
}

// Hooks connect a run with its caller while it goes on. Each may be nil.
type Hooks struct {
	Interrupt  <-chan struct{}       // closed by the first signal; the context ends with the second
	Begin      func(*Start) error    // called once before anything is sent; its error ends the run
	CloseStdin func()                // called once no more rows are wanted, to end a read of standard input
	Live       func(*report.Summary) // gets the run so far once a second, as its own copy; it must not wait
}

// Start is what is known before the first request.
type Start struct {
	Checkpoint checkpoint.Info       // its Path is "" if there is no checkpoint
	Warnings   []string              // including those of the checkpoint
	Notes      []string              // remarks on the mapping; those of a dry run are in its summary
	Judgement  *checkpoint.Judgement // what the witnesses say about the checkpoint; nil without one
}
