package propose

import (
	"slices"
	"strings"
	"testing"
)

func TestKindsOfCells(t *testing.T) {
	judged := strings.Fields("email phone postal url uuid date yesno country street given person damaged prefixed object")
	for cell, want := range map[string]string{
		"ann@x.example": "email", "ann@localhost": "", "a b@x.example": "", "+49 (0)351 555-0140": "phone", "1-222-505-424": "phone", "201.555.0100 x12": "phone",
		"p:+4915155501301": "phone prefixed", "4.91761E+11": "phone damaged", "01067": "postal", "SW1A 1AA": "postal", "K1A 0B1": "postal", "z:50667": "postal prefixed",
		"2026-01-02": "date", "2026-01-02T10:11:12+01:00": "date", "03.01.2026 10:05": "date", "15 Apr, 2021 00:03:00": "date", "01/02/2026": "date",
		"20260102": "postal date", "98765432": "phone postal", "8a1e6f91-0951-4549-a823-213cb38eb51c": "uuid", "https://x.example/a": "url", "www.x.example": "url",
		"ja": "yesno", "N": "yesno", "Deutschland": "country", "US": "country", "Hauptstraße 12": "street", "12 rue des Lilas": "street", "446 Glendale Place": "street",
		"Jürgen": "given", "Sabine Kranz": "person", "New Castle": "", "4111 1111 1111 1111": "", "4111111111111112": "",
		"123-45-6789": "phone", `{"a":1}`: "object", "hello there": "", strings.Repeat("x", 300): "", "999999": "phone postal",
	} {
		got := slices.DeleteFunc(kindsOf(cell), func(kind string) bool { return !slices.Contains(judged, kind) })
		slices.Sort(got)
		want := strings.Fields(want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}
