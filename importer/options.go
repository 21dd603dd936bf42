package importer

import (
	"log/slog"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Options of a run. Mapping and Inputs are always needed; what concerns the
// service and the checkpoint is needed by Import and Sync.
type Options struct {
	Command     string // as the summary names it
	Version     string
	RunID       string
	Mapping     *mapping.Mapping
	MappingFile report.File // and the SHA-256 of its bytes
	Inputs      []*source.File
	Log         *slog.Logger

	Flags       []string          // that a command which follows on this one has to repeat, as words
	Limit       int               // rows of all inputs together; 0 = all
	Shard       Shard             // of these, the part that this worker takes
	Terms       *checkpoint.Terms // of the fleet that the worker belongs to; nil: none
	Concurrency int               // requests in flight at most
	Rate        float64           // requests a second at most; 0 = no limit. validate, dry run: what a duration is projected for
	Retries     int               // further tries of a request that was answered and may be sent again
	MaxWait     time.Duration     // how long the service may stay silent
	MaxDuration time.Duration     // rows are taken no longer than this; 0 = no limit
	Limits
	ResendOn      ResendOn
	ResendInDoubt bool // --in-doubt resend
	RetryRejected bool
	IgnoreChanged bool // --changed ignore
	UpdateChanged bool // --changed update
	CreateAlikes  bool // --look-alikes create
	NewColumns    bool // other columns than leads were made by, though a row's own data are its key
	NewKey        bool // another key or namespace than leads were made by
	Missing       Missing
	CheckRemote   bool // a sync reads a lead before it changes it
	CheckAll      bool // the same, whether it changes it or not
	Reconciling   Reconciling
	Conflict      Rule // what becomes of a lead whose status others have changed
	HoldReopen    bool // --reopen hold
	DryRun        bool
	NoRepeats     bool  // validate, dry run: do not look for repeated keys
	Strict        bool  // validate: what only looks wrong counts as wrong
	Tolerate      Share // validate: so many problem rows end with CodeComplete all the same
	Show          int   // validate, dry run: requests to show

	Client     leadapi.Config
	Target     checkpoint.Target
	Checkpoint string // path
	// Open opens the checkpoint. With require one that is not there, or that has known nothing,
	// is an error around checkpoint.ErrMissing; one that is to be read only is not made either.
	Open       func(require, readOnly bool) (checkpoint.Store, error)
	Fleet      func(checkpoint.Store) Fleet // what the worker shares with its fleet, if it belongs to one
	Require    bool                         // the checkpoint must be there
	Files      report.Files                 // all empty: none are written
	OwnColumns bool                         // results carry the rows' own columns
	Warnings   []string                     // that Start repeats

	Interrupt <-chan struct{}       // closed by the first signal; the context ends with the second
	Begin     func(*Start) error    // told once before anything is sent; its error ends the run
	LetGo     func()                // told once no more rows are wanted, so that reads of standard input end; or nil
	Progress  func(report.Tick)     // told a few times a second, or nil
	Live      func(*report.Summary) // told once a second of the run so far, which is its own then, or nil; it must not wait
	Request   func(Request) error   // told of each request that --show asks for
	// FindHeader looks among the first lines of a file, by its path, for the first one whose cells
	// fit as a header, and says which one was taken; 0: none. Or nil.
	FindHeader func(path string, fits func(names []string) bool) (taken, header int)
	Sends      func() // told of each row that is about to be sent, or nil
}

// Start is what is known before the first request.
type Start struct {
	Checkpoint  string // path; "" without one
	New         bool   // the checkpoint was made just now
	Leads       int    // leads that it knows
	InDoubt     int    // rows that it holds in doubt
	Predecessor string // of a new one: what tells that another one was here, or nothing
	Warnings    []string
	Notes       []string // remarks on the mapping; those of a dry run stand in its summary
	Target      checkpoint.Target
}

// Request is one request as it would be sent.
type Request struct {
	File   string
	Line   int
	Key    string
	Method string
	Path   string // below the leads or base URL
	Body   []byte
}
