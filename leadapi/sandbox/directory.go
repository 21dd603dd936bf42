package sandbox

import (
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// TrunkID is the ID of the trunk organization of the sandbox's made-up brand. It stands in the path
// of every create, and leads may be assigned to it directly.
const TrunkID = "b1cb1816-7d85-457c-9f32-2a1422d00e17"

// RadiusLocatorID, RegionsLocatorID and MixedLocatorID are the IDs of the three locators, one of each type.
const (
	RadiusLocatorID  = "1946f580-3cae-445c-9069-80ba1f71f6fa"
	RegionsLocatorID = "3b7040a0-38d0-4604-a124-e839b9cbfb00"
	MixedLocatorID   = "93f69c0d-5bf3-4ee9-9997-15295147816b"
)

// LocatorType says how a locator searches, and so which property of locationSearch it needs
// ("locationSearch object").
type LocatorType string

// The locator types under the names that the specification gives them.
const (
	RadiusOnly               LocatorType = "Radius Only"
	RegionsAndTerritories    LocatorType = "Regions and Territories"
	RegionsTerritoriesRadius LocatorType = "Regions, Territories and Radius"
)

// Organization is one organization of the brand; City is where it has its seat.
type Organization struct{ ID, Name, City string }

// Location is one place of an organization. Territories are the beginnings of the postal codes that it serves, with blanks
// between.
type Location struct{ OrganizationID, Name, City, Address, PostalCode, Territories string }

// Locator is one configured search over all locations.
type Locator struct {
	ID, Name string
	Type     LocatorType
}

// Network is all that leads can be assigned to: the organizations (the trunk first), their locations and the locators.
type Network struct {
	Organizations []Organization
	Locations     []Location
	Locators      []Locator
}

// Directory returns the sandbox's network, the same one in every sandbox. The caller may change what it gets.
func Directory() Network {
	return Network{slices.Clone(organizations), slices.Clone(locations), slices.Clone(locators)}
}

const (
	boston       = "5bb7fb0f-d8d9-415b-8725-460b8ce504db"
	newYork      = "ce9c02e4-aafb-4062-97ff-bbaaeca05990"
	philadelphia = "0583542f-4cd5-413d-8c6e-3438c63be5a9"
	baltimore    = "e35fd989-b021-4ac8-8c31-76236de8809a"
	atlanta      = "dde53f64-b9a5-4b5f-b3c1-8c1b55270a2c"
	miami        = "2e432cd4-4edb-4a59-89e3-2949b3995201"
	chicago      = "8a1e6f91-0951-4549-a823-213cb38eb51c"
	stLouis      = "5fbd48da-8157-4056-9496-0b4de48e224b"
	dallas       = "1a306ce2-9f4a-4d58-afb7-fb492f5fca05"
	denver       = "db4b4019-d184-4f29-8669-d2723a604f08"
	losAngeles   = "233308a8-c720-4ded-8418-4a04f387583b"
	seattle      = "012e4e3f-a801-487e-9900-011f20c187c3"
)

var organizations = []Organization{
	{TrunkID, "Larkfield Motors", "Chicago"},
	{boston, "Harbor Larkfield", "Boston"},
	{newYork, "Hudson Larkfield", "New York"},
	{philadelphia, "Keystone Larkfield", "Philadelphia"},
	{baltimore, "Chesapeake Larkfield", "Baltimore"},
	{atlanta, "Peachtree Larkfield", "Atlanta"},
	{miami, "Biscayne Larkfield", "Miami"},
	{chicago, "Lakeshore Larkfield", "Chicago"},
	{stLouis, "Gateway Larkfield", "St. Louis"},
	{dallas, "Lone Star Larkfield", "Dallas"},
	{denver, "Front Range Larkfield", "Denver"},
	{losAngeles, "Golden State Larkfield", "Los Angeles"},
	{seattle, "Evergreen Larkfield", "Seattle"},
}

var locators = []Locator{
	{RadiusLocatorID, "Find a dealer near you", RadiusOnly},
	{RegionsLocatorID, "Sales territories", RegionsAndTerritories},
	{MixedLocatorID, "Territories, then the nearest dealer", RegionsTerritoriesRadius},
}

var locations = []Location{
	{boston, "Larkfield of Boston", "Boston", "12 Cambridge Street, Boston, MA 02134", "02134", "020 021 022 023 024"},
	{boston, "Larkfield of Providence", "Providence", "48 Dorrance Street, Providence, RI 02903", "02903", "027 028 029"},
	{newYork, "Larkfield of Manhattan", "New York", "301 West 57th Street, New York, NY 10019", "10019", "10 11 12"},
	{newYork, "Larkfield of Newark", "Newark", "90 Halsey Street, Newark, NJ 07102", "07102", "07 08"},
	{philadelphia, "Larkfield of Philadelphia", "Philadelphia", "815 Arch Street, Philadelphia, PA 19107", "19107", "17 18 19"},
	{philadelphia, "Larkfield of Pittsburgh", "Pittsburgh", "220 Penn Avenue, Pittsburgh, PA 15222", "15222", "15 16"},
	{baltimore, "Larkfield of Baltimore", "Baltimore", "77 Light Street, Baltimore, MD 21201", "21201", "20 21"},
	{baltimore, "Larkfield of Richmond", "Richmond", "1400 Main Street, Richmond, VA 23219", "23219", "22 23"},
	{atlanta, "Larkfield of Atlanta", "Atlanta", "640 Ponce Avenue, Atlanta, GA 30308", "30308", "30 31"},
	{atlanta, "Larkfield of Charlotte", "Charlotte", "512 Tryon Street, Charlotte, NC 28202", "28202", "27 28 29"},
	{miami, "Larkfield of Miami", "Miami", "1010 Brickell Avenue, Miami, FL 33131", "33131", "33"},
	{miami, "Larkfield of Orlando", "Orlando", "25 Orange Avenue, Orlando, FL 32801", "32801", "32 34"},
	{chicago, "Larkfield of Chicago", "Chicago", "2200 Clark Street, Chicago, IL 60614", "60614", "60 61"},
	{chicago, "Larkfield of Milwaukee", "Milwaukee", "333 Water Street, Milwaukee, WI 53202", "53202", "53 54"},
	{stLouis, "Larkfield of St. Louis", "St. Louis", "1818 Market Street, St. Louis, MO 63103", "63103", "62 63"},
	{dallas, "Larkfield of Dallas", "Dallas", "700 Commerce Street, Dallas, TX 75201", "75201", "75 76"},
	{dallas, "Larkfield of Houston", "Houston", "909 Fannin Street, Houston, TX 77002", "77002", "77 78"},
	{denver, "Larkfield of Denver", "Denver", "1600 Blake Street, Denver, CO 80202", "80202", "80 81"},
	{losAngeles, "Larkfield of Los Angeles", "Los Angeles", "450 Spring Street, Los Angeles, CA 90012", "90012", "90 91"},
	{losAngeles, "Larkfield of San Diego", "San Diego", "60 Harbor Drive, San Diego, CA 92101", "92101", "92"},
	{losAngeles, "Larkfield of San Francisco", "San Francisco", "1355 Mission Street, San Francisco, CA 94103", "94103", "94 95"},
	{seattle, "Larkfield of Seattle", "Seattle", "501 Pike Street, Seattle, WA 98101", "98101", "98"},
	{seattle, "Larkfield of Portland", "Portland", "88 Burnside Street, Portland, OR 97204", "97204", "97"},
}

// locate has a locator choose the location, and so the organization. Each type takes exactly the
// property that it needs ("locationSearch object").
func locate(f form) (l Location, err error) {
	id, err := f.required("locatorID")
	if err != nil {
		return l, err
	}
	if f["locationSearch"] == nil {
		return l, refuse(http.StatusBadRequest, "locationSearch is required with locatorID")
	}
	at := slices.IndexFunc(locators, func(o Locator) bool { return o.ID == id })
	if at < 0 {
		return l, refuse(http.StatusUnprocessableEntity, "the locator is not known")
	}
	kind := locators[at].Type
	if kind != RegionsAndTerritories {
		text, err := searchProperty(f, "searchText", kind)
		return search(kind, text), err
	}
	text, err := searchProperty(f, "postalCode", kind)
	if err != nil {
		return l, err
	}
	code := territoryCode(text)
	if code == "" {
		return l, refuse(http.StatusUnprocessableEntity, "no location serves this postal code")
	}
	return byTerritory(code), nil
}

func searchProperty(f form, name string, t LocatorType) (string, error) {
	all, err := parseForm("locationSearch", f["locationSearch"], fields{"searchText": text, "postalCode": text})
	if err != nil {
		return "", err
	}
	if all[name] == nil || len(all) > 1 {
		return "", refuse(http.StatusBadRequest, "a locator of the type %s takes %s and nothing else in locationSearch", t, name)
	}
	return all.required(name)
}

// search picks the location for a search text. A postal code in it counts first (within its territory where the locator
// has such), then the last city named. A text without either lies somewhere, and always in the same place.
func search(t LocatorType, text string) Location {
	words := searchable(text)
	if code := lastCode(words); code != "" {
		if t == RegionsTerritoriesRadius {
			return byTerritory(code)
		}
		return nearest(code)
	}
	best, at := -1, -1
	for i, l := range locations {
		city := searchable(l.City)
		if begin := strings.LastIndex(words, city); begin >= 0 && begin+len(city) > at {
			best, at = i, begin+len(city)
		}
	}
	if best < 0 {
		h := fnv.New32a()
		h.Write([]byte(words))
		best = int(h.Sum32() % uint32(len(locations)))
	}
	return locations[best]
}

// byTerritory picks the location of the territory that holds a postal code, or else the nearest one.
func byTerritory(code string) Location {
	for _, l := range locations {
		for territory := range strings.FieldsSeq(l.Territories) {
			if strings.HasPrefix(code, territory) {
				return l
			}
		}
	}
	return nearest(code)
}

// nearest takes the distance between postal codes for that between places.
func nearest(code string) Location {
	n, _ := strconv.Atoi(code)
	return slices.MinFunc(locations, func(a, b Location) int { return a.distance(n) - b.distance(n) })
}

func (l Location) distance(code int) int {
	own, _ := strconv.Atoi(l.PostalCode)
	return max(own-code, code-own)
}

// territoryCode returns the five digits of a postal code such as 02134 or 02134-1000, or "".
func territoryCode(text string) string {
	code, extra, long := strings.Cut(strings.TrimSpace(text), "-")
	if !digits(code, 5) || long && !digits(extra, 4) {
		return ""
	}
	return code
}

func lastCode(words string) (code string) {
	for w := range strings.FieldsSeq(words) {
		if digits(w, 5) {
			code = w
		}
	}
	return code
}

func digits(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789") == "" }

// searchable is the text as lower-case words, each between single spaces.
func searchable(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return " " + strings.Join(words, " ") + " "
}
