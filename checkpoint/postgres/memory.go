package postgres

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

// memory is what this machine remembers of a ledger, beside what runs tell in their own folders.
type memory struct {
	Sequence int64             `json:"sequence"`
	Address  string            `json:"address"`
	Target   checkpoint.Target `json:"target"`
	Leads    int               `json:"leads"`
}

func (s *Store) memoryPath() string {
	if s.o.State == "" {
		return ""
	}
	return filepath.Join(s.o.State, "ledgers", s.id+".json")
}

func readMemory(path string) (m memory) {
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &m) != nil {
		return memory{}
	}
	return m
}

// remembered is the last commit that this machine has seen, or 0.
func (s *Store) remembered() int64 { return readMemory(s.memoryPath()).Sequence }

// remember notes the last commit. It is a witness among others: where it cannot be written, that
// is no error.
func (s *Store) remember() {
	path, known := s.memoryPath(), s.last.Load()
	if path == "" || known == nil || s.seq.Load() == 0 {
		return
	}
	leads := known.Leads // when it was asked last
	if s.claimed.Load() {
		leads = max(leads, 1)
	}
	text, err := json.Marshal(memory{int64(s.seq.Load()), s.at.Name, s.target, leads})
	if err == nil && os.MkdirAll(filepath.Dir(path), 0o700) == nil && os.WriteFile(path+".new", text, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// witnesses are what runs tell, and what this machine remembers.
func (s *Store) witnesses() []checkpoint.Witness {
	all := slices.Clone(s.o.Witnesses)
	if s.o.State == "" {
		return all
	}
	paths, _ := filepath.Glob(filepath.Join(s.o.State, "ledgers", "*.json"))
	for _, path := range paths {
		if m := readMemory(path); m.Address != "" {
			all = append(all, checkpoint.Witness{
				Source: path, Path: m.Address, ID: strings.TrimSuffix(filepath.Base(path), ".json"), Sequence: uint64(m.Sequence), Leads: m.Leads, Target: m.Target,
			})
		}
	}
	return all
}

// vanished refuses a ledger that is not the one of which something at hand tells, at this address and of this target. Where
// it is begun anew all the same, it comes in the place of that one.
func (s *Store) vanished(ctx context.Context) error {
	var ancestors string
	if err := s.writer.QueryRow(ctx, `SELECT ancestor FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&ancestors); err != nil {
		return s.serverError(err)
	}
	for _, w := range s.witnesses() {
		if w.ID == s.id || w.Target.Canonical() != s.target || w.Leads+w.Made == 0 || slices.Contains(strings.Fields(ancestors), w.ID) || !s.isAt(w.Path) {
			continue
		}
		if !s.o.Anew || !s.fresh {
			return s.refuse(checkpoint.ErrGone, "is not the ledger of which "+w.Source+" tells, which knew leads of this target",
				"restore that one: rows of which it knew would be made again; --new-checkpoint begins anew all the same, where nothing is known yet")
		}
		s.predecessor = "of which " + w.Source + " tells knew leads of this target and is gone"
		if _, err := s.writer.Exec(ctx, `UPDATE leadferry.ledgers SET ancestor = trim(ancestor || ' ' || $2) WHERE ledger = $1`, s.ledger, w.ID); err != nil {
			return s.serverError(err)
		}
	}
	return nil
}

// isAt says whether a name is that of the ledger's database.
func (s *Store) isAt(name string) bool {
	if name == s.at.Name || !checkpoint.IsAddress(name) {
		return name == s.at.Name
	}
	other, err := server.Parse(name)
	return err == nil && s.at.Same(other)
}
