package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"leadferry/checkpoint"
)

// A page in use that also counts as free would be overwritten by the next commit; one
// that is neither is a sign of the same fault.
func TestListOfFreePagesFits(t *testing.T) {
	file, mark, _ := crashed(t)
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(img.free) * img.page
	count := native.Uint16(file[at+10:])
	if count == 0 || count > 400 {
		t.Fatalf("%d free pages: not what this test needs", count)
	}
	last := at + pageHeader + 8*int64(count)
	for name, change := range map[string]func(b []byte){
		"in use": func(b []byte) { native.PutUint64(b[last:], img.root); native.PutUint16(b[at+10:], count+1) },
		"twice": func(b []byte) {
			native.PutUint64(b[last:], native.Uint64(b[last-8:]))
			native.PutUint16(b[at+10:], count+1)
		},
		"itself": func(b []byte) { native.PutUint64(b[last:], img.free); native.PutUint16(b[at+10:], count+1) },
		"lost":   func(b []byte) { native.PutUint16(b[at+10:], count-1) },
	} {
		t.Run(name, func(t *testing.T) {
			broken := append([]byte(nil), file...)
			change(broken)
			if err := inspectWalk(t, broken); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("the walk says %v", err)
			}
			_, err = reopen(t, newPath(t), broken, mark)
			checkRefusal(t, err, checkpoint.ErrDamaged)
		})
	}
	if err := inspectWalk(t, file); err != nil {
		t.Errorf("the good file: %v", err)
	}
}

func inspectWalk(t *testing.T, file []byte) error {
	t.Helper()
	path := newPath(t)
	writeFiles(t, path, file, nil)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := inspect(f)
	if err != nil {
		return err
	}
	return img.walk(nil)
}

// The guard against pages that lead in a circle works before anything follows
// them. fault m19
func TestPagesInCircleAreRefused(t *testing.T) {
	file, mark, _ := crashed(t)
	page := os.Getpagesize()
	for start := 2 * page; start < len(file); start += page {
		if native.Uint16(file[start+8:]) != branchPage {
			continue
		}
		turned := append([]byte(nil), file...)
		native.PutUint64(turned[start+pageHeader+8:], uint64(start/page)) // to itself
		if d, err := reopen(t, newPath(t), turned, mark); err == nil {
			d.Close() // a page that is free by now
		} else {
			checkRefusal(t, err, checkpoint.ErrDamaged)
			return
		}
	}
	t.Error(fmt.Sprint("no branch page in use was found in ", len(file), " bytes"))
}

// A small bucket stands in the tree of buckets and names no page of its own: bbolt would
// give that page free when the bucket outgrows its value, and overwrite what it holds.
func TestSmallBucketThatNamesAPageIsRefused(t *testing.T) {
	file, mark, _ := ended(t)
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(img.root) * img.page
	root := file[at : at+img.page]
	small := 0
	for i := range elements(root) {
		_, name, value, ok := leafElement(root, i)
		if !ok || native.Uint64(value) != 0 {
			continue
		}
		small++
		inner := value[pageHeader:]
		for what, field := range map[string][]byte{"its number": inner[:8], "further pages": inner[12:16]} {
			field[0] = 9
			d, err := reopen(t, newPath(t), file, mark)
			if err == nil {
				d.Close()
				t.Errorf("bucket %s: %s was not noticed", name, what)
			} else {
				checkRefusal(t, err, checkpoint.ErrDamaged)
			}
			field[0] = 0
		}
	}
	if small < 3 {
		t.Errorf("%d small buckets", small)
	}
}

// A page that claims to be as long as the file is not read into memory.
func TestLengthOfAPageIsBounded(t *testing.T) {
	long := make([]byte, 2*mostOfPage)
	const page = 4096
	native.PutUint64(long[2*page:], 2)
	native.PutUint16(long[2*page+8:], leafPage)
	native.PutUint32(long[2*page+12:], mostOfPage/page)
	img := &image{f: bytes.NewReader(long), page: page, pages: uint64(len(long) / page), root: 2}
	if err := newWalker(img, nil).tree(subtree{page: 2}); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Error(err)
	}
	native.PutUint32(long[2*page+12:], mostOfPage/page-1)
	if err := newWalker(img, nil).tree(subtree{page: 2}); err != nil {
		t.Error(err)
	}
}
