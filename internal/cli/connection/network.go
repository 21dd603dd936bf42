package connection

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"leadferry/internal/cli/exit"
	"leadferry/internal/config"
	"leadferry/leadapi"
)

// noProxy is the word for a proxy that means none, whatever the environment says.
const noProxy = "none"

// Route is over which proxy an application is reached, nil for none, and what says so.
type Route struct {
	proxy *leadapi.Proxy
	Shown string // the proxy without what is secret in it, or none
	From  string
}

// routeTo finds the way to an address: --proxy, its variable or the profile count for every address, HTTPS_PROXY where
// NO_PROXY does not name it, and never for this machine itself.
func (s *Settings) routeTo(address *url.URL) (Route, error) {
	if named := s.line.Given("proxy"); named.Value != "" {
		return parseRoute(named.Value, named.From)
	}
	environment := httpproxy.FromEnvironment()
	if environment.HTTPSProxy == "" {
		return parseRoute(noProxy, "default")
	}
	picks := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: environment.NoProxy}
	if picked, _ := picks.ProxyFunc()(address); picked == nil { // it fails for addresses of proxies that cannot be
		const none = "no proxy of the environment counts for this address (NO_PROXY, or this machine itself)"
		return parseRoute(noProxy, none)
	}
	return parseRoute(environment.HTTPSProxy, "environment HTTPS_PROXY")
}

func parseRoute(text, from string) (Route, error) {
	r := Route{Shown: noProxy, From: from}
	if text = strings.TrimSpace(text); strings.EqualFold(text, noProxy) {
		return r, nil
	}
	proxy, err := leadapi.ParseProxy(text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", from, err)
	}
	r.proxy, r.Shown = proxy, proxy.String()
	if proxy.HasPassword() {
		r.Shown += " with a user and a password, not shown"
	}
	return r, nil
}

// addresses are the flags of the two applications.
var addresses = [...]string{"base-url", "leads-url"}

// Route is the way to the application of a flag, none where its address is not set. What is no address is the client's
// to refuse.
func (s *Settings) Route(name string) (Route, error) {
	u, err := url.Parse(leadapi.Canonical(s.Get(name)))
	if s.Sandbox || s.Get(name) == "" || err != nil {
		return Route{}, nil
	}
	return s.routeTo(u)
}

// RouteNotes tell which proxies requests go over, for a run's beginning.
func (s *Settings) RouteNotes() (notes []string) {
	for _, name := range addresses {
		if r, err := s.Route(name); err == nil && r.proxy != nil {
			notes = append(notes, fmt.Sprintf("--%s is reached over the proxy %s (%s)", name, r.Shown, r.From))
		}
	}
	return notes
}

// Reach fills in how the service is reached: over which proxy, and which certificates are trusted and shown.
func (s *Settings) Reach(api *leadapi.Config) (err error) {
	for _, name := range addresses {
		if _, err := s.Route(name); err != nil {
			return err
		}
	}
	api.Proxy = func(address *url.URL) *leadapi.Proxy {
		r, _ := s.routeTo(address) // it has been tried
		return r.proxy
	}
	if path := s.Get("ca-file"); path != "" {
		if api.Authorities, err = config.ReadAuthorities(path); err != nil {
			return err
		}
	}
	certificate, key := s.line.Given("client-cert"), s.line.Given("client-key")
	switch {
	case certificate.Value == "" && key.Value == "":
		return nil
	case certificate.Value == "":
		return exit.Usage("there is a key for a client certificate ("+key.From+") and no certificate",
			"name it with --client-cert")
	}
	api.Certificate, err = config.ReadClientCertificate(certificate.Value, key.Value)
	return err
}

// RequestIDHeader is the flag that names the header for request IDs.
const RequestIDHeader = "request-id-header"

// ForProfile are the settings for a new profile, by key, without the client. A proxy with a password is left out:
// others may read the file.
func (s *Settings) ForProfile() map[string]string {
	values := map[string]string{}
	for _, name := range []string{
		"base-url", "leads-url", "trunk-id", "proxy", "ca-file", "client-cert", "client-key", RequestIDHeader,
	} {
		key, value := strings.ReplaceAll(name, "-", "_"), strings.TrimSpace(s.Get(name))
		if whole, err := filepath.Abs(value); config.IsPath(key) && value != "" && err == nil {
			value = whole
		}
		if key != "proxy" || !strings.Contains(value, "@") {
			values[key] = value
		}
	}
	return values
}
