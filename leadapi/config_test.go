package leadapi

import (
	"strings"
	"testing"

	"leadferry/internal/testsupport/must"
)

func TestSettingsThatCannotBeUsedAreNamed(t *testing.T) { // faults 43, 49, 50, 98
	const planted = "planted"
	words := map[string]string{"BaseURL": "base URL", "LeadsURL": "leads URL", "TrunkID": "trunk ID", "ClientID": "client ID", "ClientSecret": "client secret"}
	for _, test := range []struct {
		field, value string
		good         bool
	}{
		{"BaseURL", "https://api.example.com", true},
		{"BaseURL", "https://api.example.com:8443/gate/way/", true},
		{"BaseURL", "HTTPS://API.example.com", true},
		{"BaseURL", "https://bücher.example", true},
		{"BaseURL", "https://[fe80::1%25eth0]", false},
		{"BaseURL", "http://localhost:8080", true},
		{"BaseURL", "http://[::1]:80", true},
		{"BaseURL", "https://[2001:db8::1]", true},
		{"BaseURL", "https://2001:db8::1", false},
		{"BaseURL", "http://[::ffff:127.0.0.1]", true},
		{"BaseURL", "https://api.example.com:", false},
		{"BaseURL", "https://[2001:db8::1", false},
		{"BaseURL", "https://api.example.com:65536", false},
		{"BaseURL", "https://" + planted + "@api.example.com", false},
		{"BaseURL", "", false},
		{"BaseURL", "https://", false},
		{"BaseURL", "https://api.example.com:x", false},
		{"BaseURL", "http://api.example.com", false},
		{"BaseURL", "http://localhost.example.com", false},
		{"BaseURL", "http://0.0.0.0", false},
		{"BaseURL", "http://169.254.169.254", false},
		{"BaseURL", "file:///etc/passwd", false},
		{"BaseURL", "ftp://api.example.com", false},
		{"BaseURL", "https://user:" + planted + "@api.example.com", false},
		{"BaseURL", "https://api.example.com?a=" + planted, false},
		{"BaseURL", "https://api.example.com?", false},
		{"BaseURL", "https://api.example.com#" + planted, false},
		{"BaseURL", "https://api.example.com#", false},
		{"BaseURL", "https://api.example.com/v3", false},
		{"BaseURL", "https://api.example.com/v3/", false},
		{"BaseURL", "https://api.example.com/a/../b", false},
		{"BaseURL", "https://api.example.com/%2e%2e", false},
		{"BaseURL", "https://api.example.com/a b", false},
		{"BaseURL", "https://api.example.com\n", false},
		{"LeadsURL", "https://leads.example.com/v1", false},
		{"LeadsURL", "", false},
		{"LeadsURL", "http://leads.example.com", false},
		{"TrunkID", "", false},
		{"TrunkID", planted + "/x", false},
		{"ClientID", "", false},
		{"ClientID", planted + "&x", false},
		{"ClientSecret", "", false},
		{"ClientSecret", planted + "\n", false},
	} {
		c := config("https://api.example.com")
		*map[string]*string{"BaseURL": &c.BaseURL, "LeadsURL": &c.LeadsURL, "TrunkID": &c.TrunkID, "ClientID": &c.ClientID, "ClientSecret": &c.ClientSecret}[test.field] = test.value
		_, err := New(c)
		if test.good {
			if err != nil {
				t.Errorf("%s %q: %v", test.field, test.value, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "the "+words[test.field]) {
			t.Errorf("%s %q: %v", test.field, test.value, err)
		} else if strings.Contains(err.Error(), planted) {
			t.Errorf("%s: the error repeats the value: %v", test.field, err)
		}
	}
}

func TestLoginNeedsTheBaseURLOnly(t *testing.T) {
	if _, err := New(Config{BaseURL: "https://api.example.com"}); err != nil {
		t.Error(err)
	}
}

// fault 49: all spellings of an address become one, or the service would get two checkpoints.
func TestSpellingsOfAnAddressAreOne(t *testing.T) {
	for address, want := range map[string]string{
		"https://Leads.Example.com":            "https://leads.example.com",
		"HTTPS://leads.example.com.:0443///":   "https://leads.example.com",
		"https://leads.example.com:8443/base/": "https://leads.example.com:8443/base",
		"http://LocalHost:018472":              "http://localhost:18472",
		"http://127.0.0.1:80":                  "http://127.0.0.1",
		"https://[0:0:0:0:0:0:0:1]:443/x":      "https://[::1]/x",
		"https://Bücher.example":               "https://xn--bcher-kva.example",
		"":                                     "",
	} {
		must.Same(t, want, Canonical(address), address)
		must.Same(t, want, Canonical(want), want)
	}
}

func TestHostNamesGoOutInASCII(t *testing.T) { // fault 49
	c := config("https://api.example.com")
	c.BaseURL, c.LeadsURL = "https://Bücher.example:8443", "https://[::1]/x"
	client, err := New(c)
	must.Do(t, err)
	if h := client.general; h.name != "xn--bcher-kva.example:8443" || h.address != h.name || h.domain != "xn--bcher-kva.example" {
		t.Errorf("name %s, address %s, domain %s", h.name, h.address, h.domain)
	}
	if h := client.leads; h.name != "[::1]" || h.address != "[::1]:443" || h.tls.ServerName != "::1" {
		t.Errorf("name %s, address %s, server name %s", h.name, h.address, h.tls.ServerName)
	}
}
