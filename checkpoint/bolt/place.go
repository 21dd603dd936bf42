package bolt

import (
	"path/filepath"

	"leadferry/checkpoint"
	"leadferry/internal/disk"
)

// place is a kind of file system that a checkpoint had better not lie on.
type place struct {
	name    string
	refused bool
	why     string
}

const noLocks = "there, locks and synced writes may not hold what they promise, and rows could be sent twice"

// placesByMagic are the kinds of file systems that need a word, by their number on Linux.
var placesByMagic = map[int64]place{
	0x6969: {"NFS", true, noLocks},

	disk.NetworkDrive: {"a network drive", true, noLocks},
	0x517b:            {"SMB", false, noLocks},
	0xff534d42:        {"SMB", false, noLocks},
	0xfe534d42:        {"SMB", false, noLocks},
	0x01021997:        {"9P", false, noLocks},
	0x65735546:        {"FUSE", false, noLocks},
	0x794c7630:        {"an overlay", false, "it is gone with the container that it belongs to, unless that is kept"},
}

// checkPlace finds out where the file lies, or will lie. What the system does not tell is
// taken for good.
func (d *Store) checkPlace(o Options) error {
	if o.ReadOnly {
		return nil
	}
	if folder, err := disk.Stat(filepath.Dir(d.path)); err == nil && disk.Exposed(folder) != "" {
		d.warn("the checkpoint's folder " + filepath.Dir(d.path) + " " + disk.Exposed(folder) + ": whoever may write there can put another file in its place (--checkpoint names a file elsewhere)")
	}
	if o.AnyPlace {
		return nil
	}
	number, err := o.magic(filepath.Dir(d.path))
	p, odd := placesByMagic[number]
	if err != nil || !odd {
		return nil
	}
	if p.refused {
		return d.refuse(checkpoint.ErrPlace, "lies on "+p.name+": "+p.why,
			"name a file on a local disk with --checkpoint, or set LEADFERRY_ANY_FILESYSTEM=1 to use it all the same")
	}
	d.warn("the checkpoint lies on " + p.name + ": " + p.why + " (--checkpoint names a file elsewhere)")
	return nil
}
