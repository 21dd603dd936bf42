package sandbox

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSearchesFindThePlace(t *testing.T) {
	for _, tt := range []struct {
		locator LocatorType
		text    string
		city    string
	}{
		{RadiusOnly, "12 Elm Street, Houston, TX", "Houston"},
		{RadiusOnly, "12 ELM STREET, HOUSTON", "Houston"},
		{RadiusOnly, "5 Boston Road, San Diego", "San Diego"},
		{RadiusOnly, "St Louis", "St. Louis"},
		{RadiusOnly, "New York, NY", "New York"},
		{RadiusOnly, "Newark", "Newark"},
		{RadiusOnly, "12345 Long Road, Boston 98101", "Seattle"},
		{RadiusOnly, "Denver 02134-1000", "Boston"},
		{RadiusOnly, "29401", "Atlanta"},
		{RegionsTerritoriesRadius, "29401", "Charlotte"},
		{RadiusOnly, "07860", "Newark"},
		{RegionsTerritoriesRadius, "Denver 02134", "Boston"},
		{RegionsTerritoriesRadius, "12999", "New York"},
		{RadiusOnly, "12999", "Pittsburgh"}, // nearer by number, but in another territory
		{RegionsTerritoriesRadius, "99501", "Seattle"},
		{RegionsTerritoriesRadius, "Portland, Oregon", "Portland"},
	} {
		if got := search(tt.locator, tt.text); got.City != tt.city {
			t.Errorf("%s, %q: %s, want %s", tt.locator, tt.text, got.City, tt.city)
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
		kind := rapid.SampledFrom([]LocatorType{RadiusOnly, RegionsTerritoriesRadius}).Draw(t, "type")
		first, again := search(kind, text), search(kind, " -"+text+".")
		if first.Name == "" || first.Name != again.Name {
			t.Errorf("%q, then %q", first.Name, again.Name)
		}
	})
}

func TestTheDirectoryIsWhole(t *testing.T) {
	d := Directory()
	seen := map[string]bool{}
	for _, o := range d.Organizations {
		if !isUUID(o.ID) || seen[o.ID] {
			t.Errorf("%s has the ID %s", o.Name, o.ID)
		}
		seen[o.ID] = true
	}
	var served []string
	for _, l := range d.Locations {
		if !seen[l.OrganizationID] || l.Name == "" || !strings.HasSuffix(l.Address, l.PostalCode) {
			t.Errorf("location %+v", l)
		}
		if got := byTerritory(l.PostalCode); got.Name != l.Name {
			t.Errorf("%s is served by %s", l.Name, got.Name)
		}
		for code := range strings.FieldsSeq(l.Territories) {
			if slices.ContainsFunc(served, func(c string) bool { return strings.HasPrefix(c, code) || strings.HasPrefix(code, c) }) {
				t.Errorf("%s has two dealers", code)
			}
			served = append(served, code)
		}
	}
	types := []LocatorType{"Radius Only", "Regions and Territories", "Regions, Territories and Radius"}
	for i, l := range d.Locators {
		if l.Type != types[i] || !slices.Contains([]string{RadiusLocatorID, RegionsLocatorID, MixedLocatorID}, l.ID) {
			t.Errorf("locator %+v", l)
		}
	}
	d.Locations[0].Territories = "99"
	if d.Organizations[0].ID != TrunkID || Directory().Locations[0].Territories == "99" {
		t.Error("the trunk is not first, or the directory can be changed from outside")
	}
}
