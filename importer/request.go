package importer

import (
	"cmp"
	"encoding/binary"
	"slices"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// createRequest fills r, whose content it uses again, with the Record as the service
// wants it, and returns it.
func createRequest(r *leadapi.CreateRequest, rec *mapping.Record) *leadapi.CreateRequest {
	content := slices.Grow(r.Content[:0], len(rec.Content))
	for i := range rec.Content {
		f := &rec.Content[i]
		content = append(content, leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Kind != mapping.String})
	}
	*r = leadapi.CreateRequest{
		OrganizationID: rec.Organization,
		LocatorID:      rec.Locator,
		LocationSearch: leadapi.LocationSearch{SearchText: rec.SearchText, PostalCode: rec.PostalCode},
		Content:        content,
		TypeKey:        rec.TypeKey,
		TypeLabel:      rec.TypeLabel,
		Status:         rec.Status,
	}
	return r
}

// requestOf is the request that a step would send, as --show prints it.
func requestOf(trunk, file string, it *item, step Step, known *checkpoint.Entry) Request {
	r := Request{File: file, Line: it.row.Line, Key: it.rec.Key}
	if step.Action != Create {
		send := step.Send
		if step.Action == Link {
			send.ExternalID = true
		}
		r.Method, r.Path = "PATCH", "/v3/lead/"+cmp.Or(known.LeadID, it.rec.LeadID)
		r.Body = updateRequest(&it.rec, &send).AppendJSON(nil)
		return r
	}
	if trunk == "" {
		trunk = "{trunkID}" // validate knows no target
	}
	r.Method, r.Path = "POST", "/v1/"+trunk
	r.Body = createRequest(new(leadapi.CreateRequest), &it.rec).AppendJSON(nil)
	return r
}

// fingerprint is what makes two Records carry the same data: everything that is
// sent but volatile fields, content keys in the order of their names, so that
// neither another run nor a rearranged mapping counts as a change.
func fingerprint(b []byte, rec *mapping.Record) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	var order [16]*mapping.Field
	fields := order[:0]
	for i := range rec.Content {
		if !rec.Content[i].Volatile {
			fields = append(fields, &rec.Content[i])
		}
	}
	slices.SortFunc(fields, func(x, y *mapping.Field) int { return cmp.Compare(x.Name, y.Name) })
	for _, f := range fields {
		b = appendText(appendText(b, f.Name), compared(f))
	}
	return b
}

// compared is what tells a field's value from others. A text stands for itself; what
// is no text gets a byte before it that no text holds, being no UTF-8, so that 7 is
// not "7". What is the same in the request is the same here, whatever its Kind.
func compared(f *mapping.Field) string {
	if f.Kind == mapping.String {
		return f.Value
	}
	return "\xff" + f.Value
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
