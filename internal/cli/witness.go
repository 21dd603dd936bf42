package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"leadferry/checkpoint"
	"leadferry/internal/trust"
)

// How much is looked at to find what earlier runs tell of a checkpoint: this must cost a
// run next to nothing, whatever lies in the folder.
const (
	mostFolders   = 100     // the newest
	mostNames     = 10_000  // of a folder
	mostOfSummary = 4 << 20 // bytes: what is asked for stands near its beginning
)

// opening says how the checkpoint is opened that the flags name. A sandbox may always begin
// anew, for its leads are nobody's.
func opening(c *cli.Context) checkpoint.Options {
	return checkpoint.Options{
		Wait: c.Duration("wait"), AnyPlace: anyPlace(), Require: c.Bool("require-checkpoint"),
		Witnesses: witnesses(c), Named: c.String("checkpoint") != "", Anew: c.Bool("new-checkpoint") || c.Bool("sandbox"),
	}
}

// witnesses reads what the run folders at hand tell of checkpoints: those beside which this
// run's own will stand. The sandbox has none and is none: its leads are nobody's.
func witnesses(c *cli.Context) []checkpoint.Witness {
	if c.Bool("sandbox") {
		return nil
	}
	type summary struct {
		path string
		at   time.Time
	}
	var found []summary
	for _, parent := range runParents(c) {
		dir, err := os.Open(parent)
		if err != nil {
			continue
		}
		entries, _ := dir.ReadDir(mostNames) // as many as there are
		dir.Close()
		for _, e := range entries {
			path := filepath.Join(parent, e.Name(), "summary.json")
			if info, err := os.Lstat(path); e.IsDir() && err == nil && info.Mode().IsRegular() && trust.Invokers(info) {
				found = append(found, summary{path, info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b summary) int { return b.at.Compare(a.at) })
	var all []checkpoint.Witness
	for _, s := range found[:min(len(found), mostFolders)] {
		if w, err := readWitness(s.path); err == nil && w.Target != sandboxTarget {
			all = append(all, w)
		}
	}
	return all
}

// runParents are the folders in which run folders stand.
func runParents(c *cli.Context) []string {
	parents := []string{runsFolder}
	out := c.String("out")
	if out == "" {
		out = os.Getenv("LEADFERRY_OUT") // of commands that have no run folder of their own
	}
	if out != "" && out != "none" {
		if whole, err := filepath.Abs(out); err == nil {
			out = whole
		}
		if parent := filepath.Dir(out); !slices.ContainsFunc(parents, func(p string) bool { return sameFile(p, parent) }) {
			parents = append(parents, parent)
		}
	}
	return parents
}

// told is what of a summary speaks of the checkpoint.
type told struct {
	run      string
	dry      bool
	finished time.Time

	checkpoint struct {
		Path     string `json:"path"`
		ID       string `json:"id"`
		Sequence uint64 `json:"sequence"`
		Leads    int    `json:"leads"`
	}
	target struct {
		BaseURL  string `json:"base_url"`
		LeadsURL string `json:"leads_url"`
		TrunkID  string `json:"trunk_id"`
	}
	rows struct {
		Created int `json:"created"`
		Partial int `json:"partial"`
		InDoubt int `json:"in_doubt"`
	}
	requests struct {
		Create int `json:"create"`
		Update int `json:"update"`
	}
}

// readWitness reads a summary of a run. What is none, or of a run without a checkpoint, is an
// error.
func readWitness(path string) (w checkpoint.Witness, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|trust.NoFollow|trust.NonBlock, 0)
	if err != nil {
		return w, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || !trust.Invokers(info) {
		return w, errors.Join(err, fs.ErrPermission)
	}
	t, err := readTold(io.LimitReader(f, mostOfSummary))
	if err != nil {
		return w, err
	}
	if t.checkpoint.Path == "" || t.checkpoint.ID == "" {
		return w, fs.ErrNotExist
	}
	w = checkpoint.Witness{
		Source: path, Path: t.checkpoint.Path, ID: t.checkpoint.ID, Sequence: t.checkpoint.Sequence, Leads: t.checkpoint.Leads,
		Ended:  t.finished,
		Target: checkpoint.Target{BaseURL: t.target.BaseURL, LeadsURL: t.target.LeadsURL, TrunkID: t.target.TrunkID},
	}
	if !t.dry && t.requests.Create+t.requests.Update > 0 {
		w.Run = t.run
		w.Made = min(t.requests.Create, t.rows.Created+t.rows.Partial+t.rows.InDoubt)
	}
	return w, nil
}

// readTold reads a summary as far as it has to.
func readTold(r io.Reader) (t told, err error) {
	dec := jsontext.NewDecoder(r, jsontext.AllowInvalidUTF8(true))
	parts := map[string]any{
		"run_id": &t.run, "dry_run": &t.dry, "finished_at": &t.finished,
		"checkpoint": &t.checkpoint, "target": &t.target, "rows": &t.rows, "requests": &t.requests,
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return t, errors.Join(err, fs.ErrInvalid)
	}
	for len(parts) > 0 {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() == '}' {
			return t, errors.Join(err, fs.ErrInvalid)
		}
		part := parts[name.String()]
		delete(parts, name.String())
		if part == nil {
			err = dec.SkipValue()
		} else {
			err = json.UnmarshalDecode(dec, part)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
