package sandbox

import (
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"leadferry/internal/lazyregexp"
)

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
	digits     = lazyregexp.New(`^[0-9]+$`)
	zipCode    = lazyregexp.New(`^[0-9]{5}$`)
	longerZip  = lazyregexp.New(`^([0-9]{5})-[0-9]{4}$`)
	anyCode    = lazyregexp.New(`^[0-9A-Z](?:[ -]?[0-9A-Z]){1,9}$`)
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
