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

// parrot stands before the sandbox. It has an account of its own, repeats in headers
// and messages whatever it was told, and refuses many leads by the number in their key.
type parrot struct {
	t       *testing.T
	service *sandbox.Server

	mu      sync.Mutex
	real    string // the sandbox's token
	issued  int
	heard   strings.Builder // all bodies
	hang    chan struct{}   // when set, creates are not answered until it is closed
	asked   int             // creates that came
	doubted bool            // the last of them was answered so
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
	status := p.mood(r.Method, body)
	if status == http.StatusOK || status == 0 {
		p.pass(w, r, body, status == 0)
		return
	}
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, repeat(keyOf(r, body), body, said))
}

// account answers sign-ins; the first of each kind is refused for a while.
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

// mood is what becomes of a request: 200 passes, 0 passes without an answer.
func (p *parrot) mood(method string, body []byte) int {
	if method == http.MethodPatch {
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
	case hang != nil && alone: // the others wait until it has left no doubt
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

// inRow tells whether the create before this one left doubt, too: many in a row would end the run.
func (p *parrot) inRow(doubt bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := doubt && p.doubted
	p.doubted = doubt && !again
	return again
}

// pass hands a request to the sandbox, with a token that it takes.
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

// number is that of a key like K-007.
func number(key string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(key, "K-"))
	if err != nil {
		return 0
	}
	return n
}

// repeat is a refusal that repeats all that was said, in one of many ways.
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
