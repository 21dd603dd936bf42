package page

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/netutil"
)

// Site gives the View of an address, by its path and query; false: there is none.
// Many goroutines ask it at once, and it must not block.
type Site func(at *url.URL) (View, bool)

// ioTimeout is for a request's head, and for a reader to take what was written.
const ioTimeout, maxConnections = 5 * time.Second, 64

// Server shows a Site on a loopback address.
type Server struct {
	site   Site
	every  time.Duration // between two looks at the site, for a reader
	server http.Server
	url    string
	ending context.Context // of readers; done: they get the last word
	end    func()
}

// Serve shows a site at a loopback address, such as 127.0.0.1:0 for a free port, until Close.
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
	root := "/" + rand.Text() // the token: links are relative, so that it stays in them
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

// URL is the address for a person to open. It holds a token: anyone who has it sees the site.
func (s *Server) URL() string { return s.url }

// Close sends readers the last word, what the site shows now, and ends the server within a second.
func (s *Server) Close() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.server.Shutdown(ctx) // waits for the readers
	return s.server.Close()
}

// show answers with the page of an address, or, to an EventSource, with its changes from now on.
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

// follow sends an address's Views as Server-Sent Events: each that differs from the one
// before, and the last by the name of end.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	tick, c, name := time.NewTicker(s.every), http.NewResponseController(w), "message"
	defer tick.Stop()
	for before := (View{}); ; {
		view, ok := s.site(r.URL)
		if !ok { // any more
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
