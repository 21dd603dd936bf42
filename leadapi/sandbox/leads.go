package sandbox

import (
	"cmp"
	"errors"
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

// Lead is a lead as the sandbox keeps it and answers updates with it ("Lead"). Values of Content are strings, booleans,
// nil, lists, objects, and numbers as jsontext.Value with the digits that were sent.
type Lead struct {
	ID                            string
	ReadOnly                      bool
	CreatedAt, UpdatedAt, OwnerID string
	Content                       map[string]any
	Impressions                   int
	IsTestLead                    bool
	Location                      struct{ Name, Address string }
	RequestMeta                   struct{ ContentType, Host, IP, Locale, URL, UserAgent string }
	Source, Status, Stage         string
	TypeKey, TypeLabel            string
	Views                         int
	ExternalID, DisplayName       string
}

// statuses are the accepted status keys ("States and transitions").
var statuses = []string{
	"open", "contacted", "inProgress", "onHold",
	"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
}

func requireStatus(key string) {
	known := slices.Contains(statuses, key)
	require(known, http.StatusUnprocessableEntity, "the status is not one of the accepted keys")
}

// timeLayout is ISO 8601, UTC, with fractional seconds.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// touch marks a lead as changed. UpdatedAt always moves forward.
func (l *Lead) touch(now time.Time) {
	if last, err := time.Parse(timeLayout, l.UpdatedAt); err == nil && !now.After(last) {
		now = last.Add(time.Microsecond)
	}
	l.UpdatedAt = now.UTC().Format(timeLayout)
	l.DisplayName, _ = l.Content["name"].(string)
}

// TextOf returns a value of a lead's Content as text: a string as it is, else JSON; "" for nil.
func TextOf(value any) string {
	if text, is := value.(string); is || value == nil {
		return text
	}
	b, _ := json.Marshal(value, json.Deterministic(true)) // it comes from JSON
	return string(b)
}

// search is what a locator looks for ("locationSearch object").
type search struct {
	SearchText *string `json:"searchText"`
	PostalCode *string `json:"postalCode"`
}

// create makes a lead ("5. Create a lead") and stores it before it returns. Missing members of the body are nil.
func (s *Server) create(c call) answer {
	known := c.tail == s.options.Directory.trunkID
	require(known, http.StatusNotFound, "the trunk organization is not known; --directory names your own")
	var b struct {
		OrganizationID *string        `json:"organizationID"`
		LocatorID      *string        `json:"locatorID"`
		LocationSearch *search        `json:"locationSearch"`
		Content        map[string]any `json:"content"`
		TypeKey        *string        `json:"typeKey"`
		TypeLabel      *string        `json:"typeLabel"`
		Status         *string        `json:"status"`
	}
	c.read(&b)
	require(b.Content != nil, http.StatusBadRequest, "content is required")
	l := Lead{
		Content: b.Content, TypeKey: required("typeKey", b.TypeKey), TypeLabel: required("typeLabel", b.TypeLabel),
		Source: "lead-collector", Stage: "lead", Status: *cmp.Or(b.Status, &statuses[0]),
	}
	requireStatus(l.Status)
	l.assign(s.options.Directory, b.OrganizationID, b.LocatorID, b.LocationSearch)
	meta := &l.RequestMeta
	meta.ContentType, meta.Host, meta.URL = c.Header.Get("Content-Type"), c.Host, c.URL.Path
	meta.Locale, meta.UserAgent = c.Header.Get("Accept-Language"), c.UserAgent()
	meta.IP, _, _ = net.SplitHostPort(c.RemoteAddr)
	l.touch(s.options.now())
	l.CreatedAt = l.UpdatedAt
	check(s.store.add(&l))
	a := respond(http.StatusCreated, struct {
		LeadID       string `json:"leadID"`
		Organization string `json:"assignedOrganizationID"`
		Location     string `json:"assignedLocationName"`
	}{l.ID, l.OwnerID, l.Location.Name})
	a.leadID = l.ID
	return a
}

// assign gives the lead to the organization that is named, or that a locator finds (endpoint 5, rules 1 to 3).
func (l *Lead) assign(d *Directory, organization, locator *string, by *search) {
	if locator != nil || by != nil {
		const both = "give organizationID, or locatorID with locationSearch, not both"
		require(organization == nil, http.StatusBadRequest, both)
		found := d.locate(locator, by)
		l.OwnerID, l.Location.Name, l.Location.Address = found.organizationID, found.Name, found.Address
		return
	}
	l.OwnerID = required("organizationID, or locatorID with locationSearch,", organization)
	_, known := d.names[l.OwnerID]
	require(known, http.StatusUnprocessableEntity, "the organization is not known; --directory names your own")
}

// update changes a lead ("6. Update a lead").
func (s *Server) update(c call) answer {
	var b struct {
		Status, ExternalID *string
		Content            map[string]any
	}
	c.read(&b)
	some := b.Status != nil || b.ExternalID != nil || b.Content != nil
	require(some, http.StatusBadRequest, "one of Status, ExternalID and Content is required")
	if b.Status != nil {
		requireStatus(*b.Status)
	}
	l, err := s.store.change(c.tail, func(l *Lead) {
		l.Status, l.ExternalID = *cmp.Or(b.Status, &l.Status), *cmp.Or(b.ExternalID, &l.ExternalID)
		maps.Copy(l.Content, b.Content)
		if b.Status != nil || b.ExternalID != nil || len(b.Content) > 0 {
			l.touch(s.options.now())
		}
	})
	check(err)
	require(l != nil, http.StatusNotFound, "the lead is not known")
	a := respond(http.StatusOK, l)
	a.leadID = l.ID
	return a
}

// required returns a text, and refuses the request if the text is missing or blank.
func required(name string, value *string) string {
	require(value != nil && strings.TrimSpace(*value) != "", http.StatusBadRequest, "%s is required", name)
	return *value
}

// read reads the body, which must be declared as JSON ("Endpoints"): one object of known members. Each is there once,
// with its name in exact case, and is not null.
func (c call) read(into any) {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	charset := params["charset"]
	isJSON := err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
	require(isJSON, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	plain := c.Header.Get("Content-Encoding") == ""
	require(plain, http.StatusUnsupportedMediaType, "Content-Encoding is not supported")
	var members map[string]jsontext.Value
	err = json.Unmarshal(c.body, &members)
	require(err == nil && members != nil, http.StatusBadRequest, "the body must be a JSON object, and well-formed")
	for name, value := range members {
		require(value.Kind() != jsontext.KindNull, http.StatusBadRequest, "%.64q must not be null", name)
	}
	err = json.Unmarshal(c.body, into, json.RejectUnknownMembers(true), exactNumbers)
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		const unknown = "%.64q is not a member of this object, or is of another type"
		require(false, http.StatusBadRequest, unknown, e.JSONPointer)
	}
	check(err)
}

// exactNumbers keeps numbers as jsontext.Value, with all their digits.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	n, err := d.ReadValue()
	*v = n.Clone()
	return err
}))
