package sandbox

import (
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

var createFields = fields{
	"organizationID": text, "locatorID": text, "locationSearch": object,
	"content": object, "typeKey": text, "typeLabel": text, "status": text,
}

// create makes a lead ("5. Create a lead"). It is stored when create returns.
func (s *Server) create(c call) (answer, error) {
	if c.tail != s.directory.trunkID {
		return answer{}, refuse(http.StatusNotFound, "the trunk organization is not known; --directory names your own")
	}
	f, err := c.form(createFields)
	if err != nil {
		return answer{}, err
	}
	l, err := newLead(f)
	if err != nil {
		return answer{}, err
	}
	if err := l.assign(f, s.directory); err != nil {
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
func (l *Lead) assign(f form, d *Directory) error {
	direct, located := f["organizationID"] != nil, f["locatorID"] != nil || f["locationSearch"] != nil
	switch {
	case direct && located:
		return refuse(http.StatusBadRequest, "give organizationID, or locatorID with locationSearch, not both")
	case located:
		found, err := d.locate(f)
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
	f, err := c.form(fields{"Status": text, "ExternalID": text, "Content": object})
	if err != nil {
		return answer{}, err
	}
	if len(f) == 0 {
		return answer{}, refuse(http.StatusBadRequest, "one of Status, ExternalID and Content is required")
	}
	content, err := parseContent(f["Content"])
	if err == nil && f["Status"] != nil {
		err = checkStatus(f.text("Status"))
	}
	if err != nil {
		return answer{}, err
	}
	l, err := s.store.change(c.tail, func(l *Lead) {
		if f["Status"] != nil {
			l.Status = f.text("Status")
		}
		if f["ExternalID"] != nil {
			l.ExternalID = f.text("ExternalID")
		}
		maps.Copy(l.Content, content)
		if f["Status"] != nil || f["ExternalID"] != nil || len(content) > 0 || s.options.ReadBumps {
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

// The kinds of value that a field of a request may have.
const (
	text   = jsontext.Kind('"')
	object = jsontext.Kind('{')
)

// fields names what an object may hold, and of which kind.
type fields map[string]jsontext.Kind

// form is what an object holds of its fields.
type form map[string]jsontext.Value

// text returns a text field, "" when it is not there.
func (f form) text(name string) string {
	b, _ := jsontext.AppendUnquote(nil, f[name])
	return string(b)
}

// required returns a text field that must be there and not be empty.
func (f form) required(name string) (string, error) {
	v := f.text(name)
	if strings.TrimSpace(v) == "" {
		return "", refuse(http.StatusBadRequest, "%s is required", name)
	}
	return v, nil
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

// form reads a request's body, which must be declared as JSON ("Endpoints").
func (c call) form(known fields) (form, error) {
	kind, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	if c.Header.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Encoding is not supported")
	}
	return parseForm("the body", c.body, known)
}

// parseForm reads one object of known fields: names in exact case and once only, valid UTF-8, nothing behind.
func parseForm(what string, b []byte, known fields) (f form, err error) {
	if jsontext.Value(b).Kind() != object {
		return nil, refuse(http.StatusBadRequest, "%s must be a JSON object", what)
	}
	if json.Unmarshal(b, &f) != nil {
		return nil, refuse(http.StatusBadRequest, "%s is not well-formed JSON", what)
	}
	for name, value := range f {
		switch want := known[name]; {
		case want == 0:
			return nil, refuse(http.StatusBadRequest, "%.64q is not a field of this object", name)
		case want != value.Kind():
			kind := map[jsontext.Kind]string{text: "a string", object: "an object"}[want]
			return nil, refuse(http.StatusBadRequest, "%s must be %s", name, kind)
		}
	}
	return f, nil
}

// parseContent reads an object of key/value pairs. Numbers keep their digits.
func parseContent(v jsontext.Value) (content map[string]any, err error) {
	if v != nil && json.Unmarshal(v, &content, exactNumbers) != nil {
		return nil, refuse(http.StatusBadRequest, "content is not well-formed JSON")
	}
	return content, nil
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
