// Package page makes the pages of a run and of the sandbox: it gives them their looks, and makes them safe to show.
//
// A page is a View. Its Main must come from html/template, which escapes every text. A page is written into a file, or
// served live to anyone who has its URL, which holds a token. Make Main of sections with ids: a live page replaces only
// sections that have changed, so what a reader opened, selected or typed in the others stays.
//
// Looks (style.css): .tiles of dl; tables (.num for figures, .text for what others wrote); .pick for an ID, with a
// button.copy and its data-copy beside it; details, pre and code for what is copied; .bar with an svg of .fill-s0. A
// page has a light, a dark and a printed look. No colour says anything alone.
//
// Promises: a page loads nothing and runs only the scripts of this package, both enforced by a Content-Security-Policy.
// A server listens on loopback and answers only GETs whose path begins with its token. It holds at most 64 connections,
// and drops a reader that does not read for 5 s. The run or sandbox never waits for a reader.
package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// View is one page.
type View struct {
	Title string
	Main  template.HTML // what is in <main>
	// people type into it and open it often: it is not updated in a hidden tab, or without scripts
	Form bool
}

// frameText is around Main in all pages. copying is the script of copy buttons; follow keeps a live page up to date.
var (
	//go:embed frame.html
	frameText string
	//go:embed style.css
	style string
	//go:embed copy.js
	copying string
	//go:embed follow.js
	follow string
)

// frame is parsed for the first page: most starts of the program make none.
var frame = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("frame").Parse(frameText))
})

type frameData struct {
	View
	Policy string
	Style  template.CSS
	Script template.JS
	Live   bool
}

// policy lets a page load nothing and run one script.
func policy(script, more string) string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; %s", hashOf(style),
		hashOf(script), more)
}

func filePolicy() string { return policy(copying, "form-action 'none'") }

func servedPolicy() string {
	return policy(copying+follow, "connect-src 'self'; form-action 'self'; frame-ancestors 'none'")
}

// hashOf returns a text's source expression for a Content-Security-Policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write writes a page into a file. Its only script serves the copy buttons. Errors are those of w.
func Write(w io.Writer, v View) error {
	return frame().Execute(w, frameData{v, filePolicy(), template.CSS(style), template.JS(copying), false})
}

func writeLive(w io.Writer, v View) error {
	return frame().Execute(w, frameData{v, "", template.CSS(style), template.JS(copying + follow), true})
}

// Site returns the View of an address, by path and query (a search); false: there is none. Each open page calls the
// Site once a second, from its own goroutine, so a Site must not block.
type Site func(at *url.URL) (View, bool)

// ioTimeout limits how long a reader may take to send the head of a request, and to take what was written.
const ioTimeout, maxConnections = 5 * time.Second, 64

// Server shows a Site on a loopback address.
type Server struct {
	site   Site
	every  time.Duration // a reader's page looks at the site this often
	server http.Server
	url    string
	ending context.Context // when it is done, readers get the last View
	end    func()
}

// Serve shows a site at a loopback address, for example 127.0.0.1:0 for a free port, until Close.
func Serve(addr string, site Site) (*Server, error) { return serve(addr, site, time.Second) }

func serve(addr string, site Site, every time.Duration) (*Server, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil || !at.IP.IsLoopback() {
		return nil, fmt.Errorf("%q is not an address of this machine alone, as 127.0.0.1:8080 is", addr)
	}
	listener, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, err
	}
	root := "/" + rand.Text() // the token; relative links keep it
	s := &Server{site: site, every: every, url: "http://" + listener.Addr().String() + root + "/"}
	s.ending, s.end = context.WithCancel(context.Background())
	routes := http.NewServeMux()
	routes.Handle("GET "+root+"/", http.StripPrefix(root, http.HandlerFunc(s.show)))
	nothing := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	routes.HandleFunc("GET /favicon.ico", nothing) // browsers ask by themselves
	silent := log.New(io.Discard, "", 0)
	s.server = http.Server{Handler: routes, ReadHeaderTimeout: ioTimeout, MaxHeaderBytes: 8 << 10, ErrorLog: silent}
	go s.server.Serve(netutil.LimitListener(listener, maxConnections))
	return s, nil
}

// URL returns the address for a person to open. It holds a token: anyone who has the address sees the site.
func (s *Server) URL() string { return s.url }

// Close sends readers what the site shows now, and ends the server within a second.
func (s *Server) Close() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.server.Shutdown(ctx) // waits for the readers
	return s.server.Close()
}

// show answers with the page of an address. An EventSource gets its changes from now on.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	view, ok := s.site(r.URL)
	if !ok {
		http.NotFound(w, r)
		return
	}
	for name, value := range map[string]string{
		"Content-Security-Policy": servedPolicy(), "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		"Content-Type": "text/html; charset=utf-8",
	} {
		w.Header().Set(name, value)
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		w.Header().Set("Content-Type", "text/event-stream")
		s.follow(w, r)
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(ioTimeout))
	writeLive(w, view) // a reader who has gone misses nothing
}

// follow sends the Views of an address as Server-Sent Events: each that differs from the last, and a final "end".
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	tick, c, name := time.NewTicker(s.every), http.NewResponseController(w), "message"
	defer tick.Stop()
	for before := (View{}); ; {
		view, ok := s.site(r.URL)
		if !ok { // it is gone: the last View stays
			view = before
		}
		if last := name == "end"; last || view != before {
			data, err := json.Marshal(map[string]string{"title": view.Title, "main": string(view.Main)}) // in one line
			c.SetWriteDeadline(time.Now().Add(ioTimeout))
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
			if err != nil || c.Flush() != nil || last {
				return
			}
			before = view
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.ending.Done():
			name = "end"
		}
	}
}
