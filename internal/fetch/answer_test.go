package fetch

import (
	"strconv"
	"testing"
)

func FuzzContentRange(f *testing.F) {
	for _, seed := range []string{"bytes 0-1/2", "bytes 5-9/*", "bytes 9-5/10", "bytes */7", "bytes 0-9/9", "bytes -1-2/3", "", "bytes 0-1/99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, total, ok := contentRange(text)
		if ok && (first < 0 || total != -1 && total <= first) {
			t.Fatalf("%q: from %d of %d", text, first, total)
		}
		if whole, err := strconv.Unquote(`"` + text + `"`); ok && (err != nil || whole != text) {
			t.Fatalf("%q was taken", text)
		}
	})
}
