package leadapi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"leadferry/internal/testsupport"
	"leadferry/internal/testsupport/must"
	"leadferry/leadapi/sandbox"
)

// network serves a sandbox behind this network, and returns the settings with which a client reaches it.
func network(t *testing.T, n testsupport.Network) (Config, *sandbox.Server) {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{})
	must.Do(t, err)
	t.Cleanup(func() { _ = s.Close() })
	way := n.Serve(t, s)
	c := Config{BaseURL: way.URL, LeadsURL: way.LeadsURL, TrunkID: sandbox.TrunkID, ClientID: sandbox.ClientID, ClientSecret: sandbox.ClientSecret}
	if text, err := os.ReadFile(way.CA); err == nil {
		block, _ := pem.Decode(text)
		authority, err := x509.ParseCertificate(block.Bytes)
		must.Do(t, err)
		c.Authorities = []*x509.Certificate{authority}
	}
	if way.Cert != "" {
		pair, err := tls.LoadX509KeyPair(way.Cert, way.Key)
		must.Do(t, err)
		c.Certificate = &pair
	}
	if way.ProxyURL != "" {
		proxy, err := ParseProxy(way.ProxyURL)
		must.Do(t, err)
		c.Proxy = func(*url.URL) *Proxy { return proxy }
	}
	return c, s
}

// probed returns the steps of a probe, and their names: in capitals for lead creation, with ! if the step fails.
func probed(t *testing.T, c Config) (names string, steps []Step) {
	t.Helper()
	client := connect(t, c)
	var all []string
	client.Probe(t.Context(), func(s Step) {
		name := s.Name
		if s.LeadCreation {
			name = strings.ToUpper(name)
		}
		if !s.Works {
			name += "!"
		}
		if s.Text == "" {
			t.Errorf("%s says nothing", name)
		}
		all, steps = append(all, name), append(steps, s)
	})
	return strings.Join(all, " "), steps
}

func TestAProbeTriesEveryStepAndMakesNothing(t *testing.T) {
	user := url.UserPassword("ann", "proxy-password")
	whole := testsupport.Network{TLS: true, Mutual: true, Apart: true, Proxy: user}
	apart := testsupport.Network{Apart: true}
	silent := answers(t, answerText(503, "later"))
	elsewhere := answers(t, answerText(302, "", "Location: https://example.com/"))
	for name, tt := range map[string]struct {
		network testsupport.Network
		change  func(c *Config)
		want    string
		text    string // part of the text or hint of a step
	}{
		"plain":               {testsupport.Network{}, nil, "connect sign-in ANSWER", "HTTP 405"},
		"apart":               {apart, nil, "connect sign-in CONNECT ANSWER", "HTTP 405"},
		"everything":          {whole, nil, "connect proxy tls sign-in CONNECT PROXY TLS ANSWER", "TLS 1.3, certificate of CN=test authority, good for 6 days more; it asks for a client certificate"},
		"a name":              {apart, func(c *Config) { c.BaseURL = strings.Replace(c.BaseURL, "127.0.0.1", "localhost", 1) }, "connect sign-in CONNECT ANSWER", "127.0.0.1:"},
		"no such name":        {apart, func(c *Config) { c.LeadsURL = "https://leads.invalid" }, "connect sign-in CONNECT!", "could not be looked up"},
		"nobody listens":      {apart, func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }, "connect! CONNECT ANSWER", "refused"},
		"nobody at both":      {testsupport.Network{}, func(c *Config) { c.BaseURL, c.LeadsURL = "http://127.0.0.1:1", "http://127.0.0.1:1" }, "connect!", "refused"},
		"not trusted":         {whole, func(c *Config) { c.Authorities = nil }, "connect proxy tls! CONNECT PROXY TLS!", "--ca-file"},
		"no certificate":      {whole, func(c *Config) { c.Certificate = nil }, "connect proxy tls sign-in! CONNECT PROXY TLS ANSWER!", "--client-cert"},
		"no user":             {whole, func(c *Config) { c.Proxy = without(c.Proxy) }, "connect proxy! CONNECT PROXY!", "asks for a user and a password"},
		"a wrong secret":      {apart, func(c *Config) { c.ClientSecret = "wrong-secret-of-mine" }, "connect sign-in! CONNECT ANSWER", "check client ID and secret"},
		"no account":          {apart, func(c *Config) { c.ClientID, c.ClientSecret = "", "" }, "connect sign-in! CONNECT ANSWER", "leadferry login"},
		"lead creation fails": {apart, func(c *Config) { c.LeadsURL = silent.address() }, "connect sign-in CONNECT ANSWER!", "HTTP 503"},
		"a redirect":          {apart, func(c *Config) { c.LeadsURL = elsewhere.address() }, "connect sign-in CONNECT ANSWER!", "leadferry follows none"},
		"no lead creation":    {apart, func(c *Config) { c.LeadsURL, c.TrunkID = "", "" }, "connect sign-in", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := network(t, tt.network)
			if tt.change != nil {
				tt.change(&c)
			}
			got, steps := probed(t, c)
			must.Same(t, tt.want, got, steps)
			if !slices.ContainsFunc(steps, func(s Step) bool { return strings.Contains(s.Text+" "+s.Hint, tt.text) }) {
				t.Errorf("no step says %q: %+v", tt.text, steps)
			}
			for _, step := range steps {
				for _, secret := range []string{"proxy-password", sandbox.ClientSecret, "wrong-secret-of-mine"} {
					if strings.Contains(step.Text+step.Hint, secret) {
						t.Errorf("%s shows a secret: %+v", step.Name, step)
					}
				}
			}
			if leads, err := s.Leads(); err != nil || len(leads) > 0 || s.Counts()["create"] != nil {
				t.Errorf("%d leads, answers %v, %v", len(leads), s.Counts(), err)
			}
		})
	}
}

func without(with func(*url.URL) *Proxy) func(*url.URL) *Proxy {
	return func(u *url.URL) *Proxy {
		p := *with(u)
		p.User = nil
		return &p
	}
}
