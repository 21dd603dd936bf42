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

// Options of a run. validate needs nothing that concerns the service or the checkpoint.
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
	Flags       []string // that a command which follows on this one has to repeat, as words
	Mapping     *mapping.Mapping
	MappingFile report.File // and the SHA-256 of its bytes
	Inputs      []*source.File
	Limit       int               // rows of all inputs together; 0 = all
	Shard       mapping.Shard     // of these, the part that this worker takes
	Terms       *checkpoint.Terms // of the fleet that the worker belongs to; nil: none
	Log         *slog.Logger
}

// Sending is where requests go, and how.
type Sending struct {
	Client      leadapi.Config
	Target      checkpoint.Target
	Concurrency int           // requests in flight at most
	Rate        float64       // requests a second at most; 0 = no limit
	Retries     int           // further tries of a request that was answered and may be sent again
	MaxWait     time.Duration // how long the service may stay silent
	MaxDuration time.Duration // rows are taken no longer than this; 0 = no limit
	ResendOn    delivery.ResendOn
}

// Planning says what to do with rows that are known already.
type Planning struct {
	ResendInDoubt    bool // --in-doubt resend
	RetryRejected    bool
	Changed          string // rows of an import whose data changed: UpdateChanged, IgnoreChanged, else only reported
	CreateAlikes     bool   // --look-alikes create
	NewKey           string // with which a person confirmed other columns or another key
	Missing          string // rows of a sync without a known lead: MissingCreate, MissingIgnore, else only reported
	CheckRemote      Reads
	Reconciling      Reconciling
	Conflict         mapping.Rule // what to do about a field that others changed
	HoldReopen       bool         // --reopen hold
	ReadByExternalID bool         // --read external-id: by writing the one that was last confirmed
}

// The words of --changed and --missing that do more than report rows.
const (
	UpdateChanged, IgnoreChanged = "update", "ignore" // send the differences; count the rows as unchanged
	MissingCreate, MissingIgnore = "create", "ignore" // make their leads; leave them out
)

// Checking is what a run that sends nothing looks at, and what counts for the exit code.
type Checking struct {
	DryRun   bool           // of Import and Sync
	OnlyNew  bool           // --attention new: what needed attention in the run before does not count
	Strict   bool           // validate: what only looks wrong counts as wrong
	Tolerate delivery.Share // validate: so many problem rows end with report.CodeComplete anyway
	Show     int            // requests to show
	Shown    io.Writer      // gets them, exactly as they would be sent
}

// Keeping is what remembers a run and tells of it.
type Keeping struct {
	Checkpoint string // path
	// Open opens the checkpoint. With require, a checkpoint that is missing or has known nothing is an error around
	// checkpoint.ErrMissing. With readOnly no checkpoint is made.
	Open       func(require, readOnly bool) (checkpoint.Store, error)
	Witnesses  *checkpoint.Witnesses        // what tells of earlier ledgers; nil: nothing does
	Answer     string                       // with which a person answered them (--new-checkpoint)
	Machine    string                       // ID of this machine; "": it has none
	Fleet      func(checkpoint.Store) Fleet // what the worker shares with its fleet, if it belongs to one
	Require    bool                         // the checkpoint must be there
	Files      report.Files                 // all empty: none are written
	OwnColumns bool                         // results carry the rows' own columns
}

// Hooks are asked and told while a run goes on. All but Interrupt may be nil.
type Hooks struct {
	Interrupt  <-chan struct{}       // closed by the first signal; the context ends with the second
	Begin      func(*Start) error    // told once before anything is sent; its error ends the run
	CloseStdin func()                // told once no more rows are wanted, so that reads of standard input end
	Live       func(*report.Summary) // gets the run so far once a second, as its own copy; it must not wait
}

// Start is what is known before the first request.
type Start struct {
	Checkpoint checkpoint.Info       // without a Path where there is none
	Warnings   []string              // those of the checkpoint among them
	Notes      []string              // remarks on the mapping; those of a dry run are in its summary
	Judgement  *checkpoint.Judgement // what witnesses say of the checkpoint; nil where there is none
}
