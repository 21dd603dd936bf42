package sandbox

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSearchesFindThePlace(t *testing.T) {
	for _, tt := range []struct {
		locator string
		text    string
		city    string
	}{
		{radiusOnly, "12 Elm Street, Houston, TX", "Houston"},
		{radiusOnly, "12 ELM STREET, HOUSTON", "Houston"},
		{radiusOnly, "5 Boston Road, San Diego", "San Diego"},
		{radiusOnly, "St Louis", "St. Louis"},
		{radiusOnly, "New York, NY", "New York"},
		{radiusOnly, "Newark", "Newark"},
		{radiusOnly, "12345 Long Road, Boston 98101", "Seattle"},
		{radiusOnly, "Denver 02134-1000", "Boston"},
		{radiusOnly, "29401", "Atlanta"},
		{regionsTerritoriesRadius, "29401", "Charlotte"},
		{radiusOnly, "07860", "Newark"},
		{regionsTerritoriesRadius, "Denver 02134", "Boston"},
		{regionsTerritoriesRadius, "12999", "New York"},
		{radiusOnly, "12999", "Pittsburgh"}, // nearer by number, but in another territory
		{regionsTerritoriesRadius, "99501", "Seattle"},
		{regionsTerritoriesRadius, "Portland, Oregon", "Portland"},
	} {
		if got := search(tt.locator, tt.text); got.city != tt.city {
			t.Errorf("%s, %q: %s, want %s", tt.locator, tt.text, got.city, tt.city)
		}
	}
}

func TestTerritoryCodesAreFiveDigits(t *testing.T) {
	for text, want := range map[string]string{
		"02134": "02134", " 02134 ": "02134", "02134-1000": "02134",
		"": "", "2134": "", "021345": "", "0213a": "", "02134-": "", "02134-10": "", "K1A 0B1": "", "٠٢١٣٤": "",
	} {
		if got := territoryCode(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEverySearchFindsTheSamePlaceAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		kind := rapid.SampledFrom([]string{radiusOnly, regionsTerritoriesRadius}).Draw(t, "type")
		first, again := search(kind, text), search(kind, " -"+text+".")
		if first.name == "" || first.name != again.name {
			t.Errorf("%q, then %q", first.name, again.name)
		}
	})
}

func TestTheDirectoryIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Organizations() {
		if !isUUID(o.ID) || seen[o.ID] {
			t.Errorf("%s has the ID %s", o.Name, o.ID)
		}
		seen[o.ID] = true
	}
	var served []string
	for _, l := range locations {
		if !seen[l.organizationID] || l.name == "" || !strings.HasSuffix(l.address, l.postalCode) {
			t.Errorf("location %+v", l)
		}
		if got := byTerritory(l.postalCode); got.name != l.name {
			t.Errorf("%s is served by %s", l.name, got.name)
		}
		for code := range strings.FieldsSeq(l.territories) {
			if slices.ContainsFunc(served, func(c string) bool { return strings.HasPrefix(c, code) || strings.HasPrefix(code, c) }) {
				t.Errorf("%s has two dealers", code)
			}
			served = append(served, code)
		}
	}
	Organizations()[0].ID = "another"
	if Organizations()[0].ID != TrunkID {
		t.Error("the trunk is not first, or the organizations can be changed from outside")
	}
}
