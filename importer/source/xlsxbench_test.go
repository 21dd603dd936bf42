package source_test

import (
	"fmt"
	"strings"
	"testing"

	"leadferry/importer/source"
)

// benchXLSX holds the rows of benchCSV, each text once among the shared ones,
// with a date and a number.
func benchXLSX(b *testing.B) []byte {
	book := workbook{formats: []string{"22"}}
	known := map[string]int{}
	text := func(s string) string {
		if _, ok := known[s]; !ok {
			known[s] = len(known)
			book.texts = append(book.texts, "<t>"+s+"</t>")
		}
		return fmt.Sprintf(`<c t="s"><v>%d</v></c>`, known[s])
	}
	var rows strings.Builder
	rows.WriteString(inline(strings.Split("external_id,created_at,first_name,last_name,email,phone,postal_code,city,organization_id,status,interest,score", ",")...))
	for i := range benchRows {
		rows.WriteString("<row>" + text(fmt.Sprintf("L%08d", i)) + fmt.Sprintf(`<c s="1"><v>%f</v></c>`, 46085+float64(i)/benchRows))
		for _, s := range []string{"Ada", "Brook", fmt.Sprintf("ada.brook%d@example.com", i), fmt.Sprintf("+1555%07d", i), fmt.Sprintf("%05d", i), "Oak Hill", fmt.Sprintf("9b2e6c10-0000-4000-8000-%012d", i), "open", "sedan"} {
			rows.WriteString(text(s))
		}
		fmt.Fprintf(&rows, "<c><v>%d</v></c></row>", i)
	}
	book.rows = rows.String()
	return book.bytes(b)
}

func BenchmarkXLSX(b *testing.B) { benchSource(b, source.XLSX, benchXLSX(b)) }
