package xlsx

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"leadferry/importer/source/rows"
)

func sharedOf(t *testing.T, texts ...string) *sharedTexts {
	t.Helper()
	shared := &sharedTexts{max: longText, left: MaxUnpacked}
	if err := shared.read(newTokens(strings.NewReader("<sst><si><t>" + strings.Join(texts, "</t></si><si><t>") + "</t></si></sst>"))); err != nil {
		t.Fatal(err)
	}
	return shared
}

func TestSharedTexts(t *testing.T) {
	shared := sharedOf(t, "a", "", strings.Repeat("x", longText), strings.Repeat("x", longText+1), "short")
	for i, want := range []string{"a", "", strings.Repeat("x", longText), "", "short"} {
		if got, err := shared.get(i); err != nil || string(got.text) != want || got.tooLong != (i == 3) {
			t.Errorf("%d: %.20q, %v, %v", i, got.text, got.tooLong, err)
		}
	}
	for _, n := range []int{-1, 5} {
		if _, err := shared.get(n); !errors.Is(err, errShared) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// A sheet that holds far more text by long ones that its cells share than is written in it is refused, and a workbook with
// more texts than memory has room for, too.
//
// faults 8, 94
func TestSharedTextsAreBounded(t *testing.T) {
	shared := sharedOf(t, strings.Repeat("x", longText))
	shared.left = longText
	_, first := shared.get(0)
	if _, second := shared.get(0); first != nil || !errors.Is(second, errRepeated) {
		t.Errorf("%v, then %v", first, second)
	}
	for _, full := range []*sharedTexts{{text: make([]byte, maxShared)}, {ends: make([]uint32, maxShared/4)}} {
		if err := full.read(newTokens(strings.NewReader("<sst><si/></sst>"))); !errors.Is(err, errManyTexts) {
			t.Error(err)
		}
	}
}

// Cells far to the right take neither time nor memory for those that are not there.
func TestCellsFarToTheRight(t *testing.T) {
	s, err := newSheetReader(strings.NewReader(`<worksheet><sheetData><row><c r="A1"><v>2</v></c><c r="XFD1"><v>1</v></c></row></sheetData></worksheet>`), 100)
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
