package xlsx

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"leadferry/importer/source/rows"
)

// Shared texts stay whole when they do not fit into memory, and the file that
// holds them then is not to be seen.
//
// faults 8, 94
func TestManySharedTexts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const texts = 40_000
	shared, pad := newSharedTexts(1<<20), strings.Repeat("x", 500)
	text := func(i int) string {
		if i%10_000 == 9_999 { // longer than any block that is held
			return strings.Repeat(strconv.Itoa(i), longBlock)
		}
		return strconv.Itoa(i) + pad[:i%500]
	}
	for i := range texts {
		if err := shared.add([]byte(text(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.close(); err != nil || shared.store.file == nil || shared.store.held != nil {
		t.Fatalf("%d bytes are in memory: %v", len(shared.store.held), err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d files can be seen in the folder for temporary files: %v", len(left), err)
	}
	stat, err := shared.store.file.Stat()
	if err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", stat.Mode(), err)
	}
	for i := range texts {
		for _, n := range []int{i, i * 7919 % texts} { // one after another, and to and fro
			got, err := shared.get(n)
			if shown := string(got.text) + got.kept; err != nil || shown != text(n) {
				t.Fatalf("%d: %.20q instead of %.20q, %v", n, shown, text(n), err)
			}
		}
	}
	for _, block := range shared.held {
		if cap(block.data) > 2*longBlock {
			t.Errorf("a block of %d bytes is held", cap(block.data))
		}
	}
	if shared.keptBytes > maxKept || len(shared.kept) == 0 {
		t.Errorf("%d long texts of %d bytes are kept", len(shared.kept), shared.keptBytes)
	}
	for _, n := range []int{-1, texts} {
		if _, err := shared.get(n); !errors.Is(err, errShared) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if err := shared.store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := shared.get(texts / 2); err == nil {
		t.Error("a text could be read from what was removed")
	}
}

// A long text that many cells share is made once, and a sheet that holds far more text by such than is written in it
// is refused.
func TestSharedTextUsedOften(t *testing.T) {
	shared := newSharedTexts(longText)
	for _, text := range []string{strings.Repeat("x", longText), strings.Repeat(" ", longText), strings.Repeat("x", longText+1), "short"} {
		if err := shared.add([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := shared.close(); err != nil || shared.store.size > 3*longText {
		t.Fatalf("%d bytes are kept: %v", shared.store.size, err)
	}
	cells := func(i int) (a, b cell) {
		for _, c := range []*cell{&a, &b} {
			var err error
			if *c, err = shared.get(i); err != nil {
				t.Fatal(err)
			}
		}
		return a, b
	}
	if a, b := cells(0); len(a.kept) != longText || unsafe.StringData(a.kept) != unsafe.StringData(b.kept) {
		t.Error("each cell has a text of its own")
	}
	if a, _ := cells(1); a.kept != "" || len(a.text) > 0 {
		t.Error("blanks are kept as a text")
	}
	if a, b := cells(2); !a.tooLong || !b.tooLong {
		t.Error("a text that no row may hold is given")
	}
	if a, _ := cells(3); string(a.text) != "short" {
		t.Errorf("%q", a.text)
	}
	shared.left = 2 * longText
	cells(0)
	if _, err := shared.get(0); !errors.Is(err, errRepeated) {
		t.Errorf("%v", err)
	}
}

// Cells far to the right take neither time nor memory for those that are not there.
func TestCellsFarToTheRight(t *testing.T) {
	s, err := newSheetReader(strings.NewReader(`<worksheet><sheetData><row><c r="XFD1"><v>1</v></c><c r="A1"><v>2</v></c></row></sheetData></worksheet>`), 100)
	if err == nil {
		err = s.next()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &Reader{sheet: s, limit: 100, format: formatter{styles: &styles{}}, columns: rows.Columns{Width: 2}}
	if err := r.convert(); err != nil {
		t.Fatal(err)
	}
	if r.spread(); len(s.cells) != 2 || !slices.Equal(r.fields, []string{"2", "", "1"}) || r.beyond != maxColumns-1 {
		t.Errorf("%d cells, fields %q, the first beyond the header in column %d", len(s.cells), r.fields, r.beyond)
	}
}

// faults 94
func TestALongRowTakesNoMemory(t *testing.T) {
	const limit = 1000
	cell := `<c t="str"><v>` + strings.Repeat("x", limit-1) + "</v></c>"
	rows, err := newSheetReader(strings.NewReader("<worksheet><sheetData><row>"+strings.Repeat(cell, 200)+"</row></sheetData></worksheet>"), limit)
	if err == nil {
		err = rows.next()
	}
	if err != nil || !rows.long || cap(rows.text) > 2*limit {
		t.Errorf("%d bytes are held: %v", cap(rows.text), err)
	}
}

// A scratch that fails tells so, and leaves nothing behind.
//
// faults 15
func TestScratchWithoutRoom(t *testing.T) {
	t.Setenv("TMPDIR", "/nowhere/at/all")
	var s Scratch
	if _, err := s.Write(make([]byte, maxHeld)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Write([]byte("x"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if shown := damaged(err); !errors.Is(shown, os.ErrNotExist) {
		t.Errorf("%v does not tell what happened", shown)
	}
	got := make([]byte, 10)
	if n, err := s.ReadAt(got, maxHeld-4); n != 4 || err == nil || !bytes.Equal(got[:4], make([]byte, 4)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestCloseRemovesWhatAWorkbookLeft(t *testing.T) {
	data, err := os.ReadFile("../testdata/excelize.xlsx")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(bytes.NewReader(data), int64(len(data)), rows.Options{MaxRecord: 1 << 20}, &rows.Found{})
	if err != nil || len(r.format.shared.store.held) == 0 {
		t.Fatal("no shared texts", err)
	}
	if err := r.Close(); err != nil || r.format.shared.store.held != nil {
		t.Error("texts are still there", err)
	}
}
