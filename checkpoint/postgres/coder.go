package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
)

// What of a record has no column of its own is kept as JSON of what is not zero, whose texts are as the server takes them.
var asText = json.JoinOptions(json.OmitZeroStructFields(true),
	json.WithMarshalers(json.MarshalToFunc(func(to *jsontext.Encoder, s string) error {
		return to.WriteToken(jsontext.String(clean(s)))
	})),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(from *jsontext.Decoder, s *string) error {
		t, err := from.ReadToken()
		if err == nil && t.Kind() != '"' {
			err = fmt.Errorf("%v is no text", t.Kind())
		}
		*s = restore(t.String())
		return err
	})))

// aside is a record but for what has columns, and what stands below a doubt.
type aside struct {
	checkpoint.Kept
	Below *checkpoint.Kept
}

func jsonOf(v any) string {
	text, err := json.Marshal(v, asText)
	if err != nil {
		panic(err) // there is nothing in a record that JSON cannot hold
	}
	return string(text)
}

func parse(text string, v any) error {
	if err := json.Unmarshal([]byte(text), v, asText); err != nil {
		return fmt.Errorf("%w: a record is not as this version writes it", checkpoint.ErrDamaged)
	}
	return nil
}

// keyed is a record, and what it came in place of, under a key; "": as it is kept, where the key stands beside it.
func keyed(k *checkpoint.Kept, key string) *checkpoint.Kept {
	if k == nil {
		return nil
	}
	under := *k
	under.Key, under.Prior = key, keyed(k.Prior, key)
	return &under
}

// texts are the parts of a record that have columns from lead_id to run.
func texts(k *checkpoint.Kept) [10]*string {
	return [...]*string{
		&k.LeadID, &k.Organization, &k.Location, &k.Status, &k.ExternalID, &k.WantLink, &k.Locator, &k.File, &k.Reason, &k.Run,
	}
}

// extra is what has no column: of what look-ups show, and what stands below it.
func (r *row) extra() string {
	a := aside{Kept: *keyed(r.visible(), "")}
	for _, text := range texts(&a.Kept) {
		*text = ""
	}
	a.State, a.Code, a.Line, a.Updated, a.Digest, a.Content = 0, 0, 0, time.Time{}, checkpoint.Digest{}, nil
	if r.Intent != nil {
		a.Below = keyed(r.Entry, "")
	}
	return jsonOf(&a)
}

// unclean begins a text that the server would not take as it is, in hexadecimal digits.
const unclean = "\x01"

// between parts the texts of a list that is sent as one.
const between = "\x1e"

// clean is a text as the server takes it: without NUL, and UTF-8. restore is its reverse.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.Contains(s, between) && !strings.HasPrefix(s, unclean) {
		return s
	}
	return unclean + hex.EncodeToString([]byte(s))
}

func restore(s string) string {
	if !strings.HasPrefix(s, unclean) {
		return s
	}
	raw, _ := hex.DecodeString(s[len(unclean):])
	return string(raw)
}

// contentBytes are the digests of a content as they stand in their column.
func contentBytes(content []checkpoint.ContentDigest) []byte {
	b := make([]byte, 0, 8*len(content))
	for i := range content {
		b = append(append(b, content[i].Name[:]...), content[i].Value[:]...)
	}
	return b
}
