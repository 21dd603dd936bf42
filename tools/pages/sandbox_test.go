package pages

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are texts that break pages which are not made with care.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `{{.}} ${x} %s`, "a\u202egpj.exe", strings.Repeat("wide", 60),
	"مرحبا بالعالم", "日本語のとても長い名前で改行されないはずのもの", "👩‍👩‍👧‍👦 family", "\u200b\u200bhidden", "o'Neil & \"Sons\"", "</td></tr></table>", "=1+1",
}

const leadsMapping = `version: 1
key: "{id}"
assign:
  - organization: 5bb7fb0f-d8d9-415b-8725-460b8ce504db
lead:
  type_key: fair
  type_label: Fair
  content:
    name: "{name}"
    email: "{email}"
    message: "{message}"
`

// rows are a file of leads: ordinary ones and, where asked for, hostile texts.
func rows(n int, texts ...string) string {
	var b strings.Builder
	b.WriteString("id,name,email,message\n")
	for i := range n {
		text := "Please call me"
		if len(texts) > 0 {
			text = texts[i%len(texts)]
		}
		quoted := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		name := fmt.Sprintf("Person %d", i)
		if len(texts) > 0 && i < len(texts) {
			name = quoted
		}
		fmt.Fprintf(&b, "K-%04d,%s,person%d@example.com,%s\n", i, name, i, quoted)
	}
	return b.String()
}

// The page of the sandbox in every state: empty, full of texts that mean harm, searches for leads and requests, one lead.
func TestSandboxPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := newDesk(t)
	address, settings := d.start("sandbox", "--addr", "127.0.0.1:0", "--web", "--faults", "drop-stored/40,429/17,retry-after=0,update.slow/50:1ms")
	d.take(settings)
	b.inspect(t, "sandbox-empty", address)
	d.write("leads.yaml", leadsMapping)
	d.write("leads.csv", rows(130, hostile...))
	d.run(5, "import", "-m", "leads.yaml", "leads.csv", "--out", "run", "--yes")
	d.write("leads.csv", strings.ReplaceAll(rows(130, hostile...), "example.com", "example.org"))
	d.run(5, "sync", "-m", "leads.yaml", "leads.csv", "--out", "run", "--yes")
	page := strings.TrimSuffix(strings.SplitAfter(address, "?")[0], "?")
	b.inspect(t, "sandbox", page)
	b.inspect(t, "sandbox-search", page+"?q=person7")
	b.inspect(t, "sandbox-requests", strings.TrimSuffix(page, "/")+"/requests?q=no+answer")
	b.inspect(t, "sandbox-lead", b.first(t, page+"?q=person7@", "#leads td a"))
}
