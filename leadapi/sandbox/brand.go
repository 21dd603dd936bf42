package sandbox

import (
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"leadferry/internal/spelling"
)

// TrunkID is the ID of the trunk organization of the sandbox's made-up brand. It stands in the path
// of every create, and leads may be assigned to it directly.
const TrunkID = "b1cb1816-7d85-457c-9f32-2a1422d00e17"

// RadiusLocatorID, RegionsLocatorID and MixedLocatorID are the IDs of the brand's three locators, one of each type.
const (
	RadiusLocatorID  = "1946f580-3cae-445c-9069-80ba1f71f6fa"
	RegionsLocatorID = "3b7040a0-38d0-4604-a124-e839b9cbfb00"
	MixedLocatorID   = "93f69c0d-5bf3-4ee9-9997-15295147816b"
)

// Organizations are those of the made-up brand, the trunk first. They are the same in every sandbox that has no Directory of its own.
func Organizations() []Organization { return slices.Clone(organizations) }

var brand = &Directory{trunkID: TrunkID, names: namesOf(organizations), locations: locations, locators: map[string]string{
	RadiusLocatorID: radiusOnly, RegionsLocatorID: regionsAndTerritories, MixedLocatorID: regionsTerritoriesRadius,
}}

func namesOf(list []Organization) map[string]string {
	names := map[string]string{}
	for _, o := range list {
		names[o.ID] = o.Name
	}
	return names
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

// locate has a locator choose the location, and so the organization. Each type needs a property of its own
// ("locationSearch object"). strict takes no other, and no postal code that is none of the brand's country, unless a territory holds it.
func (d *Directory) locate(f form, strict bool) (l location, err error) {
	id, err := f.required("locatorID")
	if err != nil {
		return l, err
	}
	if f["locationSearch"] == nil {
		return l, refuse(http.StatusBadRequest, "locationSearch is required with locatorID")
	}
	kind, known := d.locators[id]
	if !known {
		return l, refuse(http.StatusUnprocessableEntity, "the locator is not known; --directory names your own")
	}
	if kind != regionsAndTerritories {
		text, err := searchProperty(f, "searchText", kind, strict)
		return d.search(kind, text), err
	}
	text, err := searchProperty(f, "postalCode", kind, strict)
	if err != nil {
		return l, err
	}
	code := postalCode(text)
	l, held := d.territory(code)
	switch {
	case code == "" || strict && !held && !zipCode().MatchString(code):
		return l, refuse(http.StatusUnprocessableEntity, "no location serves this postal code")
	case !held:
		l = d.nearest(code)
	}
	return l, nil
}

func searchProperty(f form, name, kind string, strict bool) (string, error) {
	all, err := parseForm("locationSearch", f["locationSearch"], fields{"searchText": text, "postalCode": text}, strict)
	if err != nil {
		return "", err
	}
	if all[name] == nil || strict && len(all) > 1 {
		return "", refuse(http.StatusBadRequest, "a locator of the type %s takes %s in locationSearch", kind, name)
	}
	return all.required(name)
}

// search picks the location for a search text. A postal code in it counts first (within its territory where the locator
// has such), then the last city named. A text without either lies somewhere, and always in the same place.
func (d *Directory) search(kind, text string) location {
	words := searchable(text)
	if code := lastCode(words); code != "" {
		if l, held := d.territory(code); held && kind == regionsTerritoriesRadius {
			return l
		}
		return d.nearest(code)
	}
	best, at := -1, -1
	for i, l := range d.locations {
		city := searchable(l.city)
		if begin := strings.LastIndex(words, city); l.city != "" && begin >= 0 && begin+len(city) > at {
			best, at = i, begin+len(city)
		}
	}
	if best < 0 {
		return d.somewhere(words)
	}
	return d.locations[best]
}

// somewhere is a place of its own for each text.
func (d *Directory) somewhere(text string) location {
	h := fnv.New32a()
	h.Write([]byte(text))
	return d.locations[h.Sum32()%uint32(len(d.locations))]
}

// territory finds the location whose territory holds a postal code: of several the narrowest. Where codes are numbers they
// are of one length: one that lost its first zero is in none.
func (d *Directory) territory(code string) (found location, held bool) {
	longest := 0
	for _, l := range d.locations {
		if digits().MatchString(l.postalCode) && len(code) != len(l.postalCode) {
			continue
		}
		for t := range strings.FieldsSeq(l.territories) {
			if len(t) > longest && strings.HasPrefix(code, t) {
				found, longest = l, len(t)
			}
		}
	}
	return found, longest > 0
}

// nearest takes the distance between codes of five digits for that between places. Others are near where they begin
// alike.
func (d *Directory) nearest(code string) location {
	best := slices.MinFunc(d.locations, func(a, b location) int { return a.distance(code) - b.distance(code) })
	if best.distance(code) >= farAway {
		return d.somewhere(code)
	}
	return best
}

// farAway is the distance of codes that have nothing in common.
const farAway = 1 << 20

func (l location) distance(code string) int {
	if zipCode().MatchString(code) && zipCode().MatchString(l.postalCode) {
		own, _ := strconv.Atoi(l.postalCode)
		other, _ := strconv.Atoi(code)
		return max(own-other, other-own)
	}
	alike := 0
	for alike < min(len(code), len(l.postalCode)) && code[alike] == l.postalCode[alike] {
		alike++
	}
	return farAway - alike
}

var (
	digits     = spelling.Form(`^[0-9]+$`)
	zipCode    = spelling.Form(`^[0-9]{5}$`)
	longerZip  = spelling.Form(`^([0-9]{5})-[0-9]{4}$`)
	anyCode    = spelling.Form(`^[0-9A-Z](?:[ -]?[0-9A-Z]){1,9}$`)
	codeBlanks = strings.NewReplacer(" ", "", "-", "")
)

// postalCode returns the postal code that a text is, of whatever country, in the form in which codes are compared:
// SW1A1AA for "sw1a 1aa", 02134 for 02134-1000. It returns "" for what cannot be one: each has a digit.
func postalCode(text string) string {
	code := strings.ToUpper(strings.TrimSpace(text))
	if m := longerZip().FindStringSubmatch(code); m != nil {
		return m[1]
	}
	if !anyCode().MatchString(code) || !strings.ContainsAny(code, "0123456789") {
		return ""
	}
	return codeBlanks.Replace(code)
}

// lastCode returns the last of the words that is a postal code of five digits, or "".
func lastCode(words string) (code string) {
	for w := range strings.FieldsSeq(words) {
		if zipCode().MatchString(w) {
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
