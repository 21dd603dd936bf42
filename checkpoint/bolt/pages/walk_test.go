package pages

import (
	"bytes"
	"errors"
	"testing"

	"leadferry/checkpoint"
)

// A page that claims to be as long as the file is not read into memory.
func TestLengthOfAPageIsBounded(t *testing.T) {
	long := make([]byte, 2*mostOfPage)
	const page = 4096
	native.PutUint64(long[2*page:], 2)
	native.PutUint16(long[2*page+8:], leafPage)
	native.PutUint32(long[2*page+12:], mostOfPage/page)
	img := &Image{f: bytes.NewReader(long), PageSize: page, pages: uint64(len(long) / page), Root: 2}
	if err := newWalker(img).tree(subtree{page: 2}); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Error(err)
	}
	native.PutUint32(long[2*page+12:], mostOfPage/page-1)
	if err := newWalker(img).tree(subtree{page: 2}); err != nil {
		t.Error(err)
	}
}
