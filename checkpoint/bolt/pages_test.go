package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
	"leadferry/checkpoint/bolt/pages"
)

// What these tests know of bbolt's pages, to damage them.
const (
	headSize    = 16 // bytes: number, flags, elements, further pages
	elementSize = 16
	branchKind  = 0x01
	leafKind    = 0x02
)

var endian = binary.NativeEndian

func elementsOf(page []byte) int { return int(endian.Uint16(page[10:])) }

func keyOf(branch []byte, i int) []byte {
	e := branch[headSize+i*elementSize:]
	return e[endian.Uint32(e):][:endian.Uint32(e[4:])]
}

func leafOf(leaf []byte, i int) (key, value []byte) {
	e := leaf[headSize+i*elementSize:]
	key = e[endian.Uint32(e[4:]):][:endian.Uint32(e[8:])]
	return key, e[endian.Uint32(e[4:])+endian.Uint32(e[8:]):][:endian.Uint32(e[12:])]
}

// branchesOf are the numbers of the branch pages in use.
func branchesOf(t *testing.T, path string) map[int]bool {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	branches := make(map[int]bool)
	err = db.View(func(tx *bbolt.Tx) error {
		for id := 2; ; id++ {
			page, err := tx.Page(id)
			if page == nil || err != nil {
				return err
			}
			branches[id] = page.Type == "branch"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return branches
}

// A page in use that also counts as free would be overwritten by the next commit; one
// that is neither is a sign of the same fault.
func TestListOfFreePagesFits(t *testing.T) {
	file, _ := crashed(t)
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(img.Free) * img.PageSize
	count := endian.Uint16(file[at+10:])
	if count == 0 || count > 400 {
		t.Fatalf("%d free pages: not what this test needs", count)
	}
	last := at + headSize + 8*int64(count)
	for name, change := range map[string]func(b []byte){
		"in use": func(b []byte) { endian.PutUint64(b[last:], img.Root); endian.PutUint16(b[at+10:], count+1) },
		"twice": func(b []byte) {
			endian.PutUint64(b[last:], endian.Uint64(b[last-8:]))
			endian.PutUint16(b[at+10:], count+1)
		},
		"itself": func(b []byte) { endian.PutUint64(b[last:], img.Free); endian.PutUint16(b[at+10:], count+1) },
		"lost":   func(b []byte) { endian.PutUint16(b[at+10:], count-1) },
	} {
		t.Run(name, func(t *testing.T) {
			broken := append([]byte(nil), file...)
			change(broken)
			if err := inspectWalk(t, broken); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("the walk says %v", err)
			}
			_, err = reopen(t, newPath(t), broken)
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
	content(string(file))(t, path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := pages.Inspect(f)
	if err != nil {
		return err
	}
	return img.Walk(nil)
}

// The guard against pages that lead in a circle works before anything follows
// them. fault m19
func TestPagesInCircleAreRefused(t *testing.T) {
	file, _ := crashed(t)
	page := os.Getpagesize()
	for start := 2 * page; start < len(file); start += page {
		if endian.Uint16(file[start+8:]) != branchKind {
			continue
		}
		turned := append([]byte(nil), file...)
		endian.PutUint64(turned[start+headSize+8:], uint64(start/page)) // to itself
		if d, err := reopen(t, newPath(t), turned); err == nil {
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
	file, _ := ended(t)
	img, err := inspectBytes(t, file)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(img.Root) * img.PageSize
	root := file[at : at+img.PageSize]
	small := 0
	for i := range elementsOf(root) {
		name, value := leafOf(root, i)
		if endian.Uint64(value) != 0 {
			continue
		}
		small++
		inner := value[headSize:]
		for what, field := range map[string][]byte{"its number": inner[:8], "further pages": inner[12:16]} {
			field[0] = 9
			d, err := reopen(t, newPath(t), file)
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
