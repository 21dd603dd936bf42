package sandbox

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/spelling"
)

// IDs of the made-up brand.
const (
	TrunkID        = "b1cb1816-7d85-457c-9f32-2a1422d00e17" // the trunk organization, to which leads may be assigned
	MixedLocatorID = "93f69c0d-5bf3-4ee9-9997-15295147816b" // a locator that takes postal codes and cities
)

// The types of locators. regions takes a postal code, the others take a search text ("locationSearch object").
const (
	radius           = "radius"
	regions          = "regions"
	regionsAndRadius = "regions-radius"
)

// organization is one organization of a brand.
type organization struct {
	ID, Name  string
	Locations []location
	line      int
}

// location is one place of an organization. Its territories are the beginnings of the postal codes that it serves.
type location struct {
	Name, City, Address string
	PostalCode          string `yaml:"postal_code"`
	Territories         []string
	organizationID      string
}

// Directory is the brand that a Server serves: the organizations that can get leads, and the locators.
type Directory struct {
	trunkID   string
	names     map[string]string // of organizations by ID, the trunk too
	locators  map[string]string // type by ID
	locations []location
}

//go:embed brand.yaml
var brandFile []byte

// brand is the made-up brand. It is read on first use.
var brand = sync.OnceValue(func() *Directory {
	d, err := readDirectory("brand.yaml", brandFile)
	if err != nil {
		panic(err) // tests find it
	}
	return d
})

// TrunkID returns the ID of the trunk organization, which is in the path of every create; for nil, the made-up brand's.
func (d *Directory) TrunkID() string { return cmp.Or(d, brand()).trunkID }

// DirectoryHelp describes the file of LoadDirectory.
//
//go:embed directory.txt
var DirectoryHelp string

const directoryKeys = "its keys are trunk, organizations (id, name, locations with name, city, address, postal_code, " +
	"territories) and locators (id, type)"

// UnmarshalYAML accepts an object or an ID alone.
func (o *organization) UnmarshalYAML(n *yaml.Node) error {
	o.line = n.Line
	if n.Kind == yaml.ScalarNode {
		return n.Load(&o.ID)
	}
	type plain organization
	return n.Load((*plain)(o), yaml.WithKnownFields())
}

// LoadDirectory reads the user's own brand from a file in YAML or JSON. DirectoryHelp describes its form.
func LoadDirectory(path string) (*Directory, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return readDirectory(path, data)
}

func readDirectory(path string, data []byte) (*Directory, error) {
	type directory struct {
		Trunk         organization
		Organizations []organization
		Locators      []struct{ ID, Type string }
	}
	var file directory
	if err := yaml.Load(bytes.TrimPrefix(data, []byte("\ufeff")), &file, yaml.WithKnownFields()); err != nil {
		text := typeName().ReplaceAllString(err.Error(), "")
		return nil, errors.New(spelling.Sentence(path, 0, 0, text, directoryKeys))
	}
	var errs []error
	wrong := func(is bool, line int, hint, form string, args ...any) {
		if is {
			errs = append(errs, errors.New(spelling.Sentence(path, line, 0, fmt.Sprintf(form, args...), hint)))
		}
	}
	alone := len(file.Organizations) == 0
	file.Trunk.ID = cmp.Or(file.Trunk.ID, TrunkID)
	d := &Directory{trunkID: file.Trunk.ID, names: map[string]string{}, locators: map[string]string{}}
	wrongID := func(line int, what, id string) {
		fits := validID().MatchString(id) && strings.Trim(id, ".") != ""
		const hint = "letters, digits, and . _ - only, at most 128"
		wrong(!fits, line, hint, "%.64q cannot be the ID of the %s", id, what)
	}
	listed := slices.ContainsFunc(file.Organizations, func(o organization) bool { return o.ID == d.trunkID })
	if !listed { // a list of all organizations may have the trunk
		file.Organizations = slices.Insert(file.Organizations, 0, file.Trunk)
	}
	for i, o := range file.Organizations {
		wrongID(o.line, "organization", o.ID)
		if len(o.Locations) == 0 && (i > 0 || listed || alone) { // otherwise it is the trunk, to which no locator leads
			o.Locations = []location{{}}
		}
		d.add(o)
	}
	for _, l := range file.Locators {
		typed := slices.Contains([]string{radius, regions, regionsAndRadius}, l.Type)
		wrong(!typed, 0, "radius, regions or regions-radius", "the locator %.64q has no type", l.ID)
		wrongID(0, "locator", l.ID)
		d.locators[l.ID] = l.Type
	}
	return d, errors.Join(errs...)
}

func (d *Directory) add(o organization) {
	d.names[o.ID] = o.Name
	for _, l := range o.Locations {
		l.organizationID, l.Name = o.ID, cmp.Or(l.Name, o.Name)
		l.Territories = append(l.Territories, l.PostalCode)
		for i, t := range l.Territories {
			l.Territories[i] = postalCode(t)
		}
		d.locations = append(d.locations, l)
	}
}

var (
	typeName = spelling.Form(` (?:in type|into) sandbox\.\w+`) // how the YAML reader names types of this package
	validID  = spelling.Form(`^[A-Za-z0-9._-]{1,128}$`)

	fiveDigits = spelling.Form(`\b\d{5}\b`)
)

// locate returns the location that a locator chooses, and with it the organization ("locationSearch object").
func (d *Directory) locate(locator *string, by *search) location {
	id := required("locatorID", locator)
	require(by != nil, http.StatusBadRequest, "locationSearch is required with locatorID")
	kind, known := d.locators[id]
	require(known, http.StatusUnprocessableEntity, "the locator is not known; --directory names your own")
	name, given, other := "searchText", by.SearchText, by.PostalCode
	if kind == regions {
		name, given, other = "postalCode", other, given
	}
	value := required(name, given)
	require(other == nil, http.StatusBadRequest, "this locator takes %s alone", name)
	parted := slices.ContainsFunc(d.locations, func(l location) bool { return strings.Join(l.Territories, "") != "" })
	served := kind != regions || !parted || d.territory(postalCode(value)) >= 0
	require(served, http.StatusUnprocessableEntity, "no location serves this postal code")
	return d.search(kind, value)
}

// search picks the location of a postal code (in a text: of five digits), else that of the last city in it. For a text
// without either it picks some location, always the same one.
func (d *Directory) search(kind, value string) location {
	best := -1
	switch kind {
	case regions:
		best = d.territory(postalCode(value))
	case regionsAndRadius:
		for _, code := range fiveDigits().FindAllString(value, -1) {
			best = d.territory(code)
		}
	}
	if best >= 0 {
		return d.locations[best]
	}
	words, at := searchable(value), -1
	h := fnv.New32a()
	h.Write([]byte(words))
	best = int(h.Sum32() % uint32(len(d.locations)))
	for i, l := range d.locations {
		if begin := strings.LastIndex(words, searchable(l.City)); l.City != "" && begin > at {
			best, at = i, begin
		}
	}
	return d.locations[best]
}

// territory returns the index of the location with the longest territory that code begins with; -1: there is none.
func (d *Directory) territory(code string) (best int) {
	best, longest := -1, 0
	for i, l := range d.locations {
		for _, t := range l.Territories {
			if len(t) > longest && strings.HasPrefix(code, t) {
				best, longest = i, len(t)
			}
		}
	}
	return best
}

// postalCode returns the form in which postal codes of any country are compared: SW1A1AA for "sw1a 1aa".
func postalCode(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToUpper(text), " ", ""), "-", "")
}

// searchable returns the text as lower-case words, each between single spaces.
func searchable(text string) string {
	parts := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), parts), " ") + " "
}
