package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"leadferry/leadapi/sandbox"
)

// parrot is a proxy before the sandbox, with its own account. It repeats in headers and
// messages whatever it hears, and refuses many leads by the number in their key.
type parrot struct {
	t       *testing.T
	service *sandbox.Server

	mu      sync.Mutex
	real    string // the sandbox's token
	issued  int
	heard   strings.Builder // all bodies
	hang    chan struct{}   // when set, creates are not answered until it is closed
	asked   int             // creates that came
	doubted bool            // the last of them left doubt
}

// parroted is a world whose service is a parrot.
func parroted(t *testing.T) (*world, *parrot) {
	w := newWorld(t, sandbox.Options{})
	p := &parrot{t: t, service: w.service}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	w.env = append(w.env, "LEADFERRY_BASE_URL="+server.URL, "LEADFERRY_LEADS_URL="+server.URL,
		"LEADFERRY_CLIENT_ID=", "LEADFERRY_CLIENT_SECRET=", "NO_PROXY=*")
	return w, p
}

func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	said := string(body) + r.URL.RawQuery + r.Header.Get("Authorization")
	w.Header().Set("X-Echo", url.QueryEscape(said))
	w.Header().Set("Location", "http://127.0.0.1:1/?"+url.QueryEscape(said))
	if name, ok := strings.CutPrefix(r.URL.Path, "/v3/oauth2/"); ok {
		p.account(w, r, name, said)
		return
	}
	p.mu.Lock()
	p.heard.Write(body)
	p.mu.Unlock()
	status := p.statusFor(r.Method, body)
	if status == http.StatusOK || status == 0 {
		p.pass(w, r, body, status == 0)
		return
	}
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, repeat(keyOf(r, body), body, said))
}

// account answers sign-ins. It refuses those without the planted password, token or secret.
func (p *parrot) account(w http.ResponseWriter, r *http.Request, name, said string) {
	p.mu.Lock()
	p.issued++
	n := strconv.Itoa(p.issued)
	p.mu.Unlock()
	known := map[string]string{
		"login": canaryPassword, "client": canaryTemporary, "token": canarySecret,
	}[name]
	whole, _ := url.QueryUnescape(r.URL.RawQuery)
	var login struct{ Password string }
	_ = json.Unmarshal([]byte(strings.TrimSuffix(said, r.Header.Get("Authorization"))), &login)
	if !strings.Contains(said+whole+login.Password, known) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": "not " + said + whole + login.Password, "error_description": canarySecret})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"Token": canaryTemporary + n, "ID": "client-1", "Secret": canarySecret, "message": said,
		"access_token": canaryAccess + n, "refresh_token": canaryRefresh + n, "expires_in": 10800,
	})
}

// statusFor decides how a request is answered: 200 passes it on, 0 does so and sends no answer.
func (p *parrot) statusFor(method string, body []byte) int {
	if method != http.MethodPost { // a GET does not change p.doubted
		if bytes.Contains(body, []byte(`3"}`)) || bytes.Contains(body, []byte("refuse")) {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	}
	p.mu.Lock()
	p.asked++
	hang, alone := p.hang, p.asked == 1
	p.mu.Unlock()
	switch {
	case hang != nil && alone: // the others come after its answer
		return http.StatusOK
	case hang != nil:
		<-hang
	}
	n := number(refOf(body))
	if p.inRow(n%10 == 2 || n%10 == 9) {
		return http.StatusOK
	}
	switch n % 10 {
	case 1:
		return http.StatusUnprocessableEntity
	case 2:
		return http.StatusInternalServerError
	case 5:
		if n < 20 {
			return http.StatusTooManyRequests
		}
	case 6:
		return http.StatusConflict
	case 8:
		return http.StatusNotFound
	case 9:
		return 0
	}
	return http.StatusOK
}

// inRow reports whether the create before this one left doubt, too. Many in a row would end the run.
func (p *parrot) inRow(doubt bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := doubt && p.doubted
	p.doubted = doubt && !again
	return again
}

// pass hands a request to the sandbox, with a token that is valid there.
func (p *parrot) pass(w http.ResponseWriter, r *http.Request, body []byte, silent bool) {
	p.mu.Lock()
	if p.real == "" {
		answer := httptest.NewRecorder()
		p.service.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v3/oauth2/token?grant_type=client_credentials&client_id="+sandbox.ClientID+"&client_secret="+sandbox.ClientSecret, nil))
		var got struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			p.t.Error(err)
		}
		p.real = got.Token
	}
	r.Header.Set("Authorization", "Bearer "+p.real)
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	p.service.ServeHTTP(answer, r)
	if silent {
		panic(http.ErrAbortHandler) // stored, not answered
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func refOf(body []byte) string {
	var lead struct {
		Content map[string]any `json:"content"`
	}
	_ = json.Unmarshal(body, &lead)
	ref, _ := lead.Content["importRef"].(string)
	return ref
}

func keyOf(r *http.Request, body []byte) int {
	if r.Method == http.MethodPatch {
		return len(body)
	}
	return number(refOf(body))
}

// number is 7 for the key K-007, and 0 for other texts.
func number(key string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(key, "K-"))
	if err != nil {
		return 0
	}
	return n
}

// repeat is the body of a refusal that repeats what was sent, in one of many ways.
func repeat(n int, body []byte, said string) string {
	var lead struct {
		Content, content map[string]any
		LocationSearch   map[string]any `json:"locationSearch"`
	}
	_ = json.Unmarshal(body, &lead)
	var values []string
	for _, of := range []map[string]any{lead.Content, lead.LocationSearch} {
		for _, v := range of {
			values = append(values, fmt.Sprint(v))
		}
	}
	all := strings.Join(values, "; ")
	message := func(text string) string {
		b, _ := json.Marshal(map[string]string{"message": text})
		return string(b)
	}
	switch (n / 10) % 9 {
	case 0:
		return message("these are not allowed: " + all)
	case 1:
		return said
	case 2:
		return message("so " + base64.StdEncoding.EncodeToString([]byte(all)))
	case 3:
		return message("got " + fmt.Sprintf("%x", all))
	case 4:
		return message("got " + url.QueryEscape(all))
	case 5:
		return message("got " + strconv.QuoteToASCII(all))
	case 6:
		return message("got " + asciiUpper(all))
	case 7:
		return message("=got " + url.PathEscape(all) + "\n\x1b[31m")
	}
	return `{"error":{"code":7,"message":` + strconv.Quote(fold(said)) + `}}`
}

// A canary is a value that is planted to be looked for. A secret is also looked for in
// pieces of pieceLength characters; only files made for it may hold them.
type canary struct {
	value  string
	secret bool
}

// pieceLength is how much of a secret is as bad as all of it.
const pieceLength = 12

// encodings are the five ways in which a canary is looked for. The case of ASCII letters does not count.
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

// base64Forms are the base64 characters that depend on s alone, for each of the three
// places at which s can begin in a group of three bytes.
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

// spaced is the bytes of a text in hexadecimal, with a separator between them.
func spaced(s, between string) string {
	bytes := make([]string, len(s))
	for i := range len(s) {
		bytes[i] = fmt.Sprintf("%02x", s[i])
	}
	return strings.Join(bytes, between)
}

// pieces are the texts that must not be seen: a value whole, a secret also in parts.
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

// fold returns s with ASCII letters in lower case.
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

// find reports each canary once in each encoding.
func (f *finder) find(data string) (hits []hit) {
	text := fold(data)
	known := map[[2]int32]bool{}
	for i := 0; i+headLength <= len(text); i++ {
		if !f.begins[begin(text[i:])] {
			continue
		}
		for _, k := range f.heads[text[i:i+headLength]] {
			n := &f.needles[k]
			key := [2]int32{n.canary, n.encoding}
			if !known[key] && strings.HasPrefix(text[i:], n.text) {
				known[key] = true
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
