package cli

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// bucket is object storage: a presigned address is good, and nothing else. The first connection for a file is cut.
type bucket struct {
	files    map[string][]byte
	modified time.Time
	requests atomic.Int32
	cut      bool
}

func (e *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data := e.files[r.URL.Path]
	first := e.requests.Add(1) == 1
	if r.URL.Query().Get("sig") != "geheim" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("ETag", `"1"`)
	if first && e.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.Header().Set("Last-Modified", e.modified.UTC().Format(http.TimeFormat))
		w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, r.URL.Path, e.modified, bytes.NewReader(data))
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read is all that a file holds.
func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Inputs at addresses are what files are, and what is secret in an address stands nowhere.
func TestInputsAtAddresses(t *testing.T) {
	d := newDesk(t, "")
	t.Chdir(d.dir)
	leads := read(t, sampleFile(t, "leads.csv"))
	e := &bucket{files: map[string][]byte{"/a/leads.csv.gz": packed(t, leads), "/a/leads.csv": leads, "/a/book": read(t, bookFile(t))}, modified: time.Now().Add(-time.Hour)}
	server := httptest.NewServer(e)
	defer server.Close()
	mapping := sampleFile(t, "leads.yaml")
	out := filepath.Join(d.dir, "out")
	run := func(code int, args []string, texts ...string) string {
		t.Helper()
		said := d.must(code, "", args, texts...)
		if strings.Contains(said, "geheim") {
			t.Errorf("%v said a secret:\n%s", args, said)
		}
		return said
	}
	const query = "?sig=geheim&x=1"
	e.cut = true
	first := []string{"import", "--sandbox", "-m", mapping, server.URL + "/a/leads.csv.gz" + query, "--out", out}
	run(0, append(first, "--min-rows", "3", "--max-age", "2h"), "Import complete")
	results := string(read(t, filepath.Join(out, "results.csv")))
	if at, made := "\n"+server.URL+"/a/leads.csv.gz,", strings.Count(results, ",created,"); strings.Count(results, at) != 200 || made != 200 {
		t.Errorf("%d rows created", made)
	}
	run(0, []string{"import", "--sandbox", "-m", mapping, sampleFile(t, "leads.csv"), "--out", out}, "Nothing was sent")
	run(0, []string{"validate", "-m", mapping, server.URL + "/a/leads.csv" + query})

	address := server.URL + "/a/leads.csv" + query
	for _, test := range []struct {
		args  []string
		texts string
	}{
		{[]string{address, "--max-age", "1m"}, "is older than --max-age allows"},
		{[]string{address, "--min-rows", "1000"}, "and --min-rows asks for 1000"},
		{[]string{address, address}, "is named twice"},
		{[]string{server.URL + "/a/leads.csv?sig=geheimer"}, "presigned addresses expire"},
		{[]string{server.URL + "/a/book" + query, "--sheet", "none"}, "sheet"},
		{[]string{"s3://geheim@bucket/leads.csv?geheim"}, "aws s3 presign"},
		{[]string{"http://ann:geheim@files.example.com/leads.csv?geheim"}, "plain http://"},
	} {
		run(2, append([]string{"import", "--sandbox", "-m", mapping}, test.args...), test.texts)
	}
	run(2, []string{"init", address}, "init reads a file")

	err := filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && bytes.Contains(read(t, path), []byte("geheim")) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func sampleFile(t *testing.T, name string) string { return fromRoot(t, "samples", name) }

func bookFile(t *testing.T) string {
	return fromRoot(t, "importer", "source", "testdata", "excelize.xlsx")
}

var here = func() string { dir, _ := os.Getwd(); return dir }()

func fromRoot(t *testing.T, parts ...string) string {
	t.Helper()
	return filepath.Join(append([]string{here, "..", ".."}, parts...)...)
}
