package xlsx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leadferry/importer/source/rows"
	"leadferry/internal/testsupport/must"
)

// A workbook with more texts than memory has room for is refused. So is a cell that points to no text. faults 8, 94
func TestSharedTextsAreBounded(t *testing.T) {
	shared := &sharedTexts{}
	must.Do(t, shared.read(strings.NewReader("<sst><si><t>a</t></si><si/><si><t>b_x0041_</t></si></sst>")))
	for i, want := range []string{"a", "", "bA"} {
		if got, err := shared.get(strconv.Itoa(i)); err != nil || string(got) != want {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	for _, n := range []string{"-1", "3", ""} {
		if _, err := shared.get(n); err == nil {
			t.Errorf("%q: %v", n, err)
		}
	}
	for _, full := range []*sharedTexts{{text: make([]byte, maxShared)}, {ends: make([]uint32, maxShared/4)}} {
		if err := full.read(strings.NewReader("<sst><si><t>x</t></si></sst>")); fmt.Sprint(err) != tooLarge().Error() {
			t.Error(err)
		}
	}
}

// Missing cells before a cell far to the right take neither time nor memory.
func TestCellsFarToTheRightCostNothing(t *testing.T) {
	const text = `<worksheet><sheetData><row><c r="A1"><v>2</v></c><c r="XFD1"><v>1</v></c></row></sheetData></worksheet>`
	s, err := newSheetReader(strings.NewReader(text), formatter{}, 100)
	if err == nil {
		err = s.next()
	}
	must.Do(t, err)
	r := &Reader{sheet: s, columns: rows.Columns{Width: 2}}
	if r.take(); len(s.cells) != 2 || !slices.Equal(r.fields, []string{"2", "", "1"}) || r.beyond != rows.MaxColumns-1 {
		t.Errorf("%d cells, fields %q, the first beyond the header in column %d", len(s.cells), r.fields, r.beyond)
	}
}

func TestALongRowTakesNoMemory(t *testing.T) { // faults 94
	const limit = 1000
	cell := `<c t="str"><v>` + strings.Repeat("x", limit-1) + "</v></c>"
	text := "<worksheet><sheetData><row>" + strings.Repeat(cell, 200) + "</row></sheetData></worksheet>"
	rows, err := newSheetReader(strings.NewReader(text), formatter{}, limit)
	if err == nil {
		err = rows.next()
	}
	if err != nil || !rows.long || cap(rows.text) > 2*limit || cap(rows.raw) > 2*limit {
		t.Errorf("%d and %d bytes are held: %v", cap(rows.text), cap(rows.raw), err)
	}
}
