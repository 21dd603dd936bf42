package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

// Locators of the built-in brand, besides [MixedLocatorID].
const (
	radiusLocator  = "1946f580-3cae-445c-9069-80ba1f71f6fa"
	regionsLocator = "3b7040a0-38d0-4604-a124-e839b9cbfb00"
)

func TestSearchesFindThePlace(t *testing.T) {
	for _, tt := range []struct{ kind, text, city string }{
		{radius, "12 Elm Street, Houston, TX", "Houston"},
		{radius, "5 Boston Road, San Diego", "San Diego"},
		{radius, "St Louis", "St. Louis"},
		{regionsAndRadius, "29401", "Charlotte"},
		{regionsAndRadius, "Denver 02134", "Boston"},
		{regionsAndRadius, "2000 Elm Street, Portland, Oregon", "Portland"},
		{regions, "02134-1000", "Boston"},
	} {
		if got := brand().search(tt.kind, tt.text); got.City != tt.city {
			t.Errorf("%s, %q: %s, want %s", tt.kind, tt.text, got.City, tt.city)
		}
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
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return LoadDirectory(path)
}

func TestAnOwnDirectoryDecidesAssignments(t *testing.T) {
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
		must.Same(t, want, fmt.Sprint(a["assignedOrganizationID"], " ", a["assignedLocationName"]), body, "assigned to")
	}
	for body, status := range map[string]int{named(boston): 422, located(radiusLocator, `{"searchText":"x"}`): 422} {
		refuses(t, s, ask(s, "POST", "/v1/brand-1", body, "Authorization", signIn(s)), status)
	}
	refuses(t, s, ask(s, "POST", "/v1/"+TrunkID, named("o-1"), "Authorization", signIn(s)), 404)
}

// A directory may be the help's example, or JSON. It may name only its trunk, or list the trunk as an organization.
func TestDirectoriesOfAllForms(t *testing.T) {
	for text, organizations := range map[string]int{
		DirectoryHelp: 3, "\ufeff" + `{"organizations": ["a", {"id": "b", "name": "B"}], "locators": [{"id": "l", "type": "radius"}]}`: 3,
		"trunk: t\nlocators: [{id: l, type: radius}]\n": 1, "trunk: t\norganizations: [a, {id: t, name: Mine}]\n": 2, "organizations: [" + TrunkID + "]\n": 1,
	} {
		d, err := loadDirectory(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if _, known := d.names[d.trunkID]; !known || len(d.names) != organizations || len(d.locations) == 0 {
			t.Errorf("%q: %+v", text, d)
		}
	}
}

func TestMistakesInADirectoryAreNamed(t *testing.T) {
	const one = "organizations: [a]\n"
	for text, want := range map[string]string{
		"": "mine.yaml", "organisations: [a]\n": "line 1",
		one + "locators:\n  - {id: l, kind: x}\n": "line 3",
		one + "locators:\n  - {id: l, type: x}\n": "the locator \"l\" has no type",
		"organizations:\n  - a b\n":               "\"a b\" cannot be the ID of the organization",
		"organizations:\n  - {name: x}\n":         "cannot be the ID of the organization",
		"organizations:\n  - ..\n":                "cannot be the ID of the organization",
		"organizations:\n  - [a]\n":               "mine.yaml",
		"organizations: [a\n":                     "mine.yaml",
		one + "---\n" + one:                       "multiple",
		one + "\xff":                              "UTF-8",
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
