package sandbox

import (
	"hash/fnv"
	"net/http"
	"regexp"
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

// The types of locators under the names that the specification gives them. They say how one searches, and so which
// property of locationSearch it needs ("locationSearch object").
const (
	radiusOnly               = "Radius Only"
	regionsAndTerritories    = "Regions and Territories"
	regionsTerritoriesRadius = "Regions, Territories and Radius"
)

var locators = map[string]string{
	RadiusLocatorID: radiusOnly, RegionsLocatorID: regionsAndTerritories, MixedLocatorID: regionsTerritoriesRadius,
}

// Organization is one organization of the brand.
type Organization struct{ ID, Name string }

// Organizations are those that leads can be assigned to, the trunk first. They are the same in every sandbox.
func Organizations() []Organization { return slices.Clone(organizations) }

// location is one place of an organization. Its territories are the beginnings of the postal codes that it serves, with
// blanks between.
type location struct{ organizationID, name, city, address, postalCode, territories string }

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
	{TrunkID, "Larkfield Motors"},
	{boston, "Harbor Larkfield"},
	{newYork, "Hudson Larkfield"},
	{philadelphia, "Keystone Larkfield"},
	{baltimore, "Chesapeake Larkfield"},
	{atlanta, "Peachtree Larkfield"},
	{miami, "Biscayne Larkfield"},
	{chicago, "Lakeshore Larkfield"},
	{stLouis, "Gateway Larkfield"},
	{dallas, "Lone Star Larkfield"},
	{denver, "Front Range Larkfield"},
	{losAngeles, "Golden State Larkfield"},
	{seattle, "Evergreen Larkfield"},
}

var locations = []location{
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
func locate(f form) (l location, err error) {
	id, err := f.required("locatorID")
	if err != nil {
		return l, err
	}
	if f["locationSearch"] == nil {
		return l, refuse(http.StatusBadRequest, "locationSearch is required with locatorID")
	}
	kind, known := locators[id]
	if !known {
		return l, refuse(http.StatusUnprocessableEntity, "the locator is not known")
	}
	if kind != regionsAndTerritories {
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

func searchProperty(f form, name, kind string) (string, error) {
	all, err := parseForm("locationSearch", f["locationSearch"], fields{"searchText": text, "postalCode": text})
	if err != nil {
		return "", err
	}
	if all[name] == nil || len(all) > 1 {
		return "", refuse(http.StatusBadRequest, "a locator of the type %s takes %s and nothing else in locationSearch", kind, name)
	}
	return all.required(name)
}

// search picks the location for a search text. A postal code in it counts first (within its territory where the locator
// has such), then the last city named. A text without either lies somewhere, and always in the same place.
func search(kind, text string) location {
	words := searchable(text)
	if code := lastCode(words); code != "" {
		if kind == regionsTerritoriesRadius {
			return byTerritory(code)
		}
		return nearest(code)
	}
	best, at := -1, -1
	for i, l := range locations {
		city := searchable(l.city)
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
func byTerritory(code string) location {
	for _, l := range locations {
		for territory := range strings.FieldsSeq(l.territories) {
			if strings.HasPrefix(code, territory) {
				return l
			}
		}
	}
	return nearest(code)
}

// nearest takes the distance between postal codes for that between places.
func nearest(code string) location {
	n, _ := strconv.Atoi(code)
	return slices.MinFunc(locations, func(a, b location) int { return a.distance(n) - b.distance(n) })
}

func (l location) distance(code int) int {
	own, _ := strconv.Atoi(l.postalCode)
	return max(own-code, code-own)
}

var zipCode = regexp.MustCompile(`^([0-9]{5})(-[0-9]{4})?$`)

// territoryCode returns the five digits of a postal code such as 02134 or 02134-1000, or "".
func territoryCode(text string) string {
	if m := zipCode.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		return m[1]
	}
	return ""
}

// lastCode returns the last of the words that is a postal code, or "".
func lastCode(words string) (code string) {
	for w := range strings.FieldsSeq(words) {
		if zipCode.MatchString(w) {
			code = w
		}
	}
	return code
}

// searchable is the text as lower-case words, each between single spaces.
func searchable(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return " " + strings.Join(words, " ") + " "
}
