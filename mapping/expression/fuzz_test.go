package expression

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzExpression computes any expression over any cells.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`int(a) * 10`, `let x = split(a, ","); map(x, # + b) | join("-")`, `a.b[0]?.c ?? "x"`, `$env["a b"] matches "^x{2}$"`, `a[1:-1] + repeat(b, 3)`,
		`if a == "" {1} else {2.5}`, `{"x": a}[b]`, `sort(split(a, "")) | filter(# not in ["x"]) | reverse() | first()`, `1..9 | sum()`, `"\u00e9" + 'x'`, `#`, `::len(a)`,
	} {
		f.Add(seed, "7", "x,y")
	}
	f.Fuzz(func(t *testing.T, expr, a, b string) {
		p, fault := Compile(expr)
		if fault != nil {
			if fault.Text == "" || strings.ContainsRune(fault.Text, 0) && !strings.ContainsRune(expr, 0) {
				t.Fatalf("the fault %#v", fault)
			}
			return
		}
		cell := func(i int) string { return []string{a, b}[i%2] }
		first, broken := p.Text(cell)
		if again, brokenAgain := p.Text(cell); first != again || fmt.Sprint(broken) != fmt.Sprint(brokenAgain) {
			t.Fatalf("%q %v, then %q %v", first, broken, again, brokenAgain)
		}
		if broken == nil && !utf8.ValidString(first) && utf8.ValidString(a+b) {
			t.Fatalf("%q is no text", first)
		}
	})
}
