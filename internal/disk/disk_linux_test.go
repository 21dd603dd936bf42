package disk

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

// stat is what the system reports about a file.
type stat struct {
	mode fs.FileMode
	uid  int // negative: the system has no owners
}

func (s stat) Name() string       { return "f" }
func (s stat) Size() int64        { return 0 }
func (s stat) Mode() fs.FileMode  { return s.mode }
func (s stat) ModTime() time.Time { return time.Time{} }
func (s stat) IsDir() bool        { return s.mode.IsDir() }
func (s stat) Sys() any {
	if s.uid < 0 {
		return nil
	}
	return &syscall.Stat_t{Uid: uint32(s.uid)}
}

// fault 137
func TestTrustByOwnerAndMode(t *testing.T) {
	me, somebody := os.Geteuid(), os.Geteuid()+4711
	for name, test := range map[string]struct {
		stat
		mine, trusted, open bool
		exposed             string
	}{
		"my file":                 {stat{0o600, me}, true, true, false, ""},
		"root's":                  {stat{0o644, 0}, me == 0, true, false, ""},
		"somebody's":              {stat{0o600, somebody}, false, false, false, "belongs to another user"},
		"my file, for my group":   {stat{0o660, me}, true, true, true, ""},
		"my folder, for all":      {stat{fs.ModeDir | 0o777, me}, true, true, true, "may be written to by every user of this machine"},
		"like /tmp":               {stat{fs.ModeDir | fs.ModeSticky | 0o777, 0}, me == 0, true, true, ""},
		"somebody's, like /tmp":   {stat{fs.ModeDir | fs.ModeSticky | 0o777, somebody}, false, false, true, "belongs to another user"},
		"a system without owners": {stat{0o777, -1}, true, true, false, ""},
	} {
		if Mine(test.stat) != test.mine || Trusted(test.stat) != test.trusted || OthersMay(test.stat, 0o022) != test.open || Exposed(test.stat) != test.exposed {
			t.Errorf("%s: mine %v, trusted %v, others write %v, %q", name, Mine(test.stat), Trusted(test.stat), OthersMay(test.stat, 0o022), Exposed(test.stat))
		}
	}
}
