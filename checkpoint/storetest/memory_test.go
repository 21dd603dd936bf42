package storetest

import (
	"fmt"
	"testing"
	"time"

	"leadferry/checkpoint"
)

func TestMemory(t *testing.T) {
	places := map[string]*Memory{}
	place := func(TB) string { return fmt.Sprint(len(places)) }
	Run(t, Backend{
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
	})
}
