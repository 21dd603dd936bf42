package bolt

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"leadferry/checkpoint"
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

// meta is what the newest meta page says: the pages of the tree of buckets and of the list of free ones, the number of the
// commit, and how long the file is at least.
type meta struct{ root, free, commit, end, page int }

func metaOf(t *testing.T, file []byte) (newest meta) {
	t.Helper()
	page := os.Getpagesize()
	for _, at := range []int{headSize, page + headSize} {
		number := func(i int) int { return int(endian.Uint64(file[at+i:])) }
		if number(48) >= newest.commit {
			newest = meta{root: number(16), free: number(32), commit: number(48), end: number(40) * page, page: page}
		}
	}
	return newest
}

// A page in use that also counts as free would be overwritten by the next commit; one
// that is neither is a sign of the same fault.
func TestListOfFreePagesFits(t *testing.T) {
	file, _ := crashed(t)
	m := metaOf(t, file)
	at := m.free * m.page
	count := endian.Uint16(file[at+10:])
	if count == 0 || count > 400 {
		t.Fatalf("%d free pages: not what this test needs", count)
	}
	last := at + headSize + 8*int(count)
	for name, change := range map[string]func(b []byte){
		"in use": func(b []byte) { endian.PutUint64(b[last:], uint64(m.root)); endian.PutUint16(b[at+10:], count+1) },
		"twice": func(b []byte) {
			endian.PutUint64(b[last:], endian.Uint64(b[last-8:]))
			endian.PutUint16(b[at+10:], count+1)
		},
		"lost": func(b []byte) { endian.PutUint16(b[at+10:], count-1) },
	} {
		t.Run(name, func(t *testing.T) {
			broken := append([]byte(nil), file...)
			change(broken)
			_, err := reopen(t, newPath(t), broken)
			checkRefusal(t, err, checkpoint.ErrDamaged)
		})
	}
}

// Pages that lead in a circle end the process that checks them, not this one. fault m19
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

// A page that says that it is four billion pages long fills no memory.
func TestLengthOfAPageIsBounded(t *testing.T) {
	file, _ := crashed(t)
	m := metaOf(t, file)
	endian.PutUint32(file[m.root*m.page+12:], 1<<32-1)
	_, err := reopen(t, newPath(t), file)
	checkRefusal(t, err, checkpoint.ErrDamaged)
}
