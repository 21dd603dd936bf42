package checkpoint

import (
	"slices"
	"testing"
)

// What is missing, and what a file was before, outlive the process.
func TestIncompleteIsRemembered(t *testing.T) {
	path := newPath(t)
	d := opened(t, path, Options{})
	h := d.header
	h.ancestors = []fileID{h.id, 7}
	err := d.alone(func(l *ledger) error {
		if err := l.meta.Put(headerKey, h.encode()); err != nil {
			return err
		}
		return l.meta.Put(lackingKey, lacking{leads: 12}.encode())
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = opened(t, path, Options{})
	if some, leads := d.Incomplete(); !some || leads != 12 || !slices.Equal(d.header.ancestors, h.ancestors) {
		t.Errorf("incomplete %v, %d missing, before it %v", some, leads, d.header.ancestors)
	}
}
