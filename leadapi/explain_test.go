package leadapi

import (
	"strconv"
	"testing"

	"leadferry/internal/explain"
)

// Every status has an entry, which is that of the class it is treated as.
func TestStatusesAreExplained(t *testing.T) {
	for status := 300; status < 600; status++ {
		_, class := appliedBy(status)
		if e, found := explain.Find(strconv.Itoa(status)); !found || e.Name != class {
			t.Errorf("%d: %q, want %q", status, e.Name, class)
		}
	}
}
