// Package fetch reads inputs at https:// addresses, presigned ones of object storage above all, as if they were files:
// from the first byte to the last of one and the same version.
//
// What it promises:
//
//   - A connection that breaks, stalls or is closed early is gone on with behind the last byte: by Range (RFC 9110,
//     section 14) where a strong validator vouches for the rest, else by reading what was read once more and comparing it.
//   - A file that is another one by then is refused, and so is an answer of which nobody can say where the file ends.
//   - Nothing of a query, a user or a password stands in any text: a presigned address is a secret.
//   - Redirects go to https:// only; each is asked anew, without a Referer.
//   - Waits, headers and redirects are bounded; the bytes are not kept.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Options say how addresses are reached. Zero values are those of production.
type Options struct {
	Proxy       func(*url.URL) *url.URL // nil, or what it returns nil for: none
	Authorities []*x509.Certificate     // trusted beside the system's
	Agent       string                  // User-Agent
	Patience    time.Duration           // how long no byte may come, over all tries; 0: two minutes
	Stall       time.Duration           // how long one connection may be silent; 0: 30 seconds
}

const (
	patience   = 2 * time.Minute
	opening    = 20 * time.Second // patience before the first answer
	stall      = 30 * time.Second
	backoff    = 20 * time.Millisecond
	maxBackoff = 10 * time.Second
	maxHeader  = 64 << 10
)

// Error is a sentence about an address, without what is secret in it.
type Error struct {
	Text, Advice string
	err          error
	passing      bool          // another try may fare better
	wait         time.Duration // that the server asked for
}

// Error is the sentence.
func (e *Error) Error() string { return e.Text }

// Hint says what to do about it.
func (e *Error) Hint() string { return e.Advice }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.err }

// File is the file at an address while it is read. It serves one goroutine, but for Close.
type File struct {
	address *url.URL
	options Options
	wire    *http.Transport
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	version               // of the first answer
	answered bool         // there was one
	at       int64        // of the next byte
	seen     maphash.Hash // of the bytes before it
	body     *body        // nil: to be asked for
	quiet    time.Time    // since when nothing comes; zero: something does
	tries    int          // since then
	last     *Error       // what the last of them met
	over     error
}

// Open asks for the file at an address and waits for the head of the answer. Its error is an *[Error], or that of ctx,
// which ends the reading, too.
func Open(ctx context.Context, address string, o Options) (*File, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	if o.Stall == 0 {
		o.Stall = stall
	}
	f := &File{address: u, options: o, version: version{size: -1}, wire: transport(&o)}
	f.ctx, f.cancel = context.WithCancel(ctx)
	if err := f.ask(); err != nil {
		f.cancel()
		return nil, err
	}
	return f, nil
}

// transport is one connection a request: the next one may be an hour later.
func transport(o *Options) *http.Transport {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, c := range o.Authorities {
		roots.AddCert(c)
	}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if o.Proxy == nil {
				return nil, nil
			}
			return o.Proxy(r.URL), nil
		},
		DialContext:            (&net.Dialer{Timeout: o.Stall}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.Stall,
		ResponseHeaderTimeout:  o.Stall,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         64 << 10,
		DisableKeepAlives:      true,
		DisableCompression:     true, // ranges count bytes as they lie there
	}
}

// IsAddress reports whether a name is an address, of whatever kind, and not that of a file.
func IsAddress(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && scheme != "" && !strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '.' && r != '-'
	})
}

// Shown is an address without what is secret in it: user, password, query and fragment.
func Shown(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	}
	scheme, rest, _ := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}

// parse reads an address and refuses what cannot or must not be read.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	scheme, _, _ := strings.Cut(strings.ToLower(address), "://")
	hint, known := otherWays[scheme]
	switch {
	case known:
	case err != nil || u.Hostname() == "":
		return nil, &Error{Text: "is not an address that can be read", Advice: "it looks like https://files.example.com/leads.csv, in quotes"}
	case scheme == "https", scheme == "http" && loopback(u):
		u.Fragment, u.RawFragment = "", ""
		return u, nil
	case scheme == "http":
		return nil, &Error{Text: "is plain http://, which shows the file and the address to everybody on the way", Advice: "use its https:// address"}
	default:
		hint = "https:// addresses can be read, and files, and standard input by the name \"-\""
	}
	return nil, &Error{Text: scheme + ":// addresses cannot be read", Advice: hint}
}

// otherWays say how what stands at addresses of other kinds is read.
var otherWays = map[string]string{
	"s3":   "make an https:// address of it that is good for as long as the run may take: aws s3 presign --expires-in 43200 s3://BUCKET/NAME",
	"gs":   "make an https:// address of it that is good for as long as the run may take: gcloud storage sign-url --duration=12h gs://BUCKET/NAME",
	"az":   "make an https:// address of it that is good for as long as the run may take: az storage blob generate-sas --full-uri",
	"file": "name the file by its path",
	"ftp":  "fetch the file first, or pipe it in: curl ftp://… | leadferry … -",
	"sftp": "fetch the file first",
}

// loopback reports whether an address is one of this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
}

// Name is the address without what is secret in it.
func (f *File) Name() string { return Shown(f.address.String()) }

// Size is the file's in bytes; 0: the server does not say.
func (f *File) Size() int64 { return max(f.size, 0) }

// Modified is when the file was last changed, as the server says; zero: it does not.
func (f *File) Modified() time.Time { return f.modified }

// ETag is the server's strong name of this version, in quotes; "": it has none.
func (f *File) ETag() string { return f.strongTag() }

// Close ends the reading, also one that is under way.
func (f *File) Close() error {
	f.cancel()
	return nil
}

// Read gives the next bytes, however many connections that takes. Its error is io.EOF at the end, else as Open has it.
func (f *File) Read(p []byte) (int, error) {
	for f.over == nil && len(p) > 0 {
		if f.body == nil {
			if f.over = f.ask(); f.over != nil {
				break
			}
		}
		n, err := f.body.Read(p)
		if n > 0 {
			f.seen.Write(p[:n])
			f.at += int64(n)
			f.quiet, f.tries = time.Time{}, 0
		}
		if err != nil {
			f.ended(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, f.over
}

// ended notes that a body gives no more, at the end of the file or before it.
func (f *File) ended(err error) {
	f.body.Close()
	f.body = nil
	switch {
	case f.at == f.size, errors.Is(err, io.EOF) && f.size < 0:
		f.over = io.EOF
	case f.ctx.Err() != nil:
		f.over = f.ctx.Err()
	case f.size >= 0 && f.at > f.size:
		f.over = changed("it has more bytes than it had")
	default:
		f.missed(&Error{Text: "the connection broke", err: err, passing: true})
	}
}

// missed notes that nothing came, and since when.
func (f *File) missed(why *Error) {
	if f.last = why; f.quiet.IsZero() {
		f.quiet = time.Now()
	}
}

// ask asks for what has not been read yet until an answer comes that can be used.
func (f *File) ask() error {
	for {
		if err := f.rest(); err != nil {
			return err
		}
		f.tries++
		err := f.request()
		var fault *Error
		switch {
		case err == nil:
			return nil
		case f.ctx.Err() != nil:
			return f.ctx.Err()
		case !errors.As(err, &fault) || !fault.passing:
			return err
		}
		f.missed(fault)
	}
}

// rest waits before another try, the longer the more there were, and the first time not at all; or gives up.
func (f *File) rest() error {
	if f.quiet.IsZero() {
		return f.ctx.Err()
	}
	wait := f.last.wait
	if f.tries > 0 {
		wait = max(wait, min(backoff<<min(f.tries-1, 10), maxBackoff))
	}
	limit := f.options.Patience
	if !f.answered {
		limit = min(limit, opening)
	}
	if time.Since(f.quiet)+wait > limit {
		return f.gaveUp()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

func (f *File) gaveUp() error {
	if !f.answered {
		return f.last
	}
	return &Error{
		Text:   fmt.Sprintf("the reading broke off after %s bytes, and no more came for %v: %s", humanize.Comma(f.at), time.Since(f.quiet).Round(time.Second), f.last.Text),
		Advice: "wait until the server answers", err: f.last,
	}
}
