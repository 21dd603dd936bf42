//go:build unix

package e2e

import (
	"fmt"
	"testing"
	"time"

	"leadferry/leadapi/sandbox"
)

// TestAStreamLeavesAtOnce: the submissions of a form, which come one at a time through a pipe, are leads before the next one
// is there; --min-rows holds back as many as it says, and no more.
func TestAStreamLeavesAtOnce(t *testing.T) {
	t.Parallel()
	for format, header := range map[string]string{"jsonl": "", "csv": "id,name\n"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.Options{})
			w.write("form.yaml", fmt.Sprintf("version: 1\nkey: '{id}'\nassign: [{organization: '%s'}]\nlead: {type_key: t, type_label: T, content: {name: '{name}'}}\n", sandbox.Organizations()[0].ID))
			c := w.waits("import", "-m", "form.yaml", "-", "--format", format, "--out", "none", "--min-rows", "2")
			submit := func(text string) {
				if _, err := c.in.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			submit(header)
			for n := 1; n <= 4; n++ {
				if submit(map[string]string{"jsonl": fmt.Sprintf(`{"id":"%d","name":"Ann"}`+"\n", n), "csv": fmt.Sprintf("%d,Ann\n", n)}[format]); n == 1 {
					time.Sleep(2 * time.Second) // long enough for it to leave, if it were not held back
					if leads, err := w.service.Leads(); len(leads) > 0 || err != nil {
						t.Fatalf("%d leads, %v", len(leads), err)
					}
					continue
				}
				eventually(t, fmt.Sprintf("row %d is a lead", n), func() bool {
					leads, err := w.service.Leads()
					return err == nil && len(leads) == n
				})
			}
			c.in.Close()
			if err := c.Wait(); err != nil {
				t.Errorf("%v\n%s", err, c.said.String())
			}
		})
	}
}
