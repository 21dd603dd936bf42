package checkpoint

import (
	"regexp"
	"strings"
	"time"
)

// Target is what the leads of a checkpoint belong to. All three parts must be
// equal when the file is opened again.
type Target struct{ BaseURL, LeadsURL, TrunkID string }

// Witness is what a run left in its own folder about the checkpoint that it used. PATH.seq
// comes back with an older copy of its folder; a witness does not.
type Witness struct {
	Source   string // the file that says so
	Path     string // of the checkpoint
	ID       string // as in [Info]
	Sequence uint64
	Leads    int    // that it knew when the run began
	Made     int    // that the run made, or may have
	Run      string // ID of the run if it sent anything, else ""
	Ended    time.Time
	Target   Target
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Canonical is the target as targets are compared: the letters of a UUID are small. Its
// addresses must have one form already.
func (t Target) Canonical() Target {
	if low := strings.ToLower(t.TrunkID); uuid.MatchString(low) {
		t.TrunkID = low
	}
	return t
}
