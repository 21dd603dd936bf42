package leadapi

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// Created is the answer to a create (section "Lead creation response body").
type Created struct {
	LeadID         string // always of the pattern [A-Za-z0-9._-]{1,128}, not dots only
	OrganizationID string // "" when the answer lacks it
	LocationName   string // "" when creation named the organization
	Status         int    // HTTP status: 200, 201 or 202
}

// Lead is the answer to an update (section "Lead"). A field that is missing, or of another type than specified, is zero.
type Lead struct {
	ID          string
	ReadOnly    bool
	CreatedAt   string
	UpdatedAt   string
	OwnerID     string
	Content     map[string]jsontext.Value
	Impressions int64
	IsTestLead  bool
	Location    Location
	RequestMeta RequestMeta
	Source      string
	Status      string
	Stage       string
	TypeKey     string
	TypeLabel   string
	Views       int64
	ExternalID  string
	DisplayName string
}

// Location is the location that a lead is assigned to.
type Location struct {
	Name    string `json:"Name"`
	Address string `json:"Address"`
}

// RequestMeta describes the request that created a lead.
type RequestMeta struct {
	ContentType string `json:"ContentType"`
	Host        string `json:"Host"`
	IP          string `json:"IP"`
	Locale      string `json:"Locale"`
	URL         string `json:"URL"`
	UserAgent   string `json:"UserAgent"`
}

// Reach finds out whether lead creation gives answers at all, by a request that can make nothing: a GET of the
// address that takes creates, without a token. Any answer is one, a refusal too. Its error is an *[Error].
func (c *Client) Reach(ctx context.Context) error {
	if c.leads == nil {
		return &Error{Op: "reach", Reason: ReasonRefused, Message: "no leads URL and trunk ID are set; nothing was sent"}
	}
	r := call{op: "reach", method: http.MethodGet, host: c.leads, target: c.create, success: http.StatusOK}
	if status, err := c.do(ctx, r, func([]byte) bool { return true }); status == 0 {
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
	}, r, func(body []byte) bool { return c.members(body, made.member) && validID(made.LeadID) })
	if err != nil {
		return nil, err
	}
	made.Status = status
	return made, nil
}

func (m *Created) member(name []byte, v jsontext.Value) {
	switch string(name) {
	case "leadID":
		setText(&m.LeadID, v)
	case "assignedOrganizationID":
		setText(&m.OrganizationID, v)
	case "assignedLocationName":
		setText(&m.LocationName, v)
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
	}, r, func(body []byte) bool { return c.members(body, lead.member) && validID(lead.ID) })
	if err != nil {
		return nil, err
	}
	return lead, nil
}

func (l *Lead) member(name []byte, v jsontext.Value) {
	switch string(name) {
	case "ID":
		setText(&l.ID, v)
	case "ReadOnly":
		assign(&l.ReadOnly, v)
	case "CreatedAt":
		setText(&l.CreatedAt, v)
	case "UpdatedAt":
		setText(&l.UpdatedAt, v)
	case "OwnerID":
		setText(&l.OwnerID, v)
	case "Content":
		assign(&l.Content, v)
	case "Impressions":
		assign(&l.Impressions, v)
	case "IsTestLead":
		assign(&l.IsTestLead, v)
	case "Location":
		assign(&l.Location, v)
	case "RequestMeta":
		assign(&l.RequestMeta, v)
	case "Source":
		setText(&l.Source, v)
	case "Status":
		setText(&l.Status, v)
	case "Stage":
		setText(&l.Stage, v)
	case "TypeKey":
		setText(&l.TypeKey, v)
	case "TypeLabel":
		setText(&l.TypeLabel, v)
	case "Views":
		assign(&l.Views, v)
	case "ExternalID":
		setText(&l.ExternalID, v)
	case "DisplayName":
		setText(&l.DisplayName, v)
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
