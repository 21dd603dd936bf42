package sandbox

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is a location made ready for searches.
type place struct {
	Location
	words  string // the city as searchable gives it
	number int    // the postal code
}

func newPlaces() []place {
	ps := make([]place, len(locations))
	for i, l := range locations {
		n, _ := strconv.Atoi(l.PostalCode)
		ps[i] = place{l, searchable(l.City), n}
	}
	return ps
}

// search picks the location for a search text ("locationSearch object"). A postal code in it counts
// first (within its territory where the locator has such), then the last city named. A text
// without either lies somewhere, and always in the same place.
func search(places []place, t LocatorType, text string) place {
	words := searchable(text)
	if code := lastCode(words); code != "" {
		if t == RegionsTerritoriesRadius {
			return byTerritory(places, code)
		}
		return nearest(places, code)
	}
	best, at := -1, -1
	for i, p := range places {
		if end := strings.LastIndex(words, p.words) + len(p.words); end >= len(p.words) && end > at {
			best, at = i, end
		}
	}
	if best < 0 {
		h := fnv.New32a()
		h.Write([]byte(words))
		best = int(h.Sum32() % uint32(len(places)))
	}
	return places[best]
}

// byTerritory picks the location of the territory that holds a postal code, or else the nearest one.
func byTerritory(places []place, code string) place {
	for _, p := range places {
		if slices.ContainsFunc(p.Territories, func(t string) bool { return strings.HasPrefix(code, t) }) {
			return p
		}
	}
	return nearest(places, code)
}

// nearest takes the distance between postal codes for that between places.
func nearest(places []place, code string) place {
	n, _ := strconv.Atoi(code)
	best, least := 0, 1<<30
	for i, p := range places {
		if d := max(n-p.number, p.number-n); d < least {
			best, least = i, d
		}
	}
	return places[best]
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
