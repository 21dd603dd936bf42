package xlsx

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"leadferry/internal/testsupport/must"
)

// Whole numbers of up to 15 digits come through digit for digit, however they are written. faults 100
func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	format := compile("General")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-exactLimit+1, exactLimit-1).Draw(t, "number")
		form := rapid.SampledFrom([]byte("fgE")).Draw(t, "form")
		v, err := strconv.ParseFloat(strconv.FormatFloat(float64(n), form, -1, 64), 64)
		must.Do(t, err)
		got, wrong := format.show(v, false)
		if wrong != nil || got != strconv.FormatInt(n, 10) {
			t.Fatalf("%d: %+v, %v", n, got, wrong)
		}
	})
}

func FuzzNumberFormat(f *testing.F) {
	for _, code := range []string{
		"0", "#,##0.00", `[<=9999999]###\-####;\(###\)\ ###\-####`, "0.00E+00", "# ?/?", "yyyy-mm-dd", "[h]:mm", "[$€-407] 0", ";;;", "General",
		`0"`, "[", "_", `\`, "0.0,0%%", "[<1]0;[>5]0", "[DBNum1]0", "ggge", "0.0.0", "@@", "AM/PM", "mmmmm.000",
	} {
		f.Add(code, 1234.5)
		f.Add(code, -1e300)
	}
	f.Fuzz(func(t *testing.T, code string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) || len(code) > maxCode {
			return
		}
		shown, wrong := compile(code).show(v, false)
		if wrong != nil {
			return
		}
		if len(shown) > 20*maxCode+1000 || strings.Contains(shown, "###") && !strings.Contains(code, "#") {
			t.Fatalf("%q", shown)
		}
	})
}
