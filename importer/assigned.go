package importer

import (
	"cmp"
	"slices"
	"strings"

	"leadferry/importer/report"
	"leadferry/mapping"
)

// Bounds of what is kept, and listed of each kind, of whom rows name.
const (
	maxAssigned  = 10000
	mostAssigned = 100
)

// assigned counts rows by whom they name.
type assigned struct {
	rows      map[destination]*int
	elsewhere [2]int // beyond maxAssigned: organizations, locators
}

// destination is an organization, or a locator with the entry of assign that names it.
type destination struct {
	organization, locator string
	entry                 int
}

func newAssigned() *assigned { return &assigned{rows: map[destination]*int{}} }

func (s *assigned) add(rec *mapping.Record) {
	d := destination{organization: rec.Organization}
	kind := 0
	if rec.Organization == "" {
		d.locator, d.entry, kind = rec.Locator, rec.Entry, 1
	}
	rows := s.rows[d]
	switch {
	case rows != nil:
	case len(s.rows) >= maxAssigned:
		rows = &s.elsewhere[kind]
	default:
		rows = new(int)
		d.organization, d.locator = strings.Clone(d.organization), strings.Clone(d.locator)
		s.rows[d] = rows
	}
	*rows++
}

// list gives organizations, then locators, each most rows first.
func (s *assigned) list() []report.Assignment {
	var organizations, locators []report.Assignment
	for d, rows := range s.rows {
		if d.organization != "" {
			organizations = append(organizations, report.Assignment{OrganizationID: d.organization, Rows: *rows})
		} else {
			locators = append(locators, report.Assignment{LocatorID: d.locator, Entry: d.entry, Rows: *rows})
		}
	}
	return append(most(organizations, "organizations", s.elsewhere[0]), most(locators, "locators", s.elsewhere[1])...)
}

// most keeps the most frequent of all and adds up the others, with those elsewhere.
func most(all []report.Assignment, others string, elsewhere int) []report.Assignment {
	slices.SortFunc(all, func(a, b report.Assignment) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.OrganizationID, b.OrganizationID),
			cmp.Compare(a.LocatorID, b.LocatorID), cmp.Compare(a.Entry, b.Entry))
	})
	for i := mostAssigned; i < len(all); i++ {
		elsewhere += all[i].Rows
	}
	all = all[:min(len(all), mostAssigned)]
	if elsewhere > 0 {
		all = append(all, report.Assignment{Others: others, Rows: elsewhere})
	}
	return all
}
