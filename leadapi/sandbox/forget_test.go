package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestForgottenLeadsLeaveNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leads.db")
	s, err := New(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ann := createLead(t, s, `{"name":"Ann-Alone-Lee"}`)
	bob := createLead(t, s, `{"name":"Bob"}`)
	if _, err := Forget(path, []string{ann}); err == nil {
		t.Error("a file in use was changed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := Forget(path, []string{ann, "", "no-id", ann}); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("files left: %v, %v", files, err)
	}
	if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("Ann-Alone")) || !bytes.Contains(b, []byte("Bob")) {
		t.Errorf("%v: she is there still, or he is gone", err)
	}
	s = open(t, Options{Path: path})
	if leads := ledger(t, s); len(leads) != 1 || leads[0].ID != bob {
		t.Errorf("%v", leads)
	}
	if n, err := Forget(filepath.Join(t.TempDir(), "none.db"), []string{ann}); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
}

// What is killed leaves no leads in the temporary folder.
func TestATemporaryFileHasNoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := open(t, Options{})
	createLead(t, s, `{"name":"Ann"}`)
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 && !s.store.temporary {
		t.Errorf("%v, %v", files, err)
	}
	if len(ledger(t, s)) != 1 {
		t.Error("the lead is lost")
	}
}
