package leadapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CreateRequest is the body of a create (section "Lead creation request body").
type CreateRequest struct {
	OrganizationID string // or LocatorID with a LocationSearch
	LocatorID      string // used when OrganizationID is ""; one of the two is needed
	LocationSearch LocationSearch
	Content        []ContentField // sent in this order; each key once
	TypeKey        string
	TypeLabel      string
	Status         string // "": the service's default
	RequestID      string // for Config's RequestIDHeader, if that is set; "": a new one
	NewConnection  bool   // send it over a new connection, as after a 421
}

// LocationSearch is what a locator searches for (section "locationSearch object"). An empty text is not sent.
type LocationSearch struct{ SearchText, PostalCode string }

// ContentField is one key and value of a lead's content. Value is a text, which may be empty. With Literal it is a JSON
// value (number, true, false, object or array; section "Lead", Content), sent as it is.
type ContentField struct {
	Key, Value string
	Literal    bool // Value must be valid JSON on one line
}

// UpdateRequest is the body of an update (section "6. Update a lead"). Nil fields are not sent. An update that has only
// an empty Content changes nothing: it reads the lead.
type UpdateRequest struct {
	Status     *string
	ExternalID *string
	Content    []ContentField // merged into what the service holds

	NewConnection bool // send it over a new connection, as after a 421
}

// AppendJSON appends the request to b, byte for byte as Create sends it.
func (r *CreateRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	switch {
	case r.OrganizationID != "":
		b = appendMember(b, "organizationID", r.OrganizationID)
	case r.LocatorID != "":
		b = append(appendName(appendMember(b, "locatorID", r.LocatorID), "locationSearch"), '{')
		if r.LocationSearch.SearchText != "" {
			b = appendMember(b, "searchText", r.LocationSearch.SearchText)
		}
		if r.LocationSearch.PostalCode != "" {
			b = appendMember(b, "postalCode", r.LocationSearch.PostalCode)
		}
		b = append(b, '}')
	}
	b = appendMember(appendMember(appendContent(b, "content", r.Content), "typeKey", r.TypeKey), "typeLabel",
		r.TypeLabel)
	if r.Status != "" {
		b = appendMember(b, "status", r.Status)
	}
	return append(b, '}')
}

// AppendJSON appends the request to b, byte for byte as Update sends it.
func (r *UpdateRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	if r.Status != nil {
		b = appendMember(b, "Status", *r.Status)
	}
	if r.ExternalID != nil {
		b = appendMember(b, "ExternalID", *r.ExternalID)
	}
	if r.Content != nil {
		b = appendContent(b, "Content", r.Content)
	}
	return append(b, '}')
}

// appendContent appends a member that holds a lead's content, in its order.
func appendContent(b []byte, name string, all []ContentField) []byte {
	b = append(appendName(b, name), '{')
	for _, f := range all {
		if f.Literal {
			b = append(appendName(b, f.Key), f.Value...)
		} else {
			b = appendMember(b, f.Key, f.Value)
		}
	}
	return append(b, '}')
}

func appendMember(b []byte, name, text string) []byte { return appendText(appendName(b, name), text) }

// appendName begins the next member of an object. If it is the first one, b ends in "{".
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendText(b, name), ':')
}

func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // fails only for invalid UTF-8, which readers and mappings refuse
	return b
}

// Created is the answer to a create (section "Lead creation response body").
type Created struct {
	LeadID         string // always of the pattern [A-Za-z0-9._-]{1,128}, not dots only
	OrganizationID string // of the same pattern, or the one asked for; "" when the answer has none
	LocationName   string // at most 500 characters, escaped for people; "" when the request named the organization
	HTTPStatus     int    // 2xx
}

// Lead is what the client reads in the answer to an update (section "Lead"). A field that is not as specified is zero.
type Lead struct {
	ID           string
	OwnerID      string // of the pattern of IDs
	Content      map[string]jsontext.Value
	LocationName string // at most 500 characters, escaped for people
	Status       string // at most 64 characters, without control characters; known to the specification or not
	ExternalID   string // at most 1,024 bytes, without control characters; "" when unset
	HasExternal  bool   // the answer says what ExternalID is
	UpdatedAt    time.Time
}

const noLeads = "no leads URL and trunk ID are set"

// Reach signs in and finds out whether lead creation answers to a GET without a token, which can make nothing. A
// refusal is an answer too. No answer, an answer that asks to wait, and any 503 are an *[Error].
func (c *Client) Reach(ctx context.Context) error {
	if c.leads == nil {
		return unsent("reach", ReasonRefused, noLeads)
	}
	if err := c.SignIn(ctx); err != nil {
		return err
	}
	status, err := c.do(ctx, c.reaching(), func([]byte) bool { return true })
	if status == 0 || err != nil && (err.AsksToWait() || err.Unavailable()) {
		return err
	}
	return nil
}

// reaching returns the request of Reach. It needs a new connection, as the next create may.
func (c *Client) reaching() request {
	return request{op: "reach", method: http.MethodGet, host: c.leads, target: c.create, success: http.StatusOK}
}

// Create sends one create (section "5. Create a lead"), and signs in first if needed. Any error is an *[Error].
func (c *Client) Create(ctx context.Context, r *CreateRequest) (*Created, error) {
	if c.leads == nil {
		return nil, unsent("create", ReasonRefused, noLeads)
	}
	if r.RequestID != "" && !ValidID(r.RequestID) {
		return nil, unsent("create", ReasonRefused, "the request ID has characters that an ID cannot have")
	}
	made := new(Created)
	status, err := c.signed(ctx, request{
		op: "create", method: http.MethodPost, host: c.leads, reuse: !r.NewConnection, target: c.create,
		content: r.AppendJSON, id: c.requestID(r.RequestID), success: http.StatusCreated, named: &made.LeadID,
	}, func(body []byte) bool { return made.read(body, r.OrganizationID) })
	if err != nil {
		return nil, err
	}
	made.HTTPStatus = status
	return made, nil
}

// read takes the answer to a create. If the request named an organization, the answer may name it in any form.
func (m *Created) read(body []byte, asked string) bool {
	var a struct {
		ID           jsontext.Value `json:"leadID"`
		Organization jsontext.Value `json:"assignedOrganizationID"`
		Location     jsontext.Value `json:"assignedLocationName"`
	}
	if json.Unmarshal(body, &a) != nil {
		return false
	}
	m.LeadID = validText(a.ID, ValidID)
	m.OrganizationID = validText(a.Organization, func(id string) bool { return ValidID(id) || id == asked })
	m.LocationName = redact(textOf(a.Location))
	return m.LeadID != ""
}

// Update sends one update (section "6. Update a lead"). Any error is an *[Error]; an ID that cannot be in a path is
// refused before anything is sent. The caller checks whether the Lead that comes back is the one asked for.
func (c *Client) Update(ctx context.Context, leadID string, r *UpdateRequest) (*Lead, error) {
	if !ValidID(leadID) {
		return nil, unsent("update", ReasonRefused, "the lead ID has characters that an ID cannot have")
	}
	lead := new(Lead)
	_, err := c.signed(ctx, request{
		op: "update", method: http.MethodPatch, host: c.general, reuse: !r.NewConnection,
		target: c.base + "/v3/lead/" + leadID, content: r.AppendJSON, id: c.requestID(""),
		success: http.StatusOK, lead: leadID, named: &lead.ID,
	}, lead.read)
	if err != nil {
		return nil, err
	}
	return lead, nil
}

func (l *Lead) read(body []byte) bool {
	a := fieldsOf(body)
	l.ID, l.OwnerID = validText(a["ID"], ValidID), validText(a["OwnerID"], ValidID)
	l.Status, l.ExternalID = validText(a["Status"], validStatus), validText(a["ExternalID"], validExternalID)
	l.HasExternal = l.ExternalID != "" || a["ExternalID"].Kind() == 'n' || string(a["ExternalID"]) == `""`
	l.Content, l.LocationName = fieldsOf(a["Content"]), redact(textOf(fieldsOf(a["Location"])["Name"]))
	l.UpdatedAt, _ = time.Parse(time.RFC3339, textOf(a["UpdatedAt"])) // the zero time if it fails
	return l.ID != ""
}

// NewRequestID returns a random ID for the header that [Config].RequestIDHeader names.
func NewRequestID() string { return rand.Text() }

// requestID returns the ID that a request carries: the given one, or a new one; "" if the Config names no header.
func (c *Client) requestID(given string) string {
	if c.config.RequestIDHeader == "" {
		return ""
	}
	return cmp.Or(given, NewRequestID())
}

// signed makes a call with the run's token, and tells the keeper whether the service accepted the token.
func (c *Client) signed(ctx context.Context, r request, read func([]byte) bool) (int, error) {
	token, fault := c.keeper.get(ctx)
	if fault != nil {
		return 0, fault
	}
	r.bearer = token.AccessToken
	status, fault := c.do(ctx, r, read)
	if status/100 == 2 {
		c.keeper.accept(token)
	}
	if fault == nil {
		return status, nil
	}
	if status == http.StatusUnauthorized {
		fault.Refusals = c.keeper.refuse(token)
	}
	return status, fault
}

// validStatus reports whether a text looks like a status, known or not: at most 64 characters that labels have.
func validStatus(status string) bool {
	for i, r := range status {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !word && (i == 0 || !strings.ContainsRune(" ._-|/", r)) {
			return false
		}
	}
	return utf8.RuneCountInString(status) <= 64
}

// validExternalID reports whether an ExternalID can be kept: at most 1,024 bytes, and no control characters.
func validExternalID(id string) bool {
	return len(id) <= 1024 && !strings.ContainsFunc(id, unicode.IsControl)
}
