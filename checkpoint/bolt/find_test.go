package bolt

import (
	"context"
	"fmt"
	"testing"

	"leadferry/checkpoint"
)

func sought(t *testing.T, d *Store, q checkpoint.Query) (checkpoint.Entry, checkpoint.Match) {
	t.Helper()
	out, how := make([]checkpoint.Entry, 1), make([]checkpoint.Match, 1)
	if err := d.Find(context.Background(), []checkpoint.Query{q}, out, how); err != nil {
		t.Fatal(err)
	}
	return out[0], how[0]
}

// A lead that has just been made is found by its ID while the index is written.
func TestYoungLeadsAreFoundByTheirID(t *testing.T) {
	d := opened(t, newPath(t), Options{})
	d.bolt.NoSync = true
	const leads = 3000
	var many []checkpoint.Entry
	for n := range 4000 {
		many = append(many, checkpoint.Entry{Key: fmt.Sprint("many", n), LeadID: fmt.Sprint("lead.many", n)})
	}
	if _, err := checkpoint.Adopt(context.Background(), d, checkpoint.ListOf(many...)); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	made := make(chan int, leads)
	go func() {
		defer close(ended)
		known := []int{}
		for {
			select {
			case n := <-made:
				known = append(known, n)
				continue
			case <-stop:
				return
			default:
			}
			for i := range 64 {
				many := fmt.Sprint("many", 37*(len(known)+i)%4000)
				if e, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: "lead." + many}); how != checkpoint.ByLeadID || e.Key != many {
					t.Errorf("lead %s: %d %q", many, how, e.Key)
					return
				}
			}
			for i := range min(len(known), 64) {
				n := known[(len(known)*i/64+i)%len(known)]
				if e, how := sought(t, d, checkpoint.Query{Key: "none", LeadID: fmt.Sprint("lead.", n)}); how != checkpoint.ByLeadID || e.Key != fmt.Sprint("k", n) {
					t.Errorf("lead %d: %d %q", n, how, e.Key)
					return
				}
			}
		}
	}()
	var some []checkpoint.Entry
	for n := range leads {
		e := createdEntry(fmt.Sprint("k", n), fmt.Sprint("lead.", n), 1)
		if some = append(some, e); len(some) == 32 || n == leads-1 {
			together(t, d, checkpoint.Settle, some...)
			for i := range some {
				made <- n - len(some) + 1 + i
			}
			some = some[:0]
		}
	}
	close(stop)
	<-ended
}
