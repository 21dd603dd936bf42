package leadapi

import "github.com/go-json-experiment/json/jsontext"

// CreateRequest is the body of a create (section "Lead creation request body"): OrganizationID, or LocatorID with a LocationSearch.
type CreateRequest struct {
	OrganizationID string
	LocatorID      string // used when OrganizationID is ""; one of the two is needed
	LocationSearch LocationSearch
	Content        []ContentField // sent in this order; each key once
	TypeKey        string
	TypeLabel      string
	Status         string // "": the service's default
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
		if r.LocationSearch.SearchText != "" {
			b = appendText(b, "searchText", r.LocationSearch.SearchText)
		}
		if r.LocationSearch.PostalCode != "" {
			b = appendText(b, "postalCode", r.LocationSearch.PostalCode)
		}
		b = append(b, '}')
	}
	b = appendContent(b, "content", r.Content)
	b = appendText(b, "typeKey", r.TypeKey)
	b = appendText(b, "typeLabel", r.TypeLabel)
	if r.Status != "" {
		b = appendText(b, "status", r.Status)
	}
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
