package rowkey

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Rows of two namespaces never have the same key or look alike, whatever their cells hold. faults 131
func TestKeysOfDifferentNamespacesNeverCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", "", "a", "a.b", "dealers"})
		key := rapid.OneOf(rapid.StringMatching(`[/a b.é]{1,6}|dealers/[0-9]`), rapid.String())
		s1, k1, s2, k2 := space.Draw(t, "space"), key.Draw(t, "key"), space.Draw(t, "other space"), key.Draw(t, "other key")
		one, other := Effective(s1, k1), Effective(s2, k2)
		if (s1 != s2 || k1 != k2) && one == other {
			t.Fatalf("%q in %q and %q in %q are both %q", k1, s1, k2, s2, one)
		}
		if s1 != s2 && Fold(one) == Fold(other) {
			t.Fatalf("%q in %q looks like %q in %q", k1, s1, k2, s2)
		}
	})
}

func TestFold(t *testing.T) {
	const id = "0b1c2d3e-0000-4000-8000-00000000abcd"
	for key, want := range map[string]string{
		"12": "12", "00012": "12", "0": "0", "000": "0", "1200": "1200", "0x12": "0x12", "-012": "-012", "00.5": "00.5",
		"a 1": "a1", " a\t1\u00a0": "a1", "a\u200b1\ufeff": "a1", "0 0 1 2": "12", "\u200b012": "12",
		"Zoe\u0308": "Zoë", "Zoë": "Zoë", "Ａ１": "A1", "００１２": "12",
		"Ann": "Ann", "Ann@X.de": "ann@x.de", "Ann＠x.de": "ann@x.de", "JÖRG@x.de": "jörg@x.de", "ann@x.de": "ann@x.de",
		strings.ToUpper(id): id, id: id, strings.ToUpper(id) + "X": strings.ToUpper(id) + "X",
		"dealers\x1f00012": "dealers\x1f12", "dealers\x1f0": "dealers\x1f0", "dealers/18": "dealers/18", "dealers /18": "dealers/18",
		"//007": "//007", "a/b/ 1": "a/b/1", "00/12": "00/12", "row-a042b1a67532a4fa802fe9fb19396ae9": "row-a042b1a67532a4fa802fe9fb19396ae9",
		"\u200b": "", "ns\x1f\u200b": "ns\x1f",
		"1001.0": "1001", "001001.0": "1001", "1001.00": "1001", "100.001,00": "100001", "100,001.0000": "100001", "1001.000": "1001", "100.000": "100000", "1.2.00": "1.2.00", ".0": ".0", "1.": "1.", "1.5": "1.5", "a.0": "a.0", `="00012"`: "12", `"C-1"`: "C-1", "'00012": "12", "'Ann": "Ann",
		"{" + strings.ToUpper(id) + "}": id, "{" + id + "}": id, "{id}": "{id}", "+4912": "4912", "+49 12": "4912", "+Ann": "+Ann",
		"100,001": "100001", "1,234,567": "1234567", "1,23": "1,23", "10.000": "10000", "12,34,567": "1234567", "1'234’567": "1234567", "1.2.0": "1.2.0", "1.23": "1.23", "1234,567": "1234,567", "1,000.0": "1000", "ns\x1f100,001": "ns\x1f100001",
		"001A0000006Vm9u": "001A0000006Vm9u", "001A0000006Vm9uIAC": "001A0000006Vm9u", "001A0000006Vm9uIAX": "001A0000006Vm9uIAX", "001a0000006vm9uIAC": "001a0000006vm9uIAC",
	} {
		if got := Fold(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// A key is cut if a spreadsheet shortened its digits or put an error in its place.
func TestIsCut(t *testing.T) {
	for key, want := range map[string]bool{
		"1.23457E+11": true, "4,91512E+11": true, "1.2E+05": true, "1E+05": false, "1E+11": true, "1e5": false, "1.23457e+11": false, "12.3E+4": false, "1.E+4": false, "1.2E-4": false,
		"1.2E+": false, "A.2E+4": false, "": false, "E+": false, "1.23457E+11x": false,
		"#N/A": true, "#NV": true, "#DIV/0!": true, "#NAME?": true, "####": true, "#1": false, "#NA": false, "# N/A": false,
	} {
		if IsCut(key) != want {
			t.Errorf("%q: want %v", key, want)
		}
	}
}

func TestFoldIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9 /@A-C\x{200B}\x{0308}\x{1E9E}\x{0130}\x{FF21}\x{3000}]{0,12}`), rapid.StringMatching(`[0-9'="{}+.,/AI]{0,9}|[0-9]{3}[A-Z0-9]{12}[A-P]{3}`)).Draw(t, "key")
		if once := Fold(key); Fold(once) != once {
			t.Fatalf("%q: %q, then %q", key, once, Fold(once))
		}
	})
}

// A set has exactly the keys that were added, however many it was made for.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, want := NewSet(rapid.IntRange(0, 20).Draw(t, "room")), map[string]bool{}
		for _, key := range rapid.SliceOf(rapid.StringMatching(`[a-d]{0,3}`)).Draw(t, "keys") {
			k.Add(key)
			want[key] = true
		}
		k.Close()
		for _, key := range append(slices.Collect(maps.Keys(want)), "", "x") {
			if k.Has(key) != want[key] {
				t.Fatalf("Has(%q) is %v", key, !want[key])
			}
		}
	})
}
