package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// holder stands before the sandbox. Creates are applied at once; the answers of the
// first few, but for the very first, which goes alone, are held back until they are let go.
type holder struct {
	service http.Handler
	first   int           // creates whose answers are held
	let     chan struct{} // closed: they go

	mu       sync.Mutex
	posts    map[string]int // creates that came, by importRef
	held     int
	answered int // of those held
}

// hold sends the program's requests through a holder.
func (w *world) hold(first int) *holder {
	h := &holder{service: w.service, first: first, let: make(chan struct{}), posts: map[string]int{}}
	server := httptest.NewServer(h)
	w.t.Cleanup(server.Close)
	w.env = append(w.env, "LEADFERRY_BASE_URL="+server.URL, "LEADFERRY_LEADS_URL="+server.URL)
	return h
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") || r.Method != http.MethodPost {
		h.service.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	h.service.ServeHTTP(answer, r)
	held := h.note(body)
	if held {
		select {
		case <-h.let:
		case <-r.Context().Done():
			return
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	if held && http.NewResponseController(w).Flush() == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answered++
	}
}

func (h *holder) note(body []byte) (held bool) {
	var lead struct {
		Content map[string]string `json:"content"`
	}
	_ = json.Unmarshal(body, &lead)
	h.mu.Lock()
	defer h.mu.Unlock()
	alone := len(h.posts) == 0
	h.posts[lead.Content["importRef"]]++
	if held = !alone && h.held < h.first; held {
		h.held++
	}
	return held
}

func (h *holder) counts() (held, answered int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held, h.answered
}

// full waits until all the answers that are held back are there: so many requests are
// in flight.
func (h *holder) full(t *testing.T) {
	t.Helper()
	eventually(t, "requests are in flight", func() bool { held, _ := h.counts(); return held == h.first })
}

// shell is a shell's script, not yet started, in which $0 is the program.
func (w *world) shell(script string) *exec.Cmd {
	c := exec.Command("sh", "-c", script, binary())
	c.Dir, c.Env = w.dir, w.env
	return c
}
