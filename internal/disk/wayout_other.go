//go:build !windows

package disk

// The commands that show what is wrong.
const (
	showsOwners = "`ls -ld` shows whose they are"
	showsRoom   = "`df` shows what is full"
	raisesLimit = " (`ulimit -n`)"
)

// Errors have the same numbers on all these systems.
var noDisk, noRoom, writeProtected, noFile, tooManyOpen, badName, failing []error
