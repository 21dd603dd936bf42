package sandbox

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"time"
)

// Lead is a lead as the sandbox keeps it and answers updates with it, in the order of the specification's table ("Lead").
// Values of Content are strings, booleans, nil, lists, objects, and numbers as jsontext.Value with the digits that were sent.
type Lead struct {
	ID          string
	ReadOnly    bool
	CreatedAt   string
	UpdatedAt   string
	OwnerID     string
	Content     map[string]any
	Impressions int
	IsTestLead  bool
	Location    struct{ Name, Address string }
	RequestMeta struct{ ContentType, Host, IP, Locale, URL, UserAgent string }
	Source      string
	Status      string
	Stage       string
	TypeKey     string
	TypeLabel   string
	Views       int
	ExternalID  string
	DisplayName string
}

// statuses are the accepted keys ("States and transitions").
var statuses = []string{
	"open", "contacted", "inProgress", "onHold",
	"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

func checkStatus(key string) error {
	if !slices.Contains(statuses, key) {
		return refuse(http.StatusUnprocessableEntity, "the status is not one of the accepted keys")
	}
	return nil
}

// timeLayout is that of ISO 8601, UTC, with fractional seconds.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// touch marks the lead as changed: UpdatedAt always moves.
func (l *Lead) touch(now time.Time) {
	if last, err := time.Parse(timeLayout, l.UpdatedAt); err == nil && !now.After(last) {
		now = last.Add(time.Microsecond)
	}
	l.UpdatedAt = now.UTC().Format(timeLayout)
	l.DisplayName, _ = l.Content["name"].(string)
}

var createFields = fields{
	"organizationID": text, "locatorID": text, "locationSearch": object,
	"content": object, "typeKey": text, "typeLabel": text, "status": text,
}

// create makes a lead ("5. Create a lead"). It is stored when create returns.
func (s *Server) create(c call) (answer, error) {
	if c.tail != s.directory.trunkID {
		return answer{}, refuse(http.StatusNotFound, "the trunk organization is not known; --directory names your own")
	}
	f, err := s.form(c, createFields)
	if err != nil {
		return answer{}, err
	}
	l, err := newLead(f)
	if err != nil {
		return answer{}, err
	}
	if err := l.assign(f, s.directory, s.options.Strict); err != nil {
		return answer{}, err
	}
	meta := &l.RequestMeta
	meta.ContentType, meta.Host, meta.URL = c.Header.Get("Content-Type"), c.Host, c.URL.Path
	meta.Locale, meta.UserAgent = c.Header.Get("Accept-Language"), c.UserAgent()
	meta.IP, _, _ = net.SplitHostPort(c.RemoteAddr)
	l.touch(s.now())
	l.CreatedAt = l.UpdatedAt
	if err := s.store.add(&l); err != nil {
		return answer{}, err
	}
	a := respond(http.StatusCreated, struct {
		LeadID       string `json:"leadID"`
		Organization string `json:"assignedOrganizationID"`
		Location     string `json:"assignedLocationName"`
	}{l.ID, l.OwnerID, l.Location.Name})
	a.leadID = l.ID
	return a, nil
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
	l.Source, l.Stage, l.Status = "lead-collector", "lead", statuses[0]
	if f["status"] != nil {
		l.Status = f.text("status")
	}
	return l, checkStatus(l.Status)
}

// assign gives the lead to the organization that is named, or that a locator finds (endpoint 5, rules 1 to 3).
func (l *Lead) assign(f form, d *Directory, strict bool) error {
	direct, located := f["organizationID"] != nil, f["locatorID"] != nil || f["locationSearch"] != nil
	switch {
	case direct && located:
		return refuse(http.StatusBadRequest, "give organizationID, or locatorID with locationSearch, not both")
	case located:
		found, err := d.locate(f, strict)
		l.OwnerID, l.Location.Name, l.Location.Address = found.organizationID, found.name, found.address
		return err
	}
	id, err := f.required("organizationID")
	if err != nil {
		return refuse(http.StatusBadRequest, "organizationID, or locatorID with locationSearch, is required")
	}
	if _, known := d.names[id]; !known {
		return refuse(http.StatusUnprocessableEntity, "the organization is not known; --directory names your own")
	}
	l.OwnerID = id
	return nil
}

// update changes a lead ("6. Update a lead").
func (s *Server) update(c call) (answer, error) {
	f, err := s.form(c, fields{"Status": text, "ExternalID": text, "Content": object})
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
	l, err := s.store.change(c.tail, s.now(), func(l *Lead) {
		if f["Status"] != nil {
			l.Status = f.text("Status")
		}
		if f["ExternalID"] != nil {
			l.ExternalID = f.text("ExternalID")
		}
		maps.Copy(l.Content, content)
	})
	if err != nil {
		return answer{}, err
	}
	a := respond(http.StatusOK, l)
	a.leadID = l.ID
	return a, nil
}

// Leads returns every lead in the order of creation: what a test holds against what a run says it did.
func (s *Server) Leads() ([]Lead, error) { return s.store.leads() }
