package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// An echo is a service that repeats in every answer all that it was told and all
// that it knows. It answers as it should, but for one endpoint.
type echo struct {
	endpoint string
	status   int
}

const (
	plantedPassword = `xQ7"kW v3ö+/%&-Zp9tLm2Rb5Yc`
	plantedJWT      = "hJ4.nVe8sXo1UqTg6.Dw0~Fy"
	plantedSecret   = `aK5"+/=&%<rM8zCi3EjPu7Hv>`
	plantedAccess   = "eB2.lSx6GnQd9.OwTk4+Iy"
	plantedRefresh  = "uR1/cFv7+ZaJm=3Nh&8Xp"
)

func (e echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	said := string(body) + r.URL.RawQuery + r.Header.Get("Authorization") + plantedPassword + plantedSecret + plantedAccess + plantedRefresh +
		base64.StdEncoding.EncodeToString([]byte(plantedSecret)) + url.QueryEscape(plantedPassword)
	w.Header().Set("X-Echo", url.QueryEscape(said))
	w.Header().Set("Location", "http://127.0.0.1:1/?"+url.QueryEscape(said))
	endpoint := path.Base(r.URL.Path)
	answer := map[string]any{
		"message": said,
		"Token":   plantedJWT,
		"Secret":  plantedSecret, "ID": "client-1",
		"access_token": plantedAccess, "refresh_token": plantedRefresh, "expires_in": 10800,
	}
	if endpoint == e.endpoint {
		w.WriteHeader(e.status)
		answer = map[string]any{"message": said, "Secret": plantedSecret}
	}
	json.NewEncoder(w).Encode(answer)
}

// pieces are all that must not be seen of a secret: 12 characters running of it, in
// any form that it may be written in.
func pieces(secret string) []string {
	quoted, _ := json.Marshal(secret)
	var all []string
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%+q", secret), `"`),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
	} {
		for i := 0; i+12 <= len(form); i++ {
			all = append(all, form[i:i+12])
		}
	}
	return all
}

func leaks(text string) string {
	for _, secret := range []string{plantedPassword, plantedJWT, plantedSecret, plantedAccess, plantedRefresh} {
		for _, piece := range pieces(secret) {
			if strings.Contains(text, piece) {
				return piece
			}
		}
	}
	return ""
}

// faults 110, 111, 112, 113: no secret is seen but on the wire and in its own file.
func TestNoSecretIsShown(t *testing.T) {
	for endpoint, statuses := range map[string][]int{
		"": {0}, "login": {301, 400, 401, 418, 500, 299}, "client": {302, 400, 401, 409, 500, 204}, "token": {307, 400, 401, 429, 503},
	} {
		for _, status := range statuses {
			t.Run(fmt.Sprint(endpoint, status), func(t *testing.T) {
				server := httptest.NewServer(echo{endpoint, status})
				defer server.Close()
				d := newDesk(t, server.URL)
				t.Setenv("LEADFERRY_LEADS_URL", server.URL)
				t.Setenv("LEADFERRY_TRUNK_ID", "t-1")
				code, seen := d.run(plantedPassword+"\n", "--log-level", "debug", "login", "--email", "a@example.com")
				if (code == 0) != (status == 0) {
					t.Errorf("exit %d\n%s", code, seen)
				}
				for _, args := range [][]string{{"config", "show"}, {"config", "show", "--json"}, logIn} {
					_, out := d.run(plantedPassword, args...)
					seen += out
				}
				if piece := leaks(seen); piece != "" {
					t.Errorf("%q is shown:\n%s", piece, seen)
				}
				ownFilesOnly(t, d.dir)
			})
		}
	}
}

// ownFilesOnly fails the test where a secret stands in a file that is not for it, or
// that others may read.
func ownFilesOnly(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		folder := filepath.Base(filepath.Dir(path))
		if leaks(string(b)) != "" && (info.Mode().Perm() != 0o600 || folder != "credentials" && folder != "tokens") {
			t.Errorf("%s (%v) holds a secret", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A secret in the wrong place is not shown: as the name of the file that holds it, joined to a letter,
// behind a command without files, or in an address.
func TestWordsInTheWrongPlaceAreNotShown(t *testing.T) {
	for _, secret := range []string{"Summer2026-Winter-Pass7", "hunter2pass", "3f2a1b4c-0d9e-4f8a-b7c6-5d4e3f2a1b0c", "Correct.Horse7.Battery9.Staple4"} {
		d := newDesk(t, "https://127.0.0.1:1")
		t.Chdir(d.dir)
		at := []string{"--leads-url", "https://127.0.0.1:1", "--trunk-id", "t", "--client-id", "c"}
		hidden := func(args ...string) {
			t.Helper()
			if _, seen := d.run("", args...); strings.Contains(seen, secret) {
				t.Errorf("%q:\n%s", args, seen)
			}
		}
		named := with(at, "--client-secret-file", secret)
		hidden(with([]string{"config", "show"}, named...)...)
		hidden(with([]string{"config", "check"}, named...)...)
		hidden("import", "--sandbox", "-p"+secret)
		hidden("login", "--email", "a@example.com", secret)
		hidden(with([]string{"config", "check", "--base-url", "http://u:" + secret + "@127.0.0.1:x"}, at...)...)
		profile := "profiles:\n  default:\n    base_url: \"http://u:" + secret + "@127.0.0.1:x\"\n    leads_url: https://127.0.0.1:1\n    trunk_id: t\n    client_id: c\n    client_secret_file: " + secret + "\n"
		d.write("config/leadferry/config.yaml", profile)
		t.Setenv("LEADFERRY_BASE_URL", "")
		hidden("config", "show")
		hidden("config", "check")
		hidden("import", "--sandbox=false", "-m", sampleFile(t, "leads.yaml"), sampleFile(t, "leads.csv"))
		os.Remove(filepath.Join(d.dir, "config/leadferry/config.yaml"))
		t.Setenv("LEADFERRY_CLIENT_SECRET_FILE", secret)
		hidden(with([]string{"config", "check"}, at...)...)
	}
}
