package sandbox

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

var createFields = fields{
	"organizationID": text, "locatorID": text, "locationSearch": object,
	"content": object, "typeKey": text, "typeLabel": text, "status": text,
}

// create makes a lead ("5. Create a lead"). It is stored when create returns.
func (s *Server) create(c call) (answer, error) {
	if c.tail != TrunkID {
		return answer{}, refuse(http.StatusNotFound, "the trunk organization is not known")
	}
	f, err := parseBody(c.Header, c.body, createFields)
	if err != nil {
		return answer{}, err
	}
	l, err := newLead(f)
	if err != nil {
		return answer{}, err
	}
	if err := s.assign(&l, f); err != nil {
		return answer{}, err
	}
	l.requested(c.Request)
	l.CreatedAt = s.now()
	l.UpdatedAt = l.CreatedAt
	if err := s.store.add(&l); err != nil {
		return answer{}, err
	}
	a, err := respond(http.StatusCreated, struct {
		LeadID       string `json:"leadID"`
		Organization string `json:"assignedOrganizationID"`
		Location     string `json:"assignedLocationName"`
	}{l.ID, l.OrganizationID, l.LocationName})
	a.leadID = l.ID
	return a, err
}

// newLead reads the part of a creation request that does not say who gets the lead.
func newLead(f form) (l Lead, err error) {
	if f["content"] == nil {
		return l, refuse(http.StatusBadRequest, "content is required")
	}
	if l.Content, err = parseContent(f["content"]); err != nil {
		return l, err
	}
	if l.TypeKey, err = f.required("typeKey"); err != nil {
		return l, err
	}
	if l.TypeLabel, err = f.required("typeLabel"); err != nil {
		return l, err
	}
	l.Status = statuses[0]
	if f["status"] != nil {
		l.Status = f.text("status")
	}
	return l, checkStatus(l.Status)
}

// assign gives the lead to the organization that is named, or that a locator finds (endpoint 5, rules 1 to 3).
func (s *Server) assign(l *Lead, f form) error {
	direct, located := f["organizationID"] != nil, f["locatorID"] != nil || f["locationSearch"] != nil
	switch {
	case direct && located:
		return refuse(http.StatusBadRequest, "give organizationID, or locatorID with locationSearch, not both")
	case located:
		return s.locate(l, f)
	}
	id, err := f.required("organizationID")
	if err != nil {
		return refuse(http.StatusBadRequest, "organizationID, or locatorID with locationSearch, is required")
	}
	if !slices.ContainsFunc(organizations, func(o Organization) bool { return o.ID == id }) {
		return refuse(http.StatusUnprocessableEntity, "the organization is not known")
	}
	l.OrganizationID = id
	return nil
}

// locate has a locator choose the location, and so the organization. Each type takes exactly the
// property that it needs ("locationSearch object").
func (s *Server) locate(l *Lead, f form) (err error) {
	if l.LocatorID, err = f.required("locatorID"); err != nil {
		return err
	}
	if f["locationSearch"] == nil {
		return refuse(http.StatusBadRequest, "locationSearch is required with locatorID")
	}
	at := slices.IndexFunc(locators, func(o Locator) bool { return o.ID == l.LocatorID })
	if at < 0 {
		return refuse(http.StatusUnprocessableEntity, "the locator is not known")
	}
	kind, p := locators[at].Type, place{}
	if kind == RegionsAndTerritories {
		if l.PostalCode, err = searchProperty(f, "postalCode", kind); err != nil {
			return err
		}
		code := territoryCode(l.PostalCode)
		if code == "" {
			return refuse(http.StatusUnprocessableEntity, "no location serves this postal code")
		}
		p = byTerritory(s.places, code)
	} else {
		if l.SearchText, err = searchProperty(f, "searchText", kind); err != nil {
			return err
		}
		p = search(s.places, kind, l.SearchText)
	}
	l.OrganizationID, l.LocationName, l.LocationAddress = p.OrganizationID, p.Name, p.Address
	return nil
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

// update changes a lead ("6. Update a lead").
func (s *Server) update(c call) (answer, error) {
	f, err := parseBody(c.Header, c.body, fields{"Status": text, "ExternalID": text, "Content": object})
	if err != nil {
		return answer{}, err
	}
	if len(f) == 0 {
		return answer{}, refuse(http.StatusBadRequest, "one of Status, ExternalID and Content is required")
	}
	var content map[string]any
	if f["Content"] != nil {
		if content, err = parseContent(f["Content"]); err != nil {
			return answer{}, err
		}
	}
	if f["Status"] != nil {
		if err := checkStatus(f.text("Status")); err != nil {
			return answer{}, err
		}
	}
	l, err := s.store.change(c.tail, func(l *Lead) {
		if f["Status"] != nil {
			l.Status = f.text("Status")
		}
		if f["ExternalID"] != nil {
			l.ExternalID = f.text("ExternalID")
		}
		maps.Copy(l.Content, content)
		l.touch(s.now())
	})
	if err != nil {
		return answer{}, err
	}
	a, err := respond(http.StatusOK, l.body())
	a.leadID = l.ID
	return a, err
}

// Leads returns every lead in the order of creation: what a test holds against what a run says it did.
func (s *Server) Leads() ([]Lead, error) { return s.store.all() }

// SetStatus gives a lead another status, as a person in the management console does. It fails when
// the lead or the status key is not known.
func (s *Server) SetStatus(leadID, status string) error {
	if err := checkStatus(status); err != nil {
		return fmt.Errorf("set the status of lead %s: %w", leadID, err)
	}
	_, err := s.store.change(leadID, func(l *Lead) {
		l.Status = status
		l.touch(s.now())
	})
	if err != nil {
		return fmt.Errorf("set the status of lead %s: %w", leadID, err)
	}
	return nil
}
