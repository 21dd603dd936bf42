package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// Site gives the View of an address, of which path and query count; false: there is none.
// Many goroutines ask it at once, and it must not block.
type Site func(at *url.URL) (View, bool)

// What a server bears.
const (
	maxConnections = 64               // open at a time; others wait
	ioTimeout      = 5 * time.Second  // for a request's head, and for a reader to take what was written
	idleTimeout    = 30 * time.Second // of a connection between requests
	finalWait      = time.Second      // for all readers to take the last word
	maxHeader      = 8 << 10          // bytes of a request's head, about
)

// Server shows a Site on a loopback address.
type Server struct {
	site     Site
	every    time.Duration // between two looks at the site, for a reader
	server   *http.Server
	listener net.Listener
	hosts    []string // by which a request may name it
	token    string   // in the address that the person is given
	session  string   // in the cookie that it is exchanged for
	cookie   string   // name

	serving sync.WaitGroup // the listener, and readers that follow an address
	ending  chan struct{}  // closed: readers get the last word
	end     func()
}

// Serve begins to show a site at addr, such as 127.0.0.1:0 for a free port. An address
// that others could reach is refused. Close must follow.
func Serve(addr string, site Site) (*Server, error) { return serve(addr, site, time.Second) }

func serve(addr string, site Site, every time.Duration) (*Server, error) {
	listener, err := listen(addr)
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	s := &Server{
		site: site, every: every, listener: listener, token: rand.Text() + rand.Text(), session: rand.Text() + rand.Text(),
		cookie: "leadferry-" + port, // cookies do not tell ports apart
		hosts:  []string{listener.Addr().String(), "localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port},
		ending: make(chan struct{}),
	}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	s.server = &http.Server{
		Handler: http.HandlerFunc(s.guard), ReadHeaderTimeout: ioTimeout, ReadTimeout: ioTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.serving.Go(func() { s.server.Serve(netutil.LimitListener(listener, maxConnections)) })
	return s, nil
}

func listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address with a port", addr)
	}
	if !strings.EqualFold(host, "localhost") && !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("%q is not an address of this machine alone", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // what localhost means is the system's business
		return nil, errors.Join(fmt.Errorf("%q is not an address of this machine alone", addr), l.Close())
	}
	return l, nil
}

// URL is the address for a person to open, with the token: whoever has it sees the site.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/?token=" + s.token }

// Close sends readers what the site shows now as the last word, for a second at most, and
// ends the server.
func (s *Server) Close() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), finalWait)
	defer cancel()
	s.server.Shutdown(ctx) // waits for the readers
	err := s.server.Close()
	s.serving.Wait()
	return err
}

// guard lets through what a person's browser asks, and nothing that another site made it
// ask. The host comes first: by it a name of another site that leads here is known.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": servedPolicy(), "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(ioTimeout))
	switch {
	case !slices.Contains(s.hosts, strings.ToLower(r.Host)):
		http.Error(w, "This server does not go by that name.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "This page is for looking only.", http.StatusMethodNotAllowed)
	case r.ContentLength != 0:
		http.Error(w, "This page takes nothing.", http.StatusRequestEntityTooLarge)
	case r.URL.Query().Has("token"):
		s.admit(w, r)
	case !s.knows(r):
		http.Error(w, "This page opens by the address, with its token, that leadferry printed when it began.", http.StatusForbidden)
	default:
		s.route(w, r)
	}
}

// admit exchanges the token for a cookie, so that it does not stay in the address.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !same(q.Get("token"), s.token) {
		http.Error(w, "That is not the token of this page: leadferry prints another one for each.", http.StatusForbidden)
		return
	}
	q.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/\\"), RawQuery: q.Encode()} // a path: nowhere else
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func (s *Server) knows(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && same(c.Value, s.session)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// followPath comes before the path that a reader follows.
const followPath = "/follow/"

// route shows what the site has at an address, once or from now on.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	at := url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if rest, ok := strings.CutPrefix(at.Path, followPath); ok {
		at.Path = "/" + rest
		s.follow(w, r, &at)
		return
	}
	if at.Path == "/favicon.ico" { // which browsers ask for by themselves
		w.WriteHeader(http.StatusNoContent)
		return
	}
	view, ok := s.site(&at)
	if !ok {
		http.Error(w, "There is no such page.", http.StatusNotFound)
		return
	}
	var b bytes.Buffer
	if err := writeLive(&b, view); err != nil {
		http.Error(w, "This page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes()) // a reader who has gone misses nothing
}

// follow sends an address's Views as Server-Sent Events: each as it differs from the one
// before, and the last by the name of end.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, at *url.URL) {
	s.serving.Add(1)
	defer s.serving.Done()
	if _, ok := s.site(at); !ok {
		http.Error(w, "There is no such page.", http.StatusNotFound)
		return
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // nothing more is read: not a reason to hang up
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	var before View
	for ended := false; ; {
		view, ok := s.site(at)
		if !ok { // any more
			view = before
		}
		err := send(w, view, before == view, ended)
		if before = view; ended || err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.ending:
			ended = true
		}
	}
}

// send writes one event and waits until the system has it, for a bounded time.
func send(w http.ResponseWriter, v View, unchanged, last bool) error {
	c := http.NewResponseController(w)
	if err := c.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	text := "event: same\ndata:\n\n"
	if !unchanged || last {
		data, err := json.Marshal(map[string]string{"title": v.Title, "main": string(v.Main)}) // in one line
		if err != nil {
			return err
		}
		text = "data: " + string(data) + "\n\n"
	}
	if last {
		text = "event: end\n" + text
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return c.Flush()
}
