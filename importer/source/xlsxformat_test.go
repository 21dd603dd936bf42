package source

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whole numbers of up to 15 digits come through digit for digit, however they
// are written.
//
// faults 100
func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	s := &shower{styles: &styles{}}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-exactLimit+1, exactLimit-1).Draw(t, "number")
		form := rapid.SampledFrom([]byte("fgE")).Draw(t, "form")
		got, err := s.number(strconv.FormatFloat(float64(n), form, -1, 64), 0)
		if err != nil || got.fault != nil || got.text != strconv.FormatInt(n, 10) {
			t.Fatalf("%d: %+v, %v", n, got, err)
		}
	})
}

// Two ways to write a number, made apart from each other, agree.
func TestPlacesForDigitsAgreeWithExcelize(t *testing.T) {
	w := testWriter(t, false)
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"0", "0.0", "0.00", "00000", "000-00-0000", "#,##0", "#,##0.00", "0.00%", `0" kg"`, `\+0`, "0;(0)", "[$€-407] 0.00"}).Draw(t, "code")
		v := float64(rapid.IntRange(-1e9, 1e9).Draw(t, "sixteenths")) / 16
		section, shown := compileFormat(code).choose(v)
		if section.kind != digits {
			t.Fatalf("%q is of kind %d", code, section.kind)
		}
		got := section.fill(shown)
		text, ok := w.write(v, code)
		if ok && text != got && math.Abs(v) >= 1 { // they differ on the sign of zero
			t.Fatalf("%v in %q: %q instead of %q", v, code, got, text)
		}
	})
}

// faults 100
func TestDatesAgreeWithExcelize(t *testing.T) {
	for _, from1904 := range []bool{false, true} {
		w := testWriter(t, from1904)
		rapid.Check(t, func(t *rapid.T) {
			day := rapid.IntRange(61, endOf1904-1).Draw(t, "day")
			second := rapid.IntRange(0, 86399).Draw(t, "second")
			v := float64(day) + float64(second)/86400
			got := w.calendar.write(v, isoDateTime)
			text, ok := w.write(milliseconds(v), `yyyy\-mm\-dd\ hh:mm:ss`)
			if !ok || text != got {
				t.Fatalf("%v: %q instead of %q", v, got, text)
			}
		})
	}
}

func testWriter(t testing.TB, from1904 bool) *writer {
	w := newWriter(calendar{from1904})
	t.Cleanup(func() { w.Close() })
	return w
}

func TestSectionsArePartedOutsideQuotes(t *testing.T) {
	for code, want := range map[string]int{
		"": 1, "0;0": 2, `0";"0;0`: 2, `0\;0;0`: 2, `0";`: 1, `[Red];0`: 2, `[;0`: 2, "0_;;*;;0": 3, `0\`: 1, "_": 1,
	} {
		if got := splitSections(code); len(got) != want {
			t.Errorf("%q: %q", code, got)
		}
	}
}

func FuzzNumberFormat(f *testing.F) {
	for _, code := range []string{
		"0", "#,##0.00", `[<=9999999]###\-####;\(###\)\ ###\-####`, "0.00E+00", "# ?/?", "yyyy-mm-dd", "[h]:mm", "[$€-407] 0", ";;;", "General",
		`0"`, "[", "_", `\`, "0.0,0%%", "[<1]0;[>5]0", "[DBNum1]0", "ggge", "0.0.0", "@@", "AM/PM", "mmmmm.000",
	} {
		f.Add(code, 1234.5)
		f.Add(code, -1e300)
	}
	w := testWriter(f, false)
	f.Fuzz(func(t *testing.T, code string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) || len(code) > maxFormatCode {
			return
		}
		s := &shower{styles: &styles{formats: []*numberFormat{nil}, ids: []int{164}, codes: map[int]string{164: code}}, writer: w}
		if len(w.cells) > 1000 {
			clear(w.cells) // their places are taken again
		}
		c, err := s.number(strconv.FormatFloat(v, 'g', -1, 64), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.text) > 20*maxFormatCode+1000 || strings.Contains(c.text, "###") && !strings.Contains(code, "#") {
			t.Fatalf("%q", c.text)
		}
	})
}
