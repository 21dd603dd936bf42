package sandbox

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// TextOf returns a value of a lead's Content as text: that of a string, else JSON; "" for what is not there.
func TextOf(value any) string {
	if text, is := value.(string); is || value == nil {
		return text
	}
	b, _ := json.Marshal(value, json.Deterministic(true)) // it was read from JSON
	return string(b)
}

// newLeadBody is the body of a create ("Lead creation request body"). What is not there is nil.
type newLeadBody struct {
	OrganizationID *string        `json:"organizationID"`
	LocatorID      *string        `json:"locatorID"`
	LocationSearch *search        `json:"locationSearch"`
	Content        map[string]any `json:"content"`
	TypeKey        *string        `json:"typeKey"`
	TypeLabel      *string        `json:"typeLabel"`
	Status         *string        `json:"status"`
}

// search is what a locator looks for ("locationSearch object").
type search struct {
	SearchText *string `json:"searchText"`
	PostalCode *string `json:"postalCode"`
}

// create makes a lead ("5. Create a lead"). It is stored when create returns.
func (s *Server) create(c call) (answer, error) {
	if c.tail != s.directory.trunkID {
		return answer{}, refuse(http.StatusNotFound, "the trunk organization is not known; --directory names your own")
	}
	var b newLeadBody
	if err := c.read(&b); err != nil {
		return answer{}, err
	}
	l, err := newLead(&b)
	if err == nil {
		err = l.assign(&b, s.directory)
	}
	if err != nil {
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

// newLead reads the part of a body that does not say who gets the lead.
func newLead(b *newLeadBody) (l Lead, err error) {
	if l.Content = b.Content; l.Content == nil {
		return l, refuse(http.StatusBadRequest, "content is required")
	}
	if l.TypeKey, err = required("typeKey", b.TypeKey); err != nil {
		return l, err
	}
	if l.TypeLabel, err = required("typeLabel", b.TypeLabel); err != nil {
		return l, err
	}
	l.Source, l.Stage, l.Status = "lead-collector", "lead", statuses[0]
	if b.Status != nil {
		l.Status = *b.Status
	}
	return l, checkStatus(l.Status)
}

// assign gives the lead to the organization that is named, or that a locator finds (endpoint 5, rules 1 to 3).
func (l *Lead) assign(b *newLeadBody, d *Directory) error {
	located := b.LocatorID != nil || b.LocationSearch != nil
	switch {
	case b.OrganizationID != nil && located:
		return refuse(http.StatusBadRequest, "give organizationID, or locatorID with locationSearch, not both")
	case located:
		found, err := d.locate(b.LocatorID, b.LocationSearch)
		l.OwnerID, l.Location.Name, l.Location.Address = found.organizationID, found.Name, found.Address
		return err
	}
	id, err := required("organizationID, or locatorID with locationSearch,", b.OrganizationID)
	if err != nil {
		return err
	}
	if _, known := d.names[id]; !known {
		return refuse(http.StatusUnprocessableEntity, "the organization is not known; --directory names your own")
	}
	l.OwnerID = id
	return nil
}

// update changes a lead ("6. Update a lead").
func (s *Server) update(c call) (answer, error) {
	var b struct {
		Status, ExternalID *string
		Content            map[string]any
	}
	err := c.read(&b)
	if err == nil && b.Status == nil && b.ExternalID == nil && b.Content == nil {
		err = refuse(http.StatusBadRequest, "one of Status, ExternalID and Content is required")
	}
	if err == nil && b.Status != nil {
		err = checkStatus(*b.Status)
	}
	if err != nil {
		return answer{}, err
	}
	l, err := s.store.change(c.tail, func(l *Lead) {
		l.Status, l.ExternalID = *cmp.Or(b.Status, &l.Status), *cmp.Or(b.ExternalID, &l.ExternalID)
		maps.Copy(l.Content, b.Content)
		if b.Status != nil || b.ExternalID != nil || len(b.Content) > 0 || s.options.ReadBumps {
			l.touch(s.now())
		}
	})
	if err != nil {
		return answer{}, err
	}
	a := respond(http.StatusOK, l)
	a.leadID = l.ID
	return a, nil
}

// required returns a text that must be there and not be empty.
func required(name string, value *string) (string, error) {
	if value == nil || strings.TrimSpace(*value) == "" {
		return "", refuse(http.StatusBadRequest, "%s is required", name)
	}
	return *value, nil
}

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body did not arrive whole")
	case len(body) > maxBody:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	}
	return body, nil
}

// read reads a request's body, which must be declared as JSON ("Endpoints"): one object of known members, each there once, with
// its name in exact case and a value that is not null.
func (c call) read(into any) error {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	if c.Header.Get("Content-Encoding") != "" {
		return refuse(http.StatusUnsupportedMediaType, "Content-Encoding is not supported")
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(c.body, &members) != nil || members == nil {
		return refuse(http.StatusBadRequest, "the body must be a JSON object, and well-formed")
	}
	for name, value := range members {
		if value.Kind() == jsontext.KindNull {
			return refuse(http.StatusBadRequest, "%.64q must not be null", name)
		}
	}
	err = json.Unmarshal(c.body, into, json.RejectUnknownMembers(true), exactNumbers)
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return refuse(http.StatusBadRequest, "%.64q is not a member of this object, or is of another type", e.JSONPointer)
	}
	return err
}

// exactNumbers has numbers read into jsontext.Value.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	n, err := d.ReadValue()
	*v = n.Clone()
	return err
}))
