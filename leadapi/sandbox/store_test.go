package sandbox

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"leadferry/internal/testsupport/must"
)

func TestReopeningFindsLeadsAndClients(t *testing.T) {
	path := t.TempDir() + "/leads.db"
	at := newClock()
	s := open(t, Options{Path: path, now: at.now})
	id := createLead(t, s, `{"name":"Ann","n":1.0}`)
	createLead(t, s, `{}`)
	ask(s, "PATCH", "/v3/lead/"+id, `{"ExternalID":"x"}`, "Authorization", signIn(s))
	temporary := "Bearer " + s.issue(loginUse, accountID, loginLife)
	client := decode(t, ask(s, "POST", "/v3/oauth2/client", "", "Authorization", temporary))
	before := ledger(t, s)
	must.Do(t, s.Close())
	at.move(-time.Hour) // the clock of the second start is behind
	s = open(t, Options{Path: path, now: at.now})
	must.Same(t, before, ledger(t, s))
	createLead(t, s, `{}`)
	if w := tokens(s, "grant_type", "client_credentials", "client_id", client["ID"].(string), "client_secret", client["Secret"].(string)); w.Code != 200 {
		t.Errorf("a client of before: status %d", w.Code)
	}
	must.Same(t, before, ledger(t, s)[:2], "the new lead is the last")
}

func TestOpeningRefusesWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	// A checkpoint has a bucket called leads, too.
	for file, names := range map[string][]string{"/foreign.db": {"meta"}, "/checkpoint.db": {"leads", "meta"}, "/all.db": {"account", "leads", "meta"}} {
		foreign, err := bbolt.Open(dir+file, 0o600, nil)
		must.Do(t, err)
		for _, name := range names {
			must.Do(t, foreign.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte(name)); return err }))
		}
		must.Do(t, foreign.Close())
	}
	must.Do(t, os.WriteFile(dir+"/text.db", bytes.Repeat([]byte("text "), 10_000), 0o600))
	open(t, Options{Path: dir + "/mine.db"})
	for name, want := range map[string]string{
		"foreign.db": "not a file of the sandbox", "checkpoint.db": "not a file of the sandbox", "all.db": "not a file of the sandbox", "text.db": "open", "none/leads.db": "no such file", "mine.db": "in use",
	} {
		if _, err := New(Options{Path: dir + "/" + name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryAnsweredLeadOutlivesAKill(t *testing.T) {
	path, left := t.TempDir()+"/leads.db", t.TempDir()+"/left.db"
	s := open(t, Options{Path: path})
	for range 20 {
		id := createLead(t, s, `{"name":"Ann"}`)
		data, err := os.ReadFile(path) // a kill now leaves these bytes
		must.Do(t, err)
		must.Do(t, os.WriteFile(left, data, 0o600))
		again, err := New(Options{Path: left})
		must.Do(t, err)
		leads := ledger(t, again)
		must.Same(t, id, leads[len(leads)-1].ID)
		must.Do(t, again.Close())
	}
}

func TestLeadIDsGrowWhateverTheClockDoes(t *testing.T) {
	at := newClock()
	s := open(t, Options{now: at.now})
	last := ""
	for range 300 {
		id := createLead(t, s, `{}`)
		if id <= last || !isUUID(id) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
		at.move(-time.Second)
	}
}

func TestForgottenLeadsLeaveNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leads.db")
	s, err := New(Options{Path: path})
	must.Do(t, err)
	ann := createLead(t, s, `{"name":"Ann-Alone-Lee"}`)
	bob := createLead(t, s, `{"name":"Bob"}`)
	for _, id := range []string{ann, bob} {
		for range 3 {
			ask(s, "PATCH", "/v3/lead/"+id, `{"Content":{"n":"`+rand.Text()+`"}}`, "Authorization", signIn(s))
		}
	}
	ask(s, "PATCH", "/v3/lead/"+ann, `{"Content":{"name":"Renamed"}}`, "Authorization", signIn(s))
	if _, err := Forget(path, []string{ann}); err == nil {
		t.Error("a file in use was changed")
	}
	must.Do(t, s.Close())
	if n, err := Forget(path, []string{ann, "", "no-id", ann}); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("files left: %v, %v", files, err)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("Ann-Alone")) || !bytes.Contains(b, []byte("Bob")) {
		t.Errorf("%v: Ann is still in the file, or Bob is gone", err)
	}
	s = open(t, Options{Path: path})
	if leads := ledger(t, s); len(leads) != 1 || leads[0].ID != bob {
		t.Errorf("%v", leads)
	}
	if n, err := Forget(filepath.Join(t.TempDir(), "none.db"), []string{ann}); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
}

// The temporary file of a sandbox has no name, so a killed sandbox leaves no leads behind. On systems without nameless
// files the test shows nothing.
func TestATemporaryFileHasNoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := open(t, Options{})
	createLead(t, s, `{"name":"Ann"}`)
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 && (runtime.GOOS == "linux" || !s.store.temporary) {
		t.Errorf("%v, %v", files, err)
	}
	must.Same(t, 1, len(ledger(t, s)), "the lead is lost")
}
