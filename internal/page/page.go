// Package page is what the page of a run and the page of the sandbox have in common: looks,
// and the safety of showing them.
//
// A page is a View, whose Main html/template made of the data, so that every text in it is
// escaped. It is shown in one of two ways:
//
//	page.Write(file, view)                  // is alone: from disk, by mail, in print
//	s, err := page.Serve("127.0.0.1:0", site) // live: site gives the View of an address
//	s.URL()                                  // for the person: with a token in its path, so links are relative
//	s.Close()                                // sends the last Views and ends
//
// A Site is asked for each page and, once a second, for each reader of one, with the same
// address: a search is a query (/?q=oak) and stays live. What is the same as before is not
// sent. It is asked by many goroutines, so a site whose Views are costly keeps the last one.
// While a page is live, a child of Main with an id is replaced only where it changed, so that
// what a reader opened, selected or typed elsewhere stays: make them sections with ids.
//
// Looks (style.css): .verdict with .good, .warn, .bad or .idle and a word, .tiles of dl,
// tables (.num for figures, .text for what others wrote), .pick for an ID, with a button.copy
// and its data-copy beside it, details, pre and code for what is copied, figure.chart with an
// svg role="img", .s0 to .s7 for series, which differ in pattern too. A page has light, dark
// and print; no colour says anything alone, and all can be told apart by colour-blind eyes.
//
// Promises: a page loads nothing and runs nothing but the scripts of this package, both
// enforced by a Content-Security-Policy; a server listens on loopback, answers GETs whose path
// begins with its token, and holds few connections for a bounded time: a reader that does not read is
// dropped. What is shown never waits for a reader.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"
)

// View is one page.
type View struct {
	Title string
	Main  template.HTML // what is in <main>
	// people type into it, and open many of its kind: it rests in the background, and where scripts are off
	Form bool
}

// frameText is what all pages have around their Main; copying is for buttons that copy, follow keeps a live page up to
// date.
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

// frame is made when the first page is: most starts of the program make none.
var frame = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("frame").Parse(frameText))
})

type framed struct {
	View
	Policy string
	Style  template.CSS
	Script template.JS
	Live   bool
}

// The policies of a file and of a server. Neither lets a page load anything from anywhere.
var (
	filePolicy = sync.OnceValue(func() string {
		return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(copying) +
			"; base-uri 'none'; form-action 'none'"
	})
	servedPolicy = sync.OnceValue(func() string {
		return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(copying+follow) +
			"; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	})
)

// hashOf names a text in a Content-Security-Policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write writes a page that is alone; its only script copies what a person asks to copy. Its error is w's.
func Write(w io.Writer, v View) error {
	return frame().Execute(w, framed{v, filePolicy(), template.CSS(style), template.JS(copying), false})
}

func writeLive(w io.Writer, v View) error {
	return frame().Execute(w, framed{v, "", template.CSS(style), template.JS(copying + follow), true})
}
