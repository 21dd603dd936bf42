package bolt

import (
	"os"
	"path/filepath"

	"leadferry/checkpoint"
	"leadferry/internal/trust"
)

// place is a kind of file system that a checkpoint had better not lie on.
type place struct {
	name    string
	refused bool
	why     string
}

const noLocks = "there, locks and synced writes may not hold what they promise, and rows could be sent twice"

// ground finds out where the file lies, or will lie. What the system does not tell is
// taken for good.
func (d *Store) ground(o Options) error {
	if o.ReadOnly {
		return nil
	}
	if folder, err := os.Stat(filepath.Dir(d.path)); err == nil && trust.Exposed(folder) != "" {
		d.warn("the checkpoint's folder " + filepath.Dir(d.path) + " " + trust.Exposed(folder) + ": whoever may write there can put another file in its place (--checkpoint names a file elsewhere)")
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
