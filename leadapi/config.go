package leadapi

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Config says which service a Client speaks to, and how. BaseURL is always needed. Without ClientID and ClientSecret
// only Login and CreateOAuthClient work; without LeadsURL and TrunkID the Client creates no leads.
type Config struct {
	BaseURL      string // general API, without /v3
	LeadsURL     string // lead creation application, without /v1
	TrunkID      string // the brand's trunk organization
	ClientID     string
	ClientSecret string
	Proxy        func(*url.URL) *Proxy  // returns the proxy for an application's address; nil, or a nil result: none
	Authorities  []*x509.Certificate    // trusted beside the system's
	Certificate  *tls.Certificate       // shown to the service if it asks for one; nil: none
	Concurrency  int                    // the most connections to one host; below 1 counts as 1
	Timeout      time.Duration          // for one request, from dialling to the answer's last byte; 0 = 30 s
	UserAgent    string                 // "" = leadferry
	Leave        func(kind string) bool // asked before a request's first byte leaves: false holds it back; may be nil
	Observe      func(Call)             // called after each call, sent or not, in its goroutine; may be nil
	// RequestIDHeader names the header in which each attempt to create or update a lead carries an ID; "": none does.
	RequestIDHeader string

	Tokens TokenStore       // keeps the token for later runs and other processes; nil: it is not kept
	Now    func() time.Time // nil = time.Now
}

func (c Config) withDefaults() Config {
	c.Concurrency = max(c.Concurrency, 1)
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	c.UserAgent = cmp.Or(c.UserAgent, "leadferry")
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// wrong says which setting cannot be used and why, without its value. The hint follows on its own line.
func wrong(setting, why, hint string) error {
	if hint != "" {
		hint = "\nhint: " + hint
	}
	return errors.New("the " + setting + " " + why + hint)
}

// check refuses bad settings. It returns the base URL and the address of creates; create is nil if c creates no leads.
func (c Config) check() (base, create *url.URL, err error) {
	if err := CheckRequestIDHeader(c.RequestIDHeader); err != nil {
		return nil, nil, err
	}
	address := func(name, text, version string) (*url.URL, error) {
		u, err := ParseAddress(name, text)
		if err == nil && strings.HasSuffix(u.Path, version) {
			err = wrong(name, "ends in the version", "leave out "+version)
		}
		return u, err
	}
	if base, err = address("base URL", c.BaseURL, "/v3"); err != nil {
		return nil, nil, err
	}
	if c.LeadsURL != "" || c.TrunkID != "" {
		if create, err = address("leads URL", c.LeadsURL, "/v1"); err != nil {
			return nil, nil, err
		}
		if err := plainID("trunk ID", c.TrunkID); err != nil {
			return nil, nil, err
		}
		create.Path += "/v1/" + c.TrunkID
	}
	if c.ClientID == "" && c.ClientSecret == "" {
		return base, create, nil
	}
	if err := plainID("client ID", c.ClientID); err != nil {
		return nil, nil, err
	}
	if c.ClientSecret == "" || strings.ContainsFunc(c.ClientSecret, blank) {
		return nil, nil, wrong("client secret", "is missing, or has a blank or control character in it",
			"a line break at the end of the secret's file is not part of the secret")
	}
	return base, create, nil
}

func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// ParseAddress parses the address of an application, in the form of [Canonical]: https, or http on a loopback host, and
// nothing after the path. Its error names the setting, never its value.
func ParseAddress(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, wrong(name, "is missing", "")
	case err != nil || u.Opaque != "" || !hasHost(u) || strings.ContainsFunc(text, blank):
		return nil, wrong(name, "is not an address", "it looks like https://api.example.com")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return nil, wrong(name, "has a user, a query or a fragment in it",
			"leave them out: client ID and secret set the account")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, wrong(name, "must begin with https://", "")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, wrong(name, "is plain http, which is allowed for loopback addresses only", "use https://")
	case normalize(u) != nil:
		return nil, wrong(name, "has an impossible host name", "")
	case strings.Contains(u.EscapedPath(), "%") || u.Path != "" && path.Clean(u.Path) != u.Path:
		return nil, wrong(name, "has a path with escapes, dots or empty parts", "")
	}
	return u, nil
}

// Canonical writes an address as the client uses it: lower case in scheme and host, the host as DNS knows it, no
// default port, no slash at the end. So one service has one name. A text that is no address is returned unchanged.
func Canonical(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || normalize(u) != nil {
		return address
	}
	return u.String()
}

// MixedRegions returns a warning if two addresses belong to different registered domains, else "". A text that is no
// address may hold a password: the warning never repeats it.
func MixedRegions(baseURL, leadsURL string) string {
	base, leads := registered(baseURL), registered(leadsURL)
	if base == leads || base == "" || leads == "" {
		return ""
	}
	return fmt.Sprintf("the base URL (%s) and the leads URL (%s) belong to different domains: is one of the US and "+
		"one of the EU?", base, leads)
}

func registered(address string) string {
	u, err := url.Parse(Canonical(address))
	if err != nil {
		return ""
	}
	domain, _ := publicsuffix.EffectiveTLDPlusOne(u.Hostname())
	return cmp.Or(domain, u.Hostname())
}

var defaultPorts = map[string]string{"https": "443", "http": "80"}

func normalize(u *url.URL) error {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		var err error
		if name, err = idna.Lookup.ToASCII(name); err != nil {
			return err
		}
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.String()
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	port := strings.TrimLeft(u.Port(), "0")
	if port != "" && port != defaultPorts[u.Scheme] {
		name += ":" + port
	}
	u.Host, u.Path = name, strings.TrimRight(u.Path, "/")
	return nil
}

// hasHost reports whether an address has a host. A port, if there is one, must be possible.
func hasHost(u *url.URL) bool {
	n, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16)
	return u.Hostname() != "" && !strings.ContainsAny(u.Hostname(), "%") && !strings.HasSuffix(u.Host, ":") &&
		err == nil && n > 0
}

func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func plainID(name, id string) error {
	switch {
	case id == "":
		return wrong(name, "is missing", "")
	case !ValidID(id):
		return wrong(name, "has characters that an ID cannot have", "letters, digits, . _ - only")
	}
	return nil
}

// CheckRequestIDHeader refuses header names that cannot carry a request ID. A name must end in ID: no header that HTTP
// itself defines does. An idempotency key is refused, because a proxy might repeat a request that has one.
func CheckRequestIDHeader(name string) error {
	small := strings.ToLower(name)
	fits := len(name) <= 64 && httpguts.ValidHeaderFieldName(name) && strings.HasSuffix(small, "id")
	if name == "" || fits && !strings.Contains(small, "idempot") {
		return nil
	}
	return wrong("header for request IDs", "cannot carry an ID",
		"letters, digits and - only, ID at the end, such as X-Request-ID; an idempotency key would repeat requests")
}

const idChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// ValidID reports whether an ID may be in a path: 1 to 128 of idChars, and not dots only.
func ValidID(id string) bool {
	return len(id) <= 128 && strings.Trim(id, ".") != "" && strings.Trim(id, idChars) == ""
}

// Proxy is the address of an HTTP proxy, which is asked by CONNECT, or of a SOCKS5 proxy (RFC 1928).
type Proxy struct{ url.URL } // scheme http, https or socks5; the port is always there

const escapes = "signs such as @ : / ? # are written as %40 %3A %2F %3F %23"

var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080"}

// ParseProxy reads the address of a proxy: http (the scheme may be left out), https or socks5. No error repeats it.
func ParseProxy(text string) (*Proxy, error) {
	fail := func(sentence, hint string) (*Proxy, error) {
		return nil, wrong("proxy", sentence, hint)
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || !hasHost(u) || strings.ContainsFunc(text, blank) || normalize(u) != nil {
		return fail("is not an address", "it looks like http://proxy.example.com:3128; in a user or password "+escapes)
	}
	if u.Scheme = strings.ToLower(u.Scheme); u.Scheme == "socks5h" { // the same here: the proxy always looks names up
		u.Scheme = "socks5"
	}
	u.Host = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), proxyPorts[u.Scheme]))
	p := &Proxy{*u}
	switch {
	case proxyPorts[u.Scheme] == "":
		return fail("must begin with http://, https:// or socks5://", "")
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return fail("has something after the port", "in a user or password "+escapes)
	case u.Scheme == "socks5" && max(len(u.User.Username()), len(p.password())) > 255:
		return fail("has a user or password of more than 255 bytes, which SOCKS5 cannot carry", "")
	}
	return p, nil
}

// String returns the proxy's address without user and password.
func (p *Proxy) String() string { return p.Scheme + "://" + p.Host }

// HasPassword reports whether the address holds a password.
func (p *Proxy) HasPassword() bool { return p.password() != "" }

func (p *Proxy) password() string {
	password, _ := p.User.Password()
	return password
}
