package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// version is what tells one version of a file from another.
type version struct {
	tag      string // ETag as it came, weak ones with their W/
	modified time.Time
	dated    bool  // modified is so long past that no other version can have it (RFC 9110, section 8.8.2.2)
	size     int64 // -1: not known
}

func versionOf(a *http.Response) version {
	v := version{tag: a.Header.Get("ETag"), size: -1}
	var err error
	if v.modified, err = http.ParseTime(a.Header.Get("Last-Modified")); err == nil {
		now, err := http.ParseTime(a.Header.Get("Date"))
		v.dated = err == nil && now.Sub(v.modified) > time.Minute
	}
	return v
}

func (v *version) strongTag() string {
	if strings.HasPrefix(v.tag, `"`) {
		return v.tag
	}
	return ""
}

// vouched reports whether a server can be held to this very version.
func (v *version) vouched() bool { return v.strongTag() != "" || v.dated }

// another reports whether an answer is of another version.
func (v *version) another(n *version) bool {
	return v.tag != n.tag || !v.modified.IsZero() && !n.modified.IsZero() && !v.modified.Equal(n.modified) ||
		v.size >= 0 && n.size >= 0 && v.size != n.size
}

// condition asks for this version alone.
func (v *version) condition(h http.Header) {
	if tag := v.strongTag(); tag != "" {
		h.Set("If-Match", tag)
	} else if v.dated {
		h.Set("If-Unmodified-Since", v.modified.UTC().Format(http.TimeFormat))
	}
}

func changed(how string) *Error {
	return &Error{
		Text:   "the file was changed while it was read: " + how,
		Advice: "look whether the file as it is now is the right one",
	}
}

// body is what one answer gives. A timer ends it when it is silent for too long.
type body struct {
	io.ReadCloser
	silence *time.Timer
	limit   time.Duration
	cancel  context.CancelFunc
}

func (f *File) newBody(a *http.Response, cancel context.CancelFunc) *body {
	b := &body{ReadCloser: a.Body, silence: time.AfterFunc(f.options.Stall, cancel), limit: f.options.Stall, cancel: cancel}
	b.silence.Stop() // nobody waits yet
	return b
}

func (b *body) Read(p []byte) (int, error) {
	b.silence.Reset(b.limit)
	defer b.silence.Stop()
	return b.ReadCloser.Read(p)
}

// Close ends the answer, whatever is left of it.
func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// maxRedirects is how often a server may name another address for one request.
const maxRedirects = 5

// request asks once for what has not been read yet, and sets body where it comes.
func (f *File) request() error {
	ctx, cancel := context.WithCancel(f.ctx)
	address := f.address
	for range maxRedirects + 1 {
		a, err := f.get(ctx, address)
		if err != nil {
			cancel()
			return unreached(err)
		}
		next, err := follow(address, a)
		if err == nil && next == nil {
			b := f.newBody(a, cancel)
			if err = f.accept(a, b); err == nil {
				f.body = b
				return nil
			}
		}
		a.Body.Close()
		if err != nil {
			cancel()
			return err
		}
		address = next
	}
	cancel()
	return &Error{Text: fmt.Sprintf("the server names another address more than %d times", maxRedirects), Advice: "use the address at which the file really lies"}
}

func (f *File) get(ctx context.Context, address *url.URL) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", f.options.Agent)
	if password, _ := address.User.Password(); address.User != nil {
		r.SetBasicAuth(address.User.Username(), password)
	}
	if f.answered {
		f.condition(r.Header)
	}
	if f.at > 0 && f.vouched() {
		r.Header.Set("Range", "bytes="+strconv.FormatInt(f.at, 10)+"-")
	}
	return f.wire.RoundTrip(r) // a client would take a look at redirects, and show addresses that it cannot read
}

// follow is where an answer leads to, or nil where it is the file's own.
func follow(from *url.URL, a *http.Response) (*url.URL, error) {
	switch a.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	next, err := from.Parse(a.Header.Get("Location"))
	if err != nil || a.Header.Get("Location") == "" || next.Hostname() == "" {
		return nil, &Error{Text: fmt.Sprintf("the server says that the file is elsewhere (HTTP %d) and names no address", a.StatusCode)}
	}
	next.Fragment, next.RawFragment = "", ""
	switch {
	case loopback(next) && !loopback(from):
		return nil, &Error{Text: "the server leads to an address of this machine, which is refused"}
	case next.Scheme != "https" && (next.Scheme != "http" || !loopback(next)):
		return nil, &Error{Text: "the server leads to an address that is not https://, which is refused", Advice: "use the https:// address at which the file really lies"}
	}
	return next, nil
}

// accept judges an answer, and goes to the place in it where the reading goes on.
func (f *File) accept(a *http.Response, in io.Reader) error {
	now := versionOf(a)
	switch {
	case a.StatusCode == http.StatusPartialContent && a.Request.Header.Get("Range") != "":
		return f.acceptRest(a, &now)
	case a.StatusCode == http.StatusRequestedRangeNotSatisfiable && f.at > 0:
		if total, ok := strings.CutPrefix(a.Header.Get("Content-Range"), "bytes */"); ok && f.size < 0 && total == strconv.FormatInt(f.at, 10) && !f.another(&now) {
			return io.EOF // it broke between the last byte and the word that it was the last
		}
		return changed("it is shorter than it was")
	case a.StatusCode == http.StatusPreconditionFailed && f.answered:
		return changed("the server has another version of it now")
	case a.StatusCode != http.StatusOK:
		return refusal(a, f.answered)
	}
	if err := readable(a); err != nil {
		return err
	}
	now.size = a.ContentLength
	if !f.answered {
		f.version, f.answered = now, true
		return nil
	}
	if f.another(&now) {
		return changed("the server has another version of it now")
	}
	return f.skip(in)
}

// acceptRest judges the rest of a file behind what was read.
func (f *File) acceptRest(a *http.Response, now *version) error {
	first, total, ok := contentRange(a.Header.Get("Content-Range"))
	now.size = total
	switch {
	case !ok || first != f.at:
		return &Error{Text: "the server was asked for the rest of the file and sent something else", Advice: "fetch the file first, and name it by its path"}
	case f.another(now):
		return changed("the server has another version of it now")
	case f.size < 0:
		f.size = total
	}
	return readable(a)
}

// skip passes over what was read already, and compares it.
func (f *File) skip(in io.Reader) error {
	var again maphash.Hash
	again.SetSeed(f.seen.Seed())
	n, err := io.CopyN(&again, in, f.at)
	switch {
	case errors.Is(err, io.EOF) && f.size < 0, err == nil && again.Sum64() != f.seen.Sum64():
		return changed("what was read of it is not the same now")
	case err != nil:
		return &Error{Text: fmt.Sprintf("the connection broke after %d bytes", n), err: err, passing: true}
	}
	return nil
}

// readable refuses answers that are not the file as it lies there, from its first byte to its last.
func readable(a *http.Response) error {
	switch coding := strings.ToLower(strings.TrimSpace(a.Header.Get("Content-Encoding"))); coding {
	case "", "identity", "gzip", "x-gzip", "zstd": // packed files are unpacked by what they hold
	default:
		return &Error{Text: "the server sends the file in an encoding that was not asked for", Advice: "only gzip and zstd are unpacked: store the file without Content-Encoding"}
	}
	if a.ContentLength < 0 && a.ProtoMajor == 1 && len(a.TransferEncoding) == 0 {
		return &Error{
			Text:   "the server does not say where the file ends, so half of it could not be told from all of it",
			Advice: "fetch the file first, look whether it is whole, and name it by its path",
		}
	}
	return nil
}

// contentRange reads the place of a part of a file: that of its first byte, and the file's size, -1 if that is not known
// (RFC 9110, section 14.4).
func contentRange(text string) (first, total int64, ok bool) {
	text, found := strings.CutPrefix(text, "bytes ")
	place, size, both := strings.Cut(text, "/")
	from, to, dash := strings.Cut(place, "-")
	first, err := digits(from)
	last, lastErr := digits(to)
	total = -1
	var sizeErr error
	if size != "*" {
		total, sizeErr = digits(size)
	}
	ok = found && both && dash && err == nil && lastErr == nil && sizeErr == nil && first <= last && (total < 0 || last < total)
	return first, total, ok
}

func digits(text string) (int64, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

// refusal is the error for an answer that is not the file.
func refusal(a *http.Response, later bool) error {
	e := &Error{Text: fmt.Sprintf("the server answered HTTP %d", a.StatusCode)}
	switch code := a.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		e.Text = fmt.Sprintf("the server refuses to give it out (HTTP %d)", code)
		e.Advice = "presigned addresses expire: make a new one that is good for as long as the run may take, and put it in quotes, whole"
		if later {
			e.Advice = "presigned addresses expire: make a new one, which is good for as long as the run may take"
		}
	case code == http.StatusNotFound, code == http.StatusGone:
		e.Text, e.Advice = fmt.Sprintf("there is no such file (HTTP %d)", code), "check the address"
	case code == http.StatusProxyAuthRequired:
		e.Text, e.Advice = "a proxy asks for credentials (HTTP 407)", "ask whoever runs it"
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		e.passing, e.wait = true, retryAfter(a.Header.Get("Retry-After"))
		e.Advice = "wait until the server can give it out"
	case code/100 == 2:
		e.Text += ", which is not a whole file"
	default:
		e.Advice = "check the address"
	}
	return e
}

func retryAfter(text string) time.Duration {
	if seconds, err := digits(text); err == nil && text != "" {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// withoutQuotes is what a library says, but for what it quotes: an answer that is none may hold the address, and with it
// what is secret.
func withoutQuotes(err error) string {
	if errors.As(err, new(textproto.ProtocolError)) {
		return "its answer is not HTTP"
	}
	text, _, quoted := strings.Cut(err.Error(), `"`)
	if open := strings.LastIndexByte(text, '('); quoted && open > strings.LastIndexByte(text, ')') {
		text = text[:open] // the quote is a remark
	}
	return strings.TrimRight(text, " :")
}

// unreached is the error of a request without an answer.
func unreached(err error) error {
	e := &Error{Text: "the server cannot be reached: " + withoutQuotes(err), Advice: "check the address, and whether a proxy is needed (--proxy, HTTPS_PROXY)", err: err, passing: true}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		e.passing, e.Advice = false, "name the certificate of whoever signed it with --ca-file"
	case errors.As(err, &name), errors.As(err, &invalid):
		e.passing, e.Advice = false, "check the address, and the clock of this machine"
	}
	return e
}
