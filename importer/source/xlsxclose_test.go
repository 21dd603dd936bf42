package source

import (
	"bytes"
	"os"
	"testing"

	"leadferry/importer/source/xlsx"
)

func TestCloseRemovesStandardInput(t *testing.T) {
	data, err := os.ReadFile("testdata/excelize.xlsx")
	if err != nil {
		t.Fatal(err)
	}
	for _, sheet := range []string{"", "Sheet1", "sheet 9"} {
		f := &File{info: Info{Path: "-"}, meter: newMeter(bytes.NewReader(data))}
		refusal := f.openWorkbook(f.meter, Options{Sheet: sheet, MaxRecord: defaultRecord})
		if (refusal != nil) != (sheet == "sheet 9") || len(f.closers) == 0 {
			t.Fatal(refusal)
		}
		kept, one := f.closers[0].(*xlsx.Scratch), make([]byte, 1)
		if n, _ := kept.ReadAt(one, 0); n != 1 {
			t.Error("standard input is not kept")
		}
		f.Close()
		if n, _ := kept.ReadAt(one, 0); n != 0 {
			t.Errorf("%q: standard input is still there", sheet)
		}
	}
}
