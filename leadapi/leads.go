package leadapi

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// CreateRequest is the body of a create (section "Lead creation request body"): OrganizationID, or LocatorID with a LocationSearch.
type CreateRequest struct {
	OrganizationID string
	LocatorID      string // used when OrganizationID is ""; one of the two is needed
	LocationSearch LocationSearch
	Content        []ContentField // sent in this order; each key once
	TypeKey        string
	TypeLabel      string
	Status         string // "": the service's default
	RequestID      string // for Config's RequestIDHeader, where that is set; "": a new one
	NewConnection  bool   // it may go over no used connection, as after a 421
}

// LocationSearch is what a locator picks a location by (section "locationSearch object"); "" is not sent.
type LocationSearch struct{ SearchText, PostalCode string }

// ContentField is one key and value of a lead's content. Value is a text, which may be empty, unless Literal says
// that it is a JSON value (number, true, false, object or array; section "Lead", Content), sent as it stands.
type ContentField struct {
	Key, Value string
	Literal    bool // Value must be valid JSON on one line
}

// UpdateRequest is the body of an update (section "6. Update a lead"); what is nil or empty is not sent.
type UpdateRequest struct {
	Status     *string
	ExternalID *string
	Content    []ContentField // merged into what the service holds

	NewConnection bool // it may go over no used connection, as after a 421
}

// AppendJSON appends the request to b, byte for byte as Create sends it. Texts must be UTF-8.
func (r *CreateRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	switch {
	case r.OrganizationID != "":
		b = appendText(b, "organizationID", r.OrganizationID)
	case r.LocatorID != "":
		b = appendText(b, "locatorID", r.LocatorID)
		b = append(appendName(b, "locationSearch"), '{')
		b = appendGiven(b, "searchText", r.LocationSearch.SearchText)
		b = appendGiven(b, "postalCode", r.LocationSearch.PostalCode)
		b = append(b, '}')
	}
	b = appendContent(b, "content", r.Content)
	b = appendText(b, "typeKey", r.TypeKey)
	b = appendText(b, "typeLabel", r.TypeLabel)
	b = appendGiven(b, "status", r.Status)
	return append(b, '}')
}

// AppendJSON appends the request to b, byte for byte as Update sends it. Texts must be UTF-8.
func (r *UpdateRequest) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	if r.Status != nil {
		b = appendText(b, "Status", *r.Status)
	}
	if r.ExternalID != nil {
		b = appendText(b, "ExternalID", *r.ExternalID)
	}
	if len(r.Content) > 0 {
		b = appendContent(b, "Content", r.Content)
	}
	return append(b, '}')
}

func appendContent(b []byte, name string, fields []ContentField) []byte {
	b = append(appendName(b, name), '{')
	for _, f := range fields {
		if f.Literal {
			b = append(appendName(b, f.Key), f.Value...)
			continue
		}
		b = appendText(b, f.Key, f.Value)
	}
	return append(b, '}')
}

func appendGiven(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(b, name, value)
}

func appendText(b []byte, name, value string) []byte {
	return appendQuoted(appendName(b, name), value)
}

// appendName begins a member, with a comma unless the object has just been opened.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendQuoted(b, name), ':')
}

func appendQuoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // fails for invalid UTF-8 only, which no reader of ours lets in
	return b
}

// Created is the answer to a create (section "Lead creation response body").
type Created struct {
	LeadID         string // always of the pattern [A-Za-z0-9._-]{1,128}, not dots only
	OrganizationID string // of the same pattern, or as it was asked for; "" when the answer has none such
	LocationName   string // at most 500 characters, escaped for people; "" when creation named the organization
	Status         int    // HTTP status, 2xx
}

// Lead is what is read of the answer to an update (section "Lead"). A field is zero that is missing, of another type than
// specified, or not of its pattern.
type Lead struct {
	ID           string
	OwnerID      string // of an ID's pattern
	Content      map[string]jsontext.Value
	LocationName string // at most 500 characters, escaped for people
	Status       string // at most 64 characters, without control characters; also one that is not specified
	ExternalID   string // at most 1,024 bytes, without control characters
	UpdatedAt    time.Time
}

const noLeads = "no leads URL and trunk ID are set"

// Reach finds out whether lead creation gives answers at all, by a request that can make nothing: a GET of the
// address that takes creates, without a token. Any answer is one, a refusal too, but one that asks to wait, and any 503,
// is an error. Its error is an *[Error].
func (c *Client) Reach(ctx context.Context) error {
	if c.leads == nil {
		return unsent("reach", ReasonRefused, noLeads)
	}
	r := c.reaching()
	if status, err := c.do(ctx, r, func([]byte) bool { return true }); status == 0 || err != nil && (err.AsksToWait() || err.Unavailable()) {
		return err
	}
	return nil
}

// reaching is the request of Reach. It gets a new connection, as a create would after what Reach is asked for.
func (c *Client) reaching() request {
	return request{op: "reach", method: http.MethodGet, host: c.leads, target: c.create, success: http.StatusOK}
}

// Create sends one create (section "5. Create a lead"), signing in first where needed. Any error is an *[Error].
func (c *Client) Create(ctx context.Context, r *CreateRequest) (*Created, error) {
	if c.leads == nil {
		return nil, unsent("create", ReasonRefused, noLeads)
	}
	if r.RequestID != "" && !validID(r.RequestID) {
		return nil, unsent("create", ReasonRefused, "the request ID has characters that an ID cannot have")
	}
	made := new(Created)
	member := made.member(r.OrganizationID)
	status, err := c.signed(ctx, request{
		op: "create", method: http.MethodPost, host: c.leads, use: unlessNew(r.NewConnection, safeConn), target: c.create, content: r, id: c.requestID(r.RequestID), success: http.StatusCreated,
		named: &made.LeadID,
	}, func(body []byte) bool { return members(body, member) && made.LeadID != "" })
	if err != nil {
		return nil, err
	}
	made.Status = status
	return made, nil
}

// member takes what an answer says. An organization that was asked for is believed as it is.
func (m *Created) member(asked string) func(name []byte, v jsontext.Value) {
	return func(name []byte, v jsontext.Value) {
		switch string(name) {
		case "leadID":
			m.LeadID = fitting(v, validID)
		case "assignedOrganizationID":
			m.OrganizationID = fitting(v, func(id string) bool { return validID(id) || id == asked })
		case "assignedLocationName":
			m.LocationName = shown(v)
		}
	}
}

// Update sends one update (section "6. Update a lead"). Any error is an *[Error]; an ID that cannot stand in a path is
// refused before anything is sent. The Lead is as the service answered: whether it is the one asked for is the caller's to check.
func (c *Client) Update(ctx context.Context, leadID string, r *UpdateRequest) (*Lead, error) {
	if !validID(leadID) {
		return nil, unsent("update", ReasonRefused, "the lead ID has characters that an ID cannot have")
	}
	lead := new(Lead)
	_, err := c.signed(ctx, request{
		op: "update", method: http.MethodPatch, host: c.general, use: unlessNew(r.NewConnection, anyConn), target: c.base + "/v3/lead/" + leadID, content: r, id: c.requestID(""), success: http.StatusOK,
		lead: leadID, named: &lead.ID,
	}, func(body []byte) bool { return members(body, lead.member) && lead.ID != "" })
	if err != nil {
		return nil, err
	}
	return lead, nil
}

func (l *Lead) member(name []byte, v jsontext.Value) {
	switch string(name) {
	case "ID":
		l.ID = fitting(v, validID)
	case "OwnerID":
		l.OwnerID = fitting(v, validID)
	case "Content":
		l.Content = fieldsOf(v)
	case "Location":
		members(v, func(name []byte, v jsontext.Value) {
			if string(name) == "Name" {
				l.LocationName = shown(v)
			}
		})
	case "UpdatedAt":
		l.UpdatedAt, _ = time.Parse(time.RFC3339, textOf(v)) // fails with the zero time
	case "Status":
		l.Status = fitting(v, validStatus)
	case "ExternalID":
		l.ExternalID = fitting(v, validExternalID)
	}
}

// requestID is the ID that a request carries: the one given, or a new one; none where no header is named for it.
func (c *Client) requestID(given string) string {
	if c.config.RequestIDHeader == "" {
		return ""
	}
	if given == "" {
		return NewRequestID()
	}
	return given
}

// signed makes a call with the run's token, and tells the keeper what the service thought of it.
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
