package checkpointcmd

import (
	"bytes"
	"strings"
	"testing"
)

// Who writes the row's own number where the lead's ID belongs has not found the lead. fault 127
func TestARowsOwnNumberIsNoLeadID(t *testing.T) {
	for row, wrong := range map[string]bool{
		"C-1,C-1,": true, "dealers/17,17,": true, "dealers/17,dealers/17,": true, "row-1,0031,0031": true,
		"C-1,C-10,": false, "C-1,none,": false, "C-1,exists,C-1": false, "C-1,,C-1": false, "17,5bb7fb0f-17,": false,
	} {
		l := &list{path: "found.csv", command: "resolve", in: bytes.NewReader([]byte("key,lead_id,external_id\n" + row + "\n"))}
		_, _, _, err := decisionsOf(l)
		if got := err != nil && strings.Contains(err.Error(), "the row's own key or ExternalID"); got != wrong {
			t.Errorf("%s: %v", row, err)
		}
	}
}
