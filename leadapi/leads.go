package leadapi

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// Created is the answer to a create (section "Lead creation response body").
type Created struct {
	LeadID         string // always of the pattern [A-Za-z0-9._-]{1,128}, not dots only
	OrganizationID string // of the same pattern, or as it was asked for; "" when the answer has none such
	LocationName   string // at most 500 characters, escaped for people; "" when creation named the organization
	Status         int    // HTTP status: 200, 201 or 202
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
}

// Reach finds out whether lead creation gives answers at all, by a request that can make nothing: a GET of the
// address that takes creates, without a token. Any answer is one, a refusal too, but one that asks to wait is an error. Its
// error is an *[Error].
func (c *Client) Reach(ctx context.Context) error {
	if c.leads == nil {
		return &Error{Op: "reach", Reason: ReasonRefused, Message: "no leads URL and trunk ID are set; nothing was sent"}
	}
	r := call{op: "reach", method: http.MethodGet, host: c.leads, target: c.create, success: http.StatusOK}
	if status, err := c.do(ctx, r, func([]byte) bool { return true }); status == 0 || err != nil && err.Reason == ReasonThrottled {
		return err
	}
	return nil
}

// Create sends one create (section "5. Create a lead"), signing in first where needed. Any error is an *[Error].
func (c *Client) Create(ctx context.Context, r *CreateRequest) (*Created, error) {
	if c.leads == nil {
		return nil, &Error{Op: "create", Reason: ReasonRefused, Message: "no leads URL and trunk ID are set; nothing was sent"}
	}
	made := new(Created)
	status, err := c.signed(ctx, call{
		op: "create", method: "POST", host: c.leads, target: c.create, success: 201,
	}, r, func(body []byte) bool { return c.members(body, made.of(r)) && made.LeadID != "" })
	if err != nil {
		return nil, err
	}
	made.Status = status
	return made, nil
}

// of takes the answer to a request: an organization that was asked for is believed as it is.
func (m *Created) of(r *CreateRequest) func(name []byte, v jsontext.Value) {
	return func(name []byte, v jsontext.Value) {
		m.member(name, v)
		if string(name) == "assignedOrganizationID" && m.OrganizationID == "" && textOf(v) == r.OrganizationID {
			m.OrganizationID = r.OrganizationID
		}
	}
}

func (m *Created) member(name []byte, v jsontext.Value) {
	switch string(name) {
	case "leadID":
		m.LeadID = fitting(v, validID)
	case "assignedOrganizationID":
		m.OrganizationID = fitting(v, validID)
	case "assignedLocationName":
		m.LocationName = shown(v)
	}
}

// Update sends one update (section "6. Update a lead"). Any error is an *[Error]; an ID that cannot stand in a path is
// refused before anything is sent. The Lead is as the service answered: whether it is the one asked for is the caller's to check.
func (c *Client) Update(ctx context.Context, leadID string, r *UpdateRequest) (*Lead, error) {
	if !validID(leadID) {
		return nil, &Error{Op: "update", Reason: ReasonRefused, Message: "the lead ID has characters that an ID cannot have; nothing was sent"}
	}
	lead := new(Lead)
	_, err := c.signed(ctx, call{
		op: "update", method: "PATCH", host: c.general, target: c.base + "/v3/lead/" + leadID, success: 200,
	}, r, func(body []byte) bool { return c.members(body, lead.member) && lead.ID != "" })
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
		assign(&l.Content, v)
	case "Location":
		var at struct {
			Name jsontext.Value `json:"Name"`
		}
		assign(&at, v)
		l.LocationName = shown(at.Name)
	case "Status":
		l.Status = fitting(v, validStatus)
	case "ExternalID":
		l.ExternalID = fitting(v, validExternalID)
	}
}

// body is what a lead request carries.
type body interface{ AppendJSON(b []byte) []byte }

// signed makes a call with this body and the run's token, and tells the keeper what the service thought of it.
func (c *Client) signed(ctx context.Context, r call, of body, read func([]byte) bool) (int, error) {
	token, err := source{ctx, c.keeper}.Token()
	if err != nil {
		return 0, err
	}
	room := c.bodies.Get().(*[]byte)
	defer c.bodies.Put(room)
	*room = of.AppendJSON((*room)[:0])
	r.body, r.bearer = *room, token.AccessToken
	status, fault := c.do(ctx, r, read)
	if status >= 200 && status < 300 {
		c.keeper.accept(token)
	}
	if fault == nil {
		return status, nil
	}
	if status == 401 {
		fault.Refusals = c.keeper.refuse(token)
	}
	return status, fault
}
