package mapping

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tenFields is a mapping of ten content keys with a table, a format and a template.
const tenFields = `
version: 1
key: "{id}"
assign: [{organization: "{org}"}]
lead:
  type_key: contact-form
  type_label: Contact form
  status: {from: "{stage}", map: {Working: inProgress, Dead: closedNotInterested}, else: open}
  content:
    name: "{first} {last}"
    email: {from: "{email}", apply: [lower], format: email, required: true}
    phone: "{phone}"
    street: "{street}"
    city: "{city}"
    postalCode: "{zip}"
    country: {from: "{country}", default: DE}
    company: "{company}"
    message: "{message}"
    source: website
`

func tenCells() cells {
	return cells{
		"id", "4711", "org", "0b1c2d3e-0000-4000-8000-000000000001", "stage", "Working", "first", "Ann", "last", "Lee",
		"email", "Ann.Lee@Example.com", "phone", "+49 30 123456", "street", "Hauptstr. 1", "city", "Berlin", "zip", "01234",
		"country", "", "company", "Acme GmbH", "message", "Please call me back, I would like to have an offer.",
	}
}

func TestOneBindingServesManyGoroutines(t *testing.T) {
	file := tenFields + "    twice: {expr: 'string(int(id) * 2) + first'}\n    dialled: {from: '{phone}', apply: ['e164:DE']}\n"
	b, values := tenCells().bind(t, parse(t, file), false)
	var want Record
	if problems := b.Map(values, Env{}, &want); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var rec Record
			for range 100 {
				b.Map(values, Env{}, &rec)
			}
			if diff := cmp.Diff(want, rec); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
	wg.Wait()
}

func BenchmarkMap(b *testing.B) {
	withoutKey := strings.Replace(tenFields, "key: \"{id}\"\n", "", 1)
	withExpr := tenFields + "    greeting: {expr: 'country == \"DE\" ? \"Hallo \" + first : \"Hello \" + first'}\n"
	withSkip := tenFields + "skip_if: 'stage == \"Test\"'\n"
	withRest := tenFields + "    \"*\": rest\n"
	for name, file := range map[string]string{
		"key": tenFields, "default key": withoutKey, "an expression more": withExpr, "skip_if more": withSkip, "rest": withRest,
	} {
		b.Run(name, func(b *testing.B) {
			binding, values := tenCells().bind(b, parse(b, file), false)
			var rec Record
			b.ReportAllocs()
			for b.Loop() {
				if binding.Map(values, Env{}, &rec) != nil {
					b.Fatal("the row has problems")
				}
			}
		})
	}
}
