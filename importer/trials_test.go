package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One lead whose answer takes ten minutes holds back nobody but its own rows. It is far enough from the beginning that it
// is not the first create of all, which goes alone.
func TestASlowLeadHoldsBackNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := numbered(3000)
		for i := 100; i < 1000; i += 2 { // these wait for it
			rows[i] = fmt.Sprintf("k099,again%03d", i)
		}
		tr := newTrial(t, rows, Options{Sending: Sending{Concurrency: 4}})
		began, others := time.Now(), 0
		tr.service.arrive = func(key string) {
			if key == "k099" {
				time.Sleep(10 * time.Minute)
				tr.service.mu.Lock()
				others = len(tr.service.order)
				tr.service.mu.Unlock()
			}
		}
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 2550 changed 450" || others != 2549 || tr.service.clash {
			t.Errorf("%s; %d leads were made before the slow one; two of one key at once: %v", got, others, tr.service.clash)
		}
		if took := time.Since(began); took > 10*time.Minute+time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Thousands of rows of one lead, by two keys, go one after another, in file order, beside those of others, with a bound on how
// many wait. fault 80
func TestThousandsOfRowsOfOneLead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "one,,x-1,open,start,1"))
		var rows []string
		for i := range 5000 {
			rows = append(rows, fmt.Sprintf("%s,,x-1,open,%04d,1", []string{"one", "alias"}[i%2], i))
			if i%10 == 0 {
				rows = append(rows, fmt.Sprintf("k%d,,y-%d,open,Ann,1", i, i))
			}
		}
		p.service.sent()
		p.must("created 500 updated 5000", p.run("sync", Options{Sending: Sending{Concurrency: 8}, Planning: Planning{Missing: MissingCreate}}, rows...))
		var names []string
		one := p.known("one").LeadID
		for sent := range strings.Lines(p.service.sent()) {
			if id, body, _ := strings.Cut(sent, " "); id == one {
				names = append(names, body)
			}
		}
		if len(names) != 5000 || !slices.IsSorted(names) || p.service.clash || len(p.service.leads) != 501 {
			t.Errorf("%d updates, in order %v; two at once %v; %d leads", len(names), slices.IsSorted(names), p.service.clash, len(p.service.leads))
		}
	})
}

// Two keys with one ExternalID, new both, make one lead, wherever they stand.
func TestTwoKeysWithOneExternalIDMakeOneLead(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		var rows []string
		for i := range 300 {
			rows = append(rows, fmt.Sprintf("a%d,,x-%d,open,Ann,1", i, i), fmt.Sprintf("b%d,,x-%d,open,Ann,1", i, i/7*7))
		}
		p.run("sync", Options{Sending: Sending{Concurrency: 16}, Planning: Planning{Missing: MissingCreate}}, rows...)
		if len(p.service.leads) != 300 || p.service.clash {
			t.Errorf("%d leads of 300; two requests of one lead at once: %v", len(p.service.leads), p.service.clash)
		}
		held := map[string]string{}
		for id, l := range p.service.leads {
			if other := held[l.ExternalID]; other != "" {
				t.Errorf("%s and %s have the ExternalID %s", id, other, l.ExternalID)
			}
			held[l.ExternalID] = id
		}
	})
}

// A row and its revert in one batch are both sent, in file order.
func TestARowAndItsRevertInOneBatch(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.must("created 1", p.run("import", Options{}, "a,,x-a,open,Ann,1"))
		p.service.sent()
		p.must("updated 2 unchanged 1", p.run("sync", Options{Sending: Sending{Concurrency: 8}},
			"a,,x-a,contacted,Ann,1", "a,,x-a,open,Ann,1", "a,,x-a,open,Ann,1"))
		id := p.known("a").LeadID
		p.sends(id+` {"Status":"contacted"}`, id+` {"Status":"open"}`)
	})
}
