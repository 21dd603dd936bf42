package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"leadferry/internal/cli/flags"
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

// A secret that is pasted where something else belongs is not repeated by the error: what reads a number says nothing of
// the value, and a name is left out that looks like a secret. fault 111
func TestSecretsInWrongPlacesAreNotShown(t *testing.T) {
	account, err := json.Marshal(map[string]string{"client_id": "client-1", "client_secret": plantedSecret})
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"token": plantedJWT, "secret": plantedSecret, "password": plantedPassword, "account": string(account),
		"key":     "-----BEGIN PRIVATE KEY-----\n" + plantedRefresh + "\n-----END PRIVATE KEY-----\n",
		"address": "https://ann:" + plantedAccess + "@files.example.com/leads.csv",
		"signed":  "https://files.example.com/leads.csv?signature=" + plantedAccess,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "http://127.0.0.1:1")
			t.Chdir(d.dir)
			t.Setenv("LEADFERRY_LEADS_URL", "http://127.0.0.1:1")
			t.Setenv("LEADFERRY_TRUNK_ID", "t-1")
			refused := func(args ...string) {
				t.Helper()
				code, seen := d.run("", args...)
				if piece := leaks(seen); piece != "" || code == 0 || !strings.Contains(seen, "leadferry: ") {
					t.Errorf("exit %d, %q is shown:\n%s", code, piece, seen)
				}
			}
			for _, flag := range []string{"--limit", "--rate", "--wait", "--max-rejects", "--format", "--delimiter", "--mapping", "--profile", "--config", "--log-level", "--log-format", "--fleet"} {
				refused("import", "leads.csv", flag, secret)
				refused("import", "leads.csv", flag+"="+secret)
			}
			for _, flag := range []string{"--client-secret-file", "--client-secret-command", "--ca-file", "--client-cert", "--proxy", "--base-url", "--profile", "--timeout"} {
				refused("config", "check", "--client-id=c", flag+"="+secret)
			}
			refused(secret, "import")
			refused("import", "-m", "no.yaml", secret)
			refused("import", "--"+secret)
			refused("checkpoint", "status", "--checkpoint", secret)
			refused("checkpoint", "resolve", secret)
			refused("report", secret)
			t.Setenv("LEADFERRY_CLIENT_SECRET_FILE", secret)
			refused("config", "check", "--client-id=c")
		})
	}
}

// What reads as a name is not shown where a secret is looked for: in the place of the file that holds it, with its variable
// behind the command, joined to a letter, or in an address.
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
		hidden("import", "LEADFERRY_CLIENT_SECRET="+secret, "--sandbox", "-m", sampleFile(t, "leads.yaml"))
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

// A name that was mistyped, or stands elsewhere, is seen in what says so, and a word of the line hides nothing of others.
func TestNamesThatAreNotThereAreTold(t *testing.T) {
	const run, fleet = "20261122T192226Z-import-ff2e99f1", "3F2A1B4C-0d9e-4f8a-b7c6-5d4e3f2a1b0c"
	const name, noBlanks = "Leads 2026Q3 EU v2 Final", "Leads_2026Q3_EU_v2_Final"
	d := newDesk(t, "http://127.0.0.1:1")
	t.Chdir(d.dir)
	leads, mapping := sampleFile(t, "leads.csv"), sampleFile(t, "leads.yaml")
	if err := os.WriteFile("bare.yaml", []byte("version: 1\nkey: {id}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, lines := range map[string][][]string{
		run:          {{"report", run}, {"report", "leadferry-runs/" + run}, {"report", "leadferry-runs/" + run + "/"}, {"checkpoint", "adopt", "--sandbox", "leadferry-runs/" + run}},
		name:         {{"import", "--sandbox", "-m", mapping, name}, {"import", "--sandbox", "-m", name, leads}, {"explain", name}, {"report", name}},
		noBlanks:     {{"import", "--sandbox", "-m", mapping, noBlanks}, {"import", "--sandbox", "-m", "exports/" + noBlanks, leads}, {"checkpoint", "resolve", "--sandbox", noBlanks}},
		fleet:        {{"explain", fleet}, {"report", fleet}},
		`"{column}"`: {{"validate", "-m", "bare.yaml", leads, "--delimiter", "{"}},
	} {
		for _, args := range lines {
			if code, seen := d.run("", args...); code != 2 || !strings.Contains(seen, want) || strings.Contains(seen, "not shown") {
				t.Errorf("%q: exit %d, want %s\n%s", args, code, want, seen)
			}
		}
	}
}

// A token that was made by chance is not shown, whatever signs part it.
func TestTokensAreNotTakenForNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shown := 0
	const tokens = 5000
	for range tokens {
		token := make([]byte, 24)
		for i := range token {
			token[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[r.IntN(64)]
		}
		if !flags.MaybeSecret(string(token)) {
			shown++
		}
	}
	if shown > tokens/300 { // those of few turns
		t.Errorf("%d of %d are shown", shown, tokens)
	}
}

// A secret is left out where it stands by itself.
func TestSecretsAreHiddenAsWholeWords(t *testing.T) {
	for text, want := range map[string]string{
		"Zb3: no such file": "*: no such file", `is "Zb3", /a/Zb3`: `is "*", /a/*`, "Zb3Zb3 Zb3": "** *", "Zb3s aZb3 äZb3ö": "Zb3s aZb3 äZb3ö", "-Zb3=Zb3": "-*=*", "": "",
	} {
		if got := replaceWord(text, "Zb3", "*"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := replaceWord("x{a}y", "{a}", "*"); got != "x*y" {
		t.Error(got)
	}
}

// Names that people give their files are told, so that they see which one is meant, and so is what identifies a target.
func TestNamesAreNotTakenForSecrets(t *testing.T) {
	d := newDesk(t, "https://a.example.com")
	const trunk = "00D5f000001AbCdEAF"
	d.must(2, "", []string{"checkpoint", "status", "--leads-url", "https://a.example.com", "--trunk-id", trunk}, "no checkpoint at ", "a.example.com-"+trunk+".db")
	t.Chdir(d.dir)
	leads, err := os.ReadFile(sampleFile(t, "leads.csv"))
	if err == nil {
		err = os.WriteFile("leads.csv", []byte(strings.ReplaceAll(string(leads), "L-104204", "/"+trunk)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.run("", "import", "--sandbox", "-m", sampleFile(t, "leads.yaml"), "leads.csv")
	d.must(0, "", []string{"checkpoint", "history", "--sandbox", "/" + trunk}, "/"+trunk, "leads.csv:2")
	if err := os.Mkdir("exports", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]bool{
		"leads-2026-Q3-final-v2.csv": false, "JOB4711RUN0815.XLSX": false, "leads-import-2026-Q3-final-v2": false, "importer@example.com": false,
		"exports/8f3A9b2C1d4E7f6A": false, "https://files.example.com/leads.csv": false, "postgres://ann@db.example.com/leads?sslmode=require": false,
		"4f1c2a9b": false, "--max-in-doubt": false, "": false, "8f3A9b2C1d4E7f6A": true, "nowhere/8f3A9b2C1d4E7f6A": true,
		"3f2a1b4c-0d9e-4f8a-b7c6-5d4e3f2a1b0c": false, "20261122T192226Z-import-ff2e99f1": false, "nowhere/20261122T192226Z-sync-ff2e99f1/": false,
		"20261122T192226Z-import-ff2e99f1x": true, "Leads 2026Q3 EU v2 Final": false, "Leads 8f3A9b2C1d4E7f6A": true, "{": false, "{column}": false,
		"Leads_2026Q3_EU_v2_Final": false, "Leads-2026Q3-EU-v2": false, "nowhere/Leads_2026Q3_EU_v2_Final": false, "CRM.Export.2026Q3.NordWest7.v2": false,
		"aB3-dE5_fG7.hJ9x": true, "AB3D-9FkL-x7Qw-Zz01": true, "sk_live_4eC39HqLyjWDarjtT1zdp7dc": true, "ghp_16C7e42F292c6912E7710c838347Ae178B4a": true,
		"xoxb-123456789012-AbCdEfGhIjKlMnOp7": true, "Leads_2026Q3_8f3A9b2C1d4E": true, plantedJWT: true, plantedSecret: true, plantedAccess: true, plantedRefresh: true,
		`{"client_id": 1}`: true, "host=db password=x": true, "socks5://a:b@proxy": true, "http://token@proxy": true,
	} {
		if flags.MaybeSecret(name) != secret {
			t.Errorf("%q: %v", name, !secret)
		}
	}
}
