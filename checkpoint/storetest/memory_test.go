package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

func TestMemory(t *testing.T) { Run(t, inMemory()) }

// inMemory keeps every place in memory.
func inMemory() Backend {
	places := map[string]*Memory{}
	place := func(TB) string { return fmt.Sprint(len(places)) }
	return Backend{
		Place: place,
		Open: func(_ TB, at string, now func() time.Time) checkpoint.Store {
			if places[at] == nil {
				places[at] = NewMemory(checkpoint.Target{})
			} else {
				places[at] = places[at].Again()
			}
			places[at].Now = now
			return places[at]
		},
		Killed: func(t TB, from string) string {
			to := place(t)
			places[to] = places[from].Again()
			return to
		},
	}
}

// A refusal by the hook is the change's own.
func TestMemoryRefusesAsItIsTold(t *testing.T) {
	m := NewMemory(checkpoint.Target{})
	m.Refuse = func(c *checkpoint.Change) error {
		if c.Kind == checkpoint.Claim && c.Entry.Key == "b" {
			return checkpoint.ErrKnown
		}
		return nil
	}
	for key, want := range map[string]error{"a": nil, "b": checkpoint.ErrKnown, "c": nil} {
		if err := Claim(m, IntentOf(key, 1)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
	if all := contents(t, m); len(all) != 2 {
		t.Errorf("%d keys are known", len(all))
	}
}
