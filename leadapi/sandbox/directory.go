package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/spelling"
)

// The types of locators under the names that the specification gives them. They say how one searches, and so which
// property of locationSearch it needs ("locationSearch object").
const (
	radiusOnly               = "Radius Only"
	regionsAndTerritories    = "Regions and Territories"
	regionsTerritoriesRadius = "Regions, Territories and Radius"
)

// locatorTypes are their names in a mapping, and so in a directory.
var locatorTypes = map[string]string{
	"radius": radiusOnly, "regions": regionsAndTerritories, "regions-radius": regionsTerritoriesRadius,
}

// Organization is one organization of a brand.
type Organization struct{ ID, Name string }

// location is one place of an organization. Its territories are the beginnings of the postal codes that it serves, with
// blanks between; these and its own code are as postalCode writes them.
type location struct{ organizationID, name, city, address, postalCode, territories string }

// Directory is the brand that a Server serves: to which organizations leads can be assigned, and by which locators.
type Directory struct {
	trunkID   string
	names     map[string]string // of organizations by ID, the trunk too
	locators  map[string]string // type by ID
	locations []location
}

// TrunkID is the ID of the trunk organization, which stands in the path of every create; that of the made-up brand for nil.
func (d *Directory) TrunkID() string { return cmp.Or(d, brand).trunkID }

// DirectoryHelp describes the file of LoadDirectory.
const DirectoryHelp = `trunk: 3f2a...                        # default: the sandbox's own
organizations:
  - 9c1b...                           # an ID, or more:
  - id: 77aa...
    name: Northern Motors
    locations:  # where locators may send a lead; default: one of its name
      - {name: Leeds, city: Leeds, address: "1 High Street, Leeds LS1 4AP",
         postal_code: LS1 4AP, territories: [LS, WF1]}
locators:
  - {id: 0b1c..., type: regions}      # or radius, or regions-radius`

const directoryKeys = "its keys are trunk, organizations (id, name, locations with name, city, address, postal_code, territories) and locators (id, type)"

type directoryFile struct {
	Trunk         organizationEntry
	Organizations []organizationEntry
	Locators      []locatorEntry
}

type organizationEntry struct {
	ID, Name  string
	Locations []struct {
		Name, City, Address string
		PostalCode          string `yaml:"postal_code"`
		Territories         []string
	}
	at place
}

type locatorEntry struct {
	ID, Type string
	at       place
}

// place is where something stands in a file, from 1.
type place struct{ line, column int }

// UnmarshalYAML takes an ID alone, too.
func (o *organizationEntry) UnmarshalYAML(n *yaml.Node) error {
	o.at = place{n.Line, n.Column}
	if n.Kind == yaml.ScalarNode {
		return n.Load(&o.ID)
	}
	type plain organizationEntry
	return n.Load((*plain)(o), yaml.WithKnownFields())
}

// UnmarshalYAML notes the place.
func (l *locatorEntry) UnmarshalYAML(n *yaml.Node) error {
	l.at = place{n.Line, n.Column}
	type plain locatorEntry
	return n.Load((*plain)(l), yaml.WithKnownFields())
}

// maxDirectory is the largest file of LoadDirectory, in bytes: some 100,000 organizations.
const maxDirectory = 16 << 20

// LoadDirectory reads the user's own brand from a file in YAML or JSON, of the form of DirectoryHelp. Its errors name
// file, line and column, one on a line, each with a hint where there is one.
func LoadDirectory(path string) (*Directory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDirectory+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > maxDirectory:
		return nil, fmt.Errorf("%s: the file is larger than 16 MiB", path)
	}
	r := &directoryReader{path: path, seen: map[string]place{}, Directory: &Directory{names: map[string]string{}, locators: map[string]string{}}}
	var file directoryFile
	if r.syntax(yaml.Load(bytes.TrimPrefix(data, []byte("\ufeff")), &file, yaml.WithKnownFields())) {
		r.read(&file)
	}
	if r.errs != nil {
		return nil, errors.Join(r.errs...)
	}
	return r.Directory, nil
}

// directoryReader gathers what a file says and what is wrong with it.
type directoryReader struct {
	*Directory
	path string
	seen map[string]place
	errs []error
}

func (r *directoryReader) fail(at place, hint, format string, args ...any) {
	where := r.path
	if at.line > 0 {
		where += fmt.Sprintf(":%d:%d", at.line, at.column)
	}
	if hint != "" {
		hint = "\nhint: " + hint
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %s%s", where, fmt.Sprintf(format, args...), hint))
}

// unknownKey is what the YAML reader says of a key that has no place in the type into which it reads.
var unknownKey = spelling.Form(`(?s)^field (.+) not found in type .*`)

// syntax reports whether the file could be read, and takes down the YAML reader's errors.
func (r *directoryReader) syntax(err error) bool {
	var faults []*yaml.LoadError
	if all, several := errors.AsType[*yaml.LoadErrors](err); several {
		faults = all.Errors
	} else if one, single := errors.AsType[*yaml.LoadError](err); single {
		faults = []*yaml.LoadError{one}
	} else if err != nil {
		r.fail(place{}, "", "the directory cannot be read as YAML")
	}
	for _, fault := range faults {
		text := fault.Message
		if text == "" && fault.Unwrap() != nil {
			text = strings.TrimPrefix(fault.Unwrap().Error(), "yaml: ")
		}
		if text = unknownKey().ReplaceAllString(text, "unknown key $1"); strings.HasPrefix(text, "cannot construct ") {
			text = "a value of another kind is wanted here"
		}
		r.fail(place{fault.Mark.Line, fault.Mark.Column}, directoryKeys, "%s", text)
	}
	return err == nil
}

func (r *directoryReader) read(file *directoryFile) {
	if file.Trunk.ID == "" && len(file.Organizations) == 0 {
		r.fail(place{}, "list the IDs of your organizations under organizations:", "the directory names no organization")
	}
	trunk := &file.Trunk
	trunk.ID = cmp.Or(trunk.ID, TrunkID)
	r.trunkID = trunk.ID
	listed := slices.ContainsFunc(file.Organizations, func(o organizationEntry) bool { return o.ID == trunk.ID })
	if !listed { // as it may be in a list of all of them
		r.organization(trunk, len(file.Organizations) == 0)
	}
	for i := range file.Organizations {
		r.organization(&file.Organizations[i], true)
	}
	for _, l := range file.Locators {
		kind := locatorTypes[l.Type]
		if kind == "" {
			r.fail(l.at, "radius, regions or regions-radius, as in a mapping's assign", "the locator has no type, or one that is not known")
		}
		if r.id(l.ID, "locator", l.at) {
			r.locators[l.ID] = kind
		}
	}
}

// organization adds an organization and its locations; one without is a location itself, if it may be.
func (r *directoryReader) organization(o *organizationEntry, located bool) {
	if !r.id(o.ID, "organization", o.at) {
		return
	}
	r.names[o.ID] = o.Name
	if len(o.Locations) == 0 && located {
		r.locations = append(r.locations, location{organizationID: o.ID, name: o.Name})
	}
	for _, l := range o.Locations {
		place := location{organizationID: o.ID, name: cmp.Or(l.Name, o.Name), city: l.City, address: l.Address}
		if place.postalCode = postalCode(l.PostalCode); place.postalCode == "" && l.PostalCode != "" {
			r.fail(o.at, "", "the postal code of a location of this organization cannot be one")
		}
		for _, t := range l.Territories {
			place.territories += " " + codeBlanks.Replace(strings.ToUpper(t))
		}
		r.locations = append(r.locations, place)
	}
}

var validID = spelling.Form(`^[A-Za-z0-9._-]{1,128}$`)

// id reports whether an ID can be one and is new.
func (r *directoryReader) id(id, what string, at place) bool {
	first, again := r.seen[what+id]
	switch {
	case !validID().MatchString(id) || strings.Trim(id, ".") == "":
		r.fail(at, "letters, digits, and . _ - only, at most 128", "the %s has no ID, or one that cannot be", what)
	case again:
		r.fail(at, "", "the %s stands on line %d already", what, first.line)
	default:
		r.seen[what+id] = at
		return true
	}
	return false
}
