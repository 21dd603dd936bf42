package mapping

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

func recordOf(t *rapid.T, file string, names, values []string, own int) Record {
	m, err := Parse("m", []byte(file), nil)
	must.Do(t, err)
	b, err := m.Bind("in", Columns{Names: names, Own: own})
	if b == nil {
		t.Fatal(err)
	}
	var rec Record
	if problems := b.Map(values, Env{}, &rec); problems != nil {
		t.Fatalf("problems: %v", problems)
	}
	return rec
}

func TestTheDefaultKeyDoesNotDependOnTheOrderOfColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, 8, rapid.ID[string]).Draw(t, "names")
		values := rapid.SliceOfN(rapid.String(), len(names), len(names)).Draw(t, "values")
		key := recordOf(t, "version: 1\n", names, values, len(names)).Key
		if len(key) != len("row-")+32 || !strings.HasPrefix(key, "row-") {
			t.Fatalf("the key %q has another form", key)
		}

		seed := rapid.Uint64().Draw(t, "seed")
		swap := func(i, j int) { names[i], names[j], values[i], values[j] = names[j], names[i], values[j], values[i] }
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), swap)
		if got := recordOf(t, "version: 1\n", names, values, len(names)).Key; got != key {
			t.Fatalf("in another order %s, want %s", got, key)
		}

		more := append(append([]string{}, names...), "a.path", "leer")
		if got := recordOf(t, "version: 1\n", more, append(values, "x", "y"), len(names)).Key; got != key {
			t.Fatalf("with paths %s, want %s", got, key)
		}
	})
}

func TestTheDefaultKeyDependsOnEachCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{1,3}`)
		names := rapid.SliceOfNDistinct(word, 2, 4, rapid.ID[string]).Draw(t, "names")
		cell := rapid.StringMatching(`[ab]{0,3}`)
		values := rapid.SliceOfN(cell, len(names), len(names)).Draw(t, "values")
		others := rapid.SliceOfN(cell, len(names), len(names)).Draw(t, "others")
		one := recordOf(t, "version: 1\n", names, values, len(names)).Key
		two := recordOf(t, "version: 1\n", names, others, len(names)).Key
		if (one == two) != (fmt.Sprint(values) == fmt.Sprint(others)) {
			t.Fatalf("%q and %q: %s and %s", values, others, one, two)
		}
	})
}

// m30
func TestConstantsStayTheTextAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		constant := rapid.OneOf(
			rapid.StringMatching(`0?[0-9]{1,25}`),
			rapid.StringMatching(`[0-9]\.[0-9]{1,3}e[0-9]`),
			rapid.StringMatching(`0[xob][01]{1,5}`),
			rapid.SampledFrom([]string{"yes", "no", "on", "off", "true", "False", ".inf", ".NaN", "2001-01-01", "12:30:45", "1_000", "+1"}),
		).Draw(t, "constant")
		rec := recordOf(t, "version: 1\nlead: {content: {x: "+constant+"}}\n", nil, nil, 0)
		if rec.Content[0].Value != constant {
			t.Fatalf("%q became %q", constant, rec.Content[0].Value)
		}
	})
}

func TestAnyTextSurvivesAsConstantAndAsCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[^\p{C}\p{Z}{]{1,20}`).Draw(t, "text")
		quoted, err := yaml.Marshal(map[string]any{"version": "1", "lead": map[string]any{"content": map[string]string{"x": s, "y": "{c}"}}})
		must.Do(t, err)
		rec := recordOf(t, string(quoted), []string{"c"}, []string{s}, 1)
		if x, y := rec.Content[0].Value, rec.Content[1].Value; x != s || y != s {
			t.Fatalf("%q became %q and %q", s, x, y)
		}
	})
}

func TestKeysAreTrimmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.StringMatching(`[ \t\r\n\x{A0}\x{200B}\x{FEFF}\x{AD}]{0,4}`)
		word := rapid.StringMatching(`[^\p{Z}\p{C}/]([a-z ]{0,5}[^\p{Z}\p{C}])?`).Filter(func(s string) bool { return rowkey.Trim(s) == s && rowkey.Effective("", s) == s }).Draw(t, "word")
		cell := space.Draw(t, "before") + word + space.Draw(t, "after")
		for _, file := range []string{"version: 1\nkey: '{id}'\n", "version: 1\nkey: ' {id} '\n", "version: 1\nlead: {external_id: '{id}'}\n"} {
			if got := recordOf(t, file, []string{"id"}, []string{cell}, 1).Key; got != word {
				t.Fatalf("%q became %q, want %q", cell, got, word)
			}
		}
	})
}
