package importer

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leadferry/checkpoint"
)

// While creates go singly, and one of them hangs, the leads that were made are linked. fault 138
func TestLinksDoNotWaitForCreates(t *testing.T) {
	tried(t, numbered(40), Options{Sending: Sending{Concurrency: 4}}, func(t *testing.T, tr *trial) {
		tr.remap(t, "  external_id: \"{id}\"\n")
		began := time.Now()
		tr.service.answer = func(name string, _ int) error {
			if name == "n010" || name == "n011" {
				return broken
			}
			return nil
		}
		var before sync.Map // names of the leads that were made before the one that hangs
		tr.service.arrive = func(key string) {
			if key != "k011" {
				return
			}
			tr.service.mu.Lock()
			for _, name := range tr.service.order {
				before.Store(name, true)
			}
			tr.service.mu.Unlock()
			time.Sleep(30 * time.Second)
		}
		var late atomic.Int32
		tr.service.update = func(id string) {
			if _, is := before.Load(strings.TrimPrefix(id, "lead-")); is && time.Since(began) > 10*time.Second {
				late.Add(1)
			}
		}
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 38 in_doubt 2" || late.Load() > 0 {
			t.Errorf("%s; %d links of the leads that were made before came late", got, late.Load())
		}
	})
}

func TestAnExternalIDIsBounded(t *testing.T) {
	tried(t, []string{"k1," + strings.Repeat("x", checkpoint.MaxKey), "k2," + strings.Repeat("x", checkpoint.MaxKey+1)}, Options{}, func(t *testing.T, tr *trial) {
		tr.remap(t, "  external_id: \"{name}\"\n")
		tr.carry(t.Context())
		if got := tr.outcomes(); got != "created 1 invalid 1" {
			t.Error(got)
		}
	})
}
