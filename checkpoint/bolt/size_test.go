package bolt

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// N10, fault 32: at most 512 bytes a row with 12 content keys, and up to 50 more for the eighth of so few rows that
// still gathers. So many rows also take the index by lead ID through more than one generation, so every lead is
// still known: before and after a crash, and after an end in order. fault 66
func TestManyRowsStaySmallAndKnown(t *testing.T) {
	sequential(t)
	const rows = 40_000
	for name, key := range map[string]func(int) string{
		"addresses with capitals without order": func(i int) string {
			return fmt.Sprintf("Ann.%016x@Sales.Example.COM", uint64(i+1)*0x9E3779B97F4A7C15)
		},
		"UUIDs without order": func(i int) string {
			h := uint64(i+1) * 0x9E3779B97F4A7C15
			return fmt.Sprintf("%08x-%04x-4000-8000-%012x", h>>32, h>>16&0xffff, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			d := opened(t, path, Options{})
			leads := make([]string, rows)
			var changes []*checkpoint.Change
			for i := range rows {
				id := d.digests.Sum([]byte(key(i)))
				leads[i] = uuidOf(id)
				changes = append(changes, &checkpoint.Change{Kind: checkpoint.Claim, Entry: intentOf(key(i), i)},
					&checkpoint.Change{Kind: checkpoint.Settle, Entry: createdEntry(key(i), leads[i], i)})
				if i%64 == 63 || i == rows-1 {
					if err := d.Commit(t.Context(), changes); err != nil {
						t.Fatal(err)
					}
					changes = changes[:0]
				}
			}
			knows(t, d, leads)
			copied := opened(t, killed(t, path), Options{})
			knows(t, copied, leads)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes a row", info.Size()/rows)
			most := int64(562)
			if strings.Contains(name, "capitals") {
				most += 110 // their folds keep the whole key
			}
			if info.Size() > most*rows {
				t.Errorf("%d bytes a row", info.Size()/rows)
			}
			knows(t, opened(t, path, Options{}), leads)
		})
	}
}

// knows claims some leads for another key, which must not get them.
func knows(t *testing.T, d *Store, leads []string) {
	t.Helper()
	for i := 0; i < len(leads); i += 4999 {
		stored, err := settle(d, checkpoint.Entry{Key: "another", State: checkpoint.Created, LeadID: leads[i]})
		if err != nil || stored.Reason != checkpoint.ReasonLeadTaken {
			t.Errorf("lead of row %d: %v, %v", i, stored.State, err)
		}
	}
	if d.Info().Leads != len(leads) {
		t.Errorf("%d leads, want %d", d.Info().Leads, len(leads))
	}
}
