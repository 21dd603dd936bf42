package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A canary is a value that is planted to be looked for. Of a secret, any pieceLength
// characters running are looked for; they may stand nowhere but in files made for it.
type canary struct {
	value  string
	secret bool
}

// pieceLength is how much of a secret is as bad as all of it.
const pieceLength = 12

// encodings are the five ways in which a canary is looked for. Upper and lower case of
// ASCII count as the same.
var encodings = []struct {
	name  string
	forms func(string) []string
}{
	{"as it is", func(s string) []string { return []string{s} }},
	{"JSON or Go escapes", escapedForms},
	{"URL encoding", func(s string) []string { return []string{url.QueryEscape(s), url.PathEscape(s), percent(s)} }},
	{"base64", base64Forms},
	{"hexadecimal", func(s string) []string {
		return []string{fmt.Sprintf("%x", s), `\x` + spaced(s, `\x`), spaced(s, " ")}
	}},
}

func escapedForms(s string) []string {
	plain, _ := json.Marshal(s)
	var loose strings.Builder
	e := json.NewEncoder(&loose)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a builder takes everything
	quoted := strings.TrimSpace(loose.String())
	twice, _ := json.Marshal(quoted[1 : len(quoted)-1])
	again, _ := json.Marshal(string(plain[1 : len(plain)-1]))
	var units strings.Builder // every character as \uXXXX
	for _, r := range s {
		fmt.Fprintf(&units, `\u%04x`, r)
	}
	forms := []string{string(plain), quoted, string(twice), string(again), strconv.Quote(s), strconv.QuoteToASCII(s)}
	for i, f := range forms {
		forms[i] = f[1 : len(f)-1]
	}
	return append(forms, units.String())
}

// base64Forms are the characters that a text makes for certain, wherever it begins in
// the three bytes that four characters hold.
func base64Forms(s string) (forms []string) {
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := e.EncodeToString([]byte(strings.Repeat("\x00", before) + s))
			first, last := (before*8+5)/6, (before+len(s))*8/6
			forms = append(forms, text[first:last])
		}
	}
	return forms
}

func percent(s string) string { return "%" + spaced(s, "%") }

// spaced are the bytes of a text in hexadecimal with something between.
func spaced(s, between string) string {
	bytes := make([]string, len(s))
	for i := range len(s) {
		bytes[i] = fmt.Sprintf("%02x", s[i])
	}
	return strings.Join(bytes, between)
}

// pieces are what must not be seen of a canary.
func (c *canary) pieces() []string {
	runes := []rune(c.value)
	if !c.secret || len(runes) <= pieceLength {
		return []string{c.value}
	}
	var all []string
	for i := 0; i+pieceLength <= len(runes); i++ {
		all = append(all, string(runes[i:i+pieceLength]))
	}
	return all
}

// A finder looks for many canaries in one pass.
type finder struct {
	canaries []canary
	needles  []needle
	heads    map[string][]int32 // needles by their first headLength bytes
	begins   [1 << 16]bool      // the first two bytes of any needle
}

type needle struct {
	text     string
	canary   int32
	encoding int32
}

const headLength = 8

func newFinder(canaries []canary) *finder {
	f := &finder{canaries: canaries, heads: map[string][]int32{}}
	seen := map[string]bool{}
	for i := range canaries {
		for _, piece := range canaries[i].pieces() {
			for k, e := range encodings {
				for _, form := range e.forms(piece) {
					form = fold(form)
					if seen[form] {
						continue
					}
					seen[form] = true
					f.add(needle{form, int32(i), int32(k)})
				}
			}
		}
	}
	return f
}

func (f *finder) add(n needle) {
	if len(n.text) < headLength {
		panic("too short to be looked for: " + n.text)
	}
	head := n.text[:headLength]
	f.heads[head] = append(f.heads[head], int32(len(f.needles)))
	f.begins[begin(head)] = true
	f.needles = append(f.needles, n)
}

func begin(s string) uint16 { return uint16(s[0])<<8 | uint16(s[1]) }

// fold makes ASCII letters small.
func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// hit is a canary that was found, with the place of its first byte.
type hit struct {
	canary   *canary
	encoding string
	at       int
}

func (h hit) String() string { return fmt.Sprintf("%q (%s) at %d", h.canary.value, h.encoding, h.at) }

// find tells of each canary once in each encoding.
func (f *finder) find(data string) (hits []hit) {
	text := fold(data)
	told := map[[2]int32]bool{}
	for i := 0; i+headLength <= len(text); i++ {
		if !f.begins[begin(text[i:])] {
			continue
		}
		for _, k := range f.heads[text[i:i+headLength]] {
			n := &f.needles[k]
			key := [2]int32{n.canary, n.encoding}
			if !told[key] && strings.HasPrefix(text[i:], n.text) {
				told[key] = true
				hits = append(hits, hit{&f.canaries[n.canary], encodings[n.encoding].name, i})
			}
		}
	}
	return hits
}

func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}
