package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
		if got := brand.search(tt.locator, tt.text); got.city != tt.city {
			t.Errorf("%s, %q: %s, want %s", tt.locator, tt.text, got.city, tt.city)
		}
	}
}

func TestPostalCodesOfAnyCountry(t *testing.T) {
	for text, want := range map[string]string{
		"02134": "02134", " 02134 ": "02134", "02134-1000": "02134", "021341000": "021341000",
		"SW1A 1AA": "SW1A1AA", "sw1a1aa": "SW1A1AA", "K1A 0B1": "K1A0B1", "1010": "1010", "D02 AF30": "D02AF30",
		"100-0001": "1000001", "01310-100": "01310100", "C1420AAB": "C1420AAB", "HM 12": "HM12", "101": "101",
		"": "", "7": "", "n/a": "", "Leeds": "", "02134-": "", "12  34": "", "\u0662\u0661\u0663": "", "12345678901": "", "1_000": "",
	} {
		if got := postalCode(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEverySearchFindsTheSamePlaceAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		kind := rapid.SampledFrom([]string{radiusOnly, regionsTerritoriesRadius}).Draw(t, "type")
		first, again := brand.search(kind, text), brand.search(kind, " -"+text+".")
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
		if got, _ := brand.territory(l.postalCode); got.name != l.name {
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

const ownDirectory = `trunk: {id: brand-1, name: Mine}
organizations:
  - o-1
  - 0042
  - id: leeds
    name: Northern
    locations:
      - {name: Leeds, city: Leeds, postal_code: LS1 4AP, territories: [LS, "wf1 "], address: "1 High Street"}
      - {city: York, postal_code: YO1 7HH, territories: [YO, LS29]}
locators:
  - {id: by-code, type: regions}
  - {id: by-place, type: radius}
  - {id: by-both, type: regions-radius}
`

func loadDirectory(t *testing.T, text string) (*Directory, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadDirectory(path)
}

func TestADirectoryOfOnesOwn(t *testing.T) {
	d, err := loadDirectory(t, ownDirectory)
	if err != nil || d.TrunkID() != "brand-1" {
		t.Fatal(d, err)
	}
	s := open(t, Options{Directory: d})
	located := func(id, search string) string {
		return `{"locatorID":"` + id + `","locationSearch":` + search + `,"content":{},"typeKey":"k","typeLabel":"l"}`
	}
	named := func(id string) string { return strings.Replace(direct(`{}`), boston, id, 1) }
	for body, want := range map[string]string{
		named("o-1"):     "o-1 ",
		named("0042"):    "0042 ",
		named("brand-1"): "brand-1 ",
		located("by-code", `{"postalCode":"ls1 4ap"}`):        "leeds Leeds",
		located("by-code", `{"postalCode":"LS29 0AA"}`):       "leeds Northern", // the narrower territory
		located("by-code", `{"postalCode":"WF1 2AB"}`):        "leeds Leeds",
		located("by-place", `{"searchText":"5 Mill, York"}`):  "leeds Northern",
		located("by-both", `{"searchText":"LEEDS, England"}`): "leeds Leeds",
	} {
		w := ask(s, "POST", "/v1/brand-1", body, "Authorization", signIn(s))
		if w.Code != 201 {
			t.Errorf("%s: %s", body, w.Body)
			continue
		}
		a := decode(t, w)
		if got := fmt.Sprint(a["assignedOrganizationID"], " ", a["assignedLocationName"]); got != want {
			t.Errorf("%s: assigned to %s, want %s", body, got, want)
		}
	}
	for body, status := range map[string]int{named(boston): 422, located(RadiusLocatorID, `{"searchText":"x"}`): 422} {
		refuses(t, s, ask(s, "POST", "/v1/brand-1", body, "Authorization", signIn(s)), status)
	}
	refuses(t, s, ask(s, "POST", "/v1/"+TrunkID, named("o-1"), "Authorization", signIn(s)), 404)
}

func TestTheDirectoryOfTheHelpIsOne(t *testing.T) {
	d, err := loadDirectory(t, DirectoryHelp)
	if err != nil || len(d.names) != 3 || len(d.locators) != 1 || len(d.locations) != 2 {
		t.Error(d, err)
	}
}

// TestTheTrunkIsAnOrganization: alone, or in a list of all of them.
func TestTheTrunkIsAnOrganization(t *testing.T) {
	for _, text := range []string{"trunk: t\nlocators: [{id: l, type: radius}]\n", "trunk: t\norganizations: [a, {id: t, name: Mine}]\n", "organizations: [" + TrunkID + "]\n"} {
		d, err := loadDirectory(t, text)
		if _, known := d.names[d.trunkID]; err != nil || !known || len(d.locations) == 0 {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
}

func TestADirectoryCanBeJSON(t *testing.T) {
	d, err := loadDirectory(t, "\ufeff"+`{"organizations": ["a", {"id": "b", "name": "B"}], "locators": [{"id": "l", "type": "radius"}]}`)
	if _, known := d.names["b"]; err != nil || d.TrunkID() != TrunkID || !known {
		t.Error(d, err)
	}
}

func TestMistakesInADirectoryAreNamedByLine(t *testing.T) {
	const one = "organizations: [a]\n"
	for text, want := range map[string]string{
		"":                     "yaml",
		"locators: []\n":       "names no organization",
		"organisations: [a]\n": ":1:1: unknown key organisations",
		one + "locators:\n  - {id: l, kind: x}\n":                          ":3:13: unknown key kind",
		one + "locators:\n  - {id: l, type: x}\n":                          ":3:5: the locator has no type",
		one + "locators:\n  - l\n":                                         ":3:5: ",
		"organizations:\n  - a\n  - {id: a}\n":                             ":3:5: the organization stands on line 2 already",
		"organizations:\n  - a b\n":                                        ":2:5: the organization has no ID, or one that cannot be",
		"organizations:\n  - {name: x}\n":                                  ":2:5: the organization has no ID",
		"organizations:\n  - ..\n":                                         ":2:5: the organization has no ID",
		"organizations:\n  - [a]\n":                                        ":2:5: ",
		"organizations: a\n":                                               ":1:16: ",
		"organizations: [a, a]\n":                                          ":1:20: the organization stands on line 1 already",
		"organizations: [a\n":                                              ":2:1: ",
		"organizations:\n- id: a\n  locations: [{postal_code: nowhere}]\n": ":2:3: the postal code of a location",
		one + "---\n" + one:                                                "multiple",
		one + "\xff":                                                       "UTF-8",
	} {
		_, err := loadDirectory(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "mine.yaml") || strings.Contains(err.Error(), "sandbox.") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := LoadDirectory(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
