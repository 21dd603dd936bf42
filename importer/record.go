package importer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/internal/crash"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// recordMaker makes Records and digests of rows. Each goroutine has its own.
type recordMaker struct {
	intake   *intake
	bindings map[*source.Header]*mapping.Binding
	bound    []*mapping.Binding // new ones, of this batch
	digests  *digester          // nil: none wanted
}

func (r *intake) newMaker() *recordMaker {
	m := &recordMaker{intake: r, bindings: maps.Clone(r.bindings)}
	if r.sums != nil {
		m.digests = newDigester(r.sums)
	}
	return m
}

// make makes the Records of a batch. An error ends the batch before its row.
func (m *recordMaker) make(b *batch) {
	defer close(b.made)
	m.bound = nil
	mine := b.items[:0] // in place: shorter than what was looked at
	var under *item
	err := crash.Call(func() error {
		for _, under = range b.items {
			if err := m.record(under); err != nil {
				return err
			}
			if o := m.intake.options; o.Shard.takes(under, o.Mapping.HasLeadID()) {
				mine = append(mine, under)
			}
		}
		return nil
	})
	if _, failed := errors.AsType[*crash.Error](err); failed {
		err = fmt.Errorf("%s:%d: %w", m.intake.paths[under.input], under.row.Line, err)
	}
	if err != nil {
		b.err = err
	}
	b.items, b.bound = mine, m.bound
}

// record maps a row and makes its digests. An error is one of its file.
func (m *recordMaker) record(it *item) error {
	row, file := &it.row, m.intake.paths[it.input]
	if row.Problem != nil || row.Faults != nil || row.Repeats { // else Map fills it
		rec := &it.rec
		*rec = mapping.Record{Content: rec.Content[:0], Dropped: rec.Dropped[:0], Caught: rec.Caught[:0]}
	}
	if p := row.Problem; p != nil {
		it.faults = []mapping.Problem{{Rule: p.Code, Text: p.String()}}
		return nil
	}
	b, err := m.binding(file, row.Header)
	if err != nil {
		return err
	}
	for _, f := range row.Faults {
		if b.Uses[f.Column] {
			it.faults = append(it.faults, mapping.Problem{Rule: f.Code, Text: f.String()})
		}
	}
	if it.faults != nil {
		return nil
	}
	row.Text = "" // needed only for problems
	if row.Repeats {
		it.rec.Skip = true
		return nil
	}
	env := mapping.Env{
		File: file, Line: row.Line, Run: m.intake.options.RunID, Caught: m.intake.caught, OneLine: row.OneLine,
	}
	it.faults = b.Map(row.Cells, env, &it.rec)
	if row.Size > largeRow {
		it.detach()
	}
	const tooLong = "the %s is longer than %d bytes"
	switch {
	case it.faults != nil, it.rec.Skip:
	case len(it.rec.Key) > checkpoint.MaxKey:
		it.faults = []mapping.Problem{{Rule: "key", Text: fmt.Sprintf(tooLong, "key", checkpoint.MaxKey)}}
	case len(it.rec.ExternalID) > checkpoint.MaxKey:
		text := fmt.Sprintf(tooLong, "ExternalID", checkpoint.MaxKey)
		it.faults = []mapping.Problem{{Rule: "external_id", Text: text}}
	case m.digests != nil && m.intake.fields:
		m.digests.ofContent(it)
	case m.digests != nil:
		m.digests.ofRequest(it)
	}
	return nil
}

// maxBindings is how many bindings are kept. Rows of JSONL may all have other columns.
const maxBindings = 1024

func (m *recordMaker) binding(file string, h *source.Header) (*mapping.Binding, error) {
	if b := m.bindings[h]; b != nil {
		return b, nil
	}
	b, err := bindTo(m.intake.options.Mapping, file, h)
	if err != nil {
		return nil, err
	}
	if len(m.bindings) >= maxBindings {
		clear(m.bindings)
	}
	m.bindings[h] = b
	m.bound = append(m.bound, b)
	return b, nil
}

func bindTo(m *mapping.Mapping, file string, h *source.Header) (*mapping.Binding, error) {
	return m.Bind(file, mapping.Columns{Names: h.Names, Own: h.Own, Open: h.Open})
}

// detach copies texts that may be kept longer than the row. A part of the row's text would keep all of it in memory.
func (it *item) detach() {
	rec := &it.rec
	for _, text := range []*string{
		&rec.Key, &rec.LeadID, &rec.ExternalID, &rec.Organization, &rec.Locator, &rec.Status,
	} {
		*text = strings.Clone(*text)
	}
}

// sentence joins the problems of a row.
func sentence(ps []mapping.Problem) string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		if texts[i] = p.Text; p.Column != "" {
			texts[i] = fmt.Sprintf("column %s: %s", p.Column, p.Text)
		}
	}
	return strings.Join(texts, "; ")
}

func createRequest(rec *mapping.Record) *leadapi.CreateRequest {
	r := &leadapi.CreateRequest{
		OrganizationID: rec.Organization, LocatorID: rec.Locator,
		LocationSearch: leadapi.LocationSearch{SearchText: rec.SearchText, PostalCode: rec.PostalCode},
		TypeKey:        rec.TypeKey, TypeLabel: rec.TypeLabel, Status: rec.Status,
		Content: make([]leadapi.ContentField, 0, len(rec.Content)),
	}
	for i := range rec.Content {
		r.Content = append(r.Content, contentField(&rec.Content[i]))
	}
	return r
}

func contentField(f *mapping.Field) leadapi.ContentField {
	return leadapi.ContentField{Key: f.Name, Value: f.Value, Literal: f.Literal}
}

func updateRequest(rec *mapping.Record, fields []int) *leadapi.UpdateRequest {
	r := &leadapi.UpdateRequest{}
	for _, at := range fields {
		switch at {
		case atStatus:
			r.Status = &rec.Status
		case atExternal:
			r.ExternalID = &rec.ExternalID
		default:
			r.Content = append(r.Content, contentField(&rec.Content[at]))
		}
	}
	return r
}

// sums makes the checkpoint's keyed digests.
type sums interface {
	Sum(b []byte) checkpoint.Digest
	SumName(name string) [4]byte
	SumValue(name, value string) [4]byte
}

// digester makes the keyed digests of rows, once for each row. Each goroutine has its own.
type digester struct {
	sums  sums
	text  []byte
	names map[string][4]byte // digests of content keys
	order []int              // fields of a row by their names
}

const maxNames = 10000 // digests of content keys that a digester keeps

func newDigester(s sums) *digester { return &digester{sums: s, names: map[string][4]byte{}} }

// ofRequest is the digest of everything that the row sends.
func (d *digester) ofRequest(it *item) checkpoint.Digest {
	if it.digest == (checkpoint.Digest{}) {
		d.text = d.fingerprint(d.text[:0], &it.rec)
		it.digest = d.sums.Sum(d.text)
	}
	return it.digest
}

// ofContent are the short digests of the row's content without volatile fields, which show a sync what changed.
func (d *digester) ofContent(it *item) []checkpoint.ContentDigest {
	if it.sums == nil {
		it.sums = make([]checkpoint.ContentDigest, 0, len(it.rec.Content))
		for i := range it.rec.Content {
			if f := &it.rec.Content[i]; !f.Volatile {
				value := d.sums.SumValue(f.Name, compared(f))
				it.sums = append(it.sums, checkpoint.ContentDigest{Name: d.name(f.Name), Value: value})
			}
		}
	}
	return it.sums
}

func (d *digester) name(name string) [4]byte {
	sum, ok := d.names[name]
	if !ok {
		if len(d.names) >= maxNames {
			clear(d.names)
		}
		sum = d.sums.SumName(name)
		d.names[name] = sum
	}
	return sum
}

// fingerprint is the same for two Records with the same data: everything that is sent except volatile fields, content
// keys sorted by name. Neither another run nor another order in the mapping is a change.
func (d *digester) fingerprint(b []byte, rec *mapping.Record) []byte {
	for _, s := range [...]string{
		rec.Organization, rec.Locator, rec.SearchText, rec.PostalCode,
		rec.TypeKey, rec.TypeLabel, rec.Status, rec.ExternalID,
	} {
		b = appendText(b, s)
	}
	d.order = d.order[:0]
	for i := range rec.Content {
		d.order = append(d.order, i)
	}
	slices.SortStableFunc(d.order, func(x, y int) int { return cmp.Compare(rec.Content[x].Name, rec.Content[y].Name) })
	for _, i := range d.order {
		if f := &rec.Content[i]; !f.Volatile {
			b = appendText(appendText(b, f.Name), compared(f))
		}
	}
	return b
}

// compared is a field's value in the form of canonical.
func compared(f *mapping.Field) string {
	if !f.Literal {
		return f.Value
	}
	return canonical(jsontext.Value(f.Value))
}

// canonical is a value of Content in the form in which values are compared, however they were written. A string is its
// text. Everything else begins with a byte that is not UTF-8, so that 7 is not "7". A missing value is "".
func canonical(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text)
	case '0':
		return "\xff" + mapping.PlainNumber(string(value))
	case '{', '[':
		value = value.Clone()
		_ = value.Canonicalize() // a value that is not JSON stays as it is
	}
	if len(value) == 0 {
		return ""
	}
	return "\xff" + string(value)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
