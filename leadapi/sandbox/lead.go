package sandbox

import (
	"net"
	"net/http"
	"slices"
	"time"
)

// Lead is a lead as the sandbox keeps it ("Lead"), with the search that assigned it. Values of Content
// are strings, booleans, nil, lists, objects, and numbers as jsontext.Value with the digits that were sent.
type Lead struct {
	ID, OrganizationID                  string
	LocatorID, SearchText, PostalCode   string
	LocationName, LocationAddress       string
	TypeKey, TypeLabel                  string
	Status, ExternalID                  string
	Content                             map[string]any
	CreatedAt, UpdatedAt                time.Time
	ContentType, Host, IP, Locale, Path string
	UserAgent                           string
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

// touch marks the lead as changed: UpdatedAt always moves.
func (l *Lead) touch(now time.Time) {
	if !now.After(l.UpdatedAt) {
		now = l.UpdatedAt.Add(time.Microsecond)
	}
	l.UpdatedAt = now
}

// requested notes the request that created the lead.
func (l *Lead) requested(r *http.Request) {
	l.ContentType, l.Host, l.Path = r.Header.Get("Content-Type"), r.Host, r.URL.Path
	l.Locale, l.UserAgent = r.Header.Get("Accept-Language"), r.UserAgent()
	l.IP, _, _ = net.SplitHostPort(r.RemoteAddr)
}

// leadBody is the lead as an update answers it, in the order of the specification's table.
type leadBody struct {
	ID          string
	ReadOnly    bool
	CreatedAt   string
	UpdatedAt   string
	OwnerID     string
	Content     map[string]any
	Impressions int
	IsTestLead  bool
	Location    locationBody
	RequestMeta requestBody
	Source      string
	Status      string
	Stage       string
	TypeKey     string
	TypeLabel   string
	Views       int
	ExternalID  string
	DisplayName string
}

type locationBody struct{ Name, Address string }

type requestBody struct{ ContentType, Host, IP, Locale, URL, UserAgent string }

func (l *Lead) body() leadBody {
	name, _ := l.Content["name"].(string)
	return leadBody{
		ID: l.ID, CreatedAt: timestamp(l.CreatedAt), UpdatedAt: timestamp(l.UpdatedAt), OwnerID: l.OrganizationID,
		Content: l.Content, Location: locationBody{l.LocationName, l.LocationAddress},
		RequestMeta: requestBody{l.ContentType, l.Host, l.IP, l.Locale, l.Path, l.UserAgent},
		Source:      "lead-collector", Status: l.Status, Stage: "lead",
		TypeKey: l.TypeKey, TypeLabel: l.TypeLabel, ExternalID: l.ExternalID, DisplayName: name,
	}
}

// timestamp is a time in ISO 8601, UTC, with fractional seconds.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
