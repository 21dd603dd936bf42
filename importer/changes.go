package importer

import (
	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Changes are the parts of a Record that differ from what was last confirmed of its
// lead. An empty value changes nothing, and volatile fields are never among them.
type Changes struct {
	Status, ExternalID bool
	Fields             []int // of the Record's Content
}

func (s *Changes) none() bool { return !s.Status && !s.ExternalID && len(s.Fields) == 0 }

// changes compares the row with its lead. Everything differs where nobody knows what
// the lead holds: an update of it is not settled, or it was made by
// somebody else.
func (c *Case) changes() *Changes {
	rec, known := c.Record, c.Known
	all := known.Unsettled != "" || !known.State.HasLead()
	s := &Changes{
		Status:     rec.Status != "" && (all || rec.Status != known.Status),
		ExternalID: rec.ExternalID != "" && (all || rec.ExternalID != known.ExternalID),
	}
	if all = all || len(known.Content) == 0; all {
		for i := range rec.Content {
			if !rec.Content[i].Volatile {
				s.Fields = append(s.Fields, i)
			}
		}
		return s
	}
	sums := c.digests.fields(c.it)
	n, at := 0, 0
	for i := range rec.Content {
		if rec.Content[i].Volatile {
			continue
		}
		var held bool
		if held, at = holds(known.Content, &sums[n], at); !held {
			s.Fields = append(s.Fields, i)
		}
		n++
	}
	return s
}

// holds reports whether the content has this value. It looks from at on, since rows
// have their fields in the order in which they were sent, and returns where to go on.
func holds(content []checkpoint.ContentDigest, d *checkpoint.ContentDigest, at int) (bool, int) {
	for range content {
		if at >= len(content) {
			at = 0
		}
		if content[at].Name == d.Name {
			return content[at].Value == d.Value, at + 1
		}
		at++
	}
	return false, at
}

// merged is the content that is confirmed after an update: what was, with the row's
// fields in place of theirs. Those of wrong, by their place in the Record, are not
// known any more.
func merged(known []checkpoint.ContentDigest, rec *mapping.Record, sums []checkpoint.ContentDigest, wrong map[int]bool) []checkpoint.ContentDigest {
	list := make([]checkpoint.ContentDigest, 0, len(known)+len(sums))
	list = append(list, known...)
	n := 0
	for i := range rec.Content {
		if rec.Content[i].Volatile {
			continue
		}
		list = put(list, sums[n], wrong[i])
		n++
	}
	return list
}

func put(list []checkpoint.ContentDigest, d checkpoint.ContentDigest, unknown bool) []checkpoint.ContentDigest {
	for i := range list {
		if list[i].Name != d.Name {
			continue
		}
		if unknown {
			return append(list[:i], list[i+1:]...)
		}
		list[i] = d
		return list
	}
	if unknown {
		return list
	}
	return append(list, d)
}

// updateRequest is what the service is to change.
func updateRequest(rec *mapping.Record, s *Changes) *leadapi.UpdateRequest {
	r := &leadapi.UpdateRequest{}
	if s.Status {
		r.Status = &rec.Status
	}
	if s.ExternalID {
		r.ExternalID = &rec.ExternalID
	}
	for _, i := range s.Fields {
		f := &rec.Content[i]
		r.Content = append(r.Content, leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Kind != mapping.String})
	}
	return r
}
