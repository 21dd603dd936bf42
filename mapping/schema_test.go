package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// places are the objects of the schema that list their keys, and a mapping file
// that has such an object, with a verb for what is in it.
var places = map[string]string{
	"#": "version: 1\n%s\n", "#/…/target": "version: 1\ntarget: {%s}\n",
	"#/$defs/source": "version: 1\nsource: {%s}\n", "#/$defs/lead": "version: 1\nlead: {%s}\n",
	"#/$defs/valueObject":       "version: 1\nlead: {type_key: {%s}}\n",
	"#/$defs/identityObject":    "version: 1\nkey: {%s}\n",
	"#/$defs/externalID":        "version: 1\nlead: {external_id: {%s}}\n",
	"#/$defs/contentObject":     "version: 1\nlead: {content: {a: {from: b, %s}}}\n",
	"#/$defs/statusObject":      "version: 1\nlead: {status: {from: b, %s}}\n",
	"#/$defs/identityPart":      "version: 1\nkey: {join: [{%s}]}\n",
	"#/$defs/partObject":        "version: 1\nlead: {content: {a: {first: [{from: b, %s}]}}}\n",
	"#/$defs/memberObject":      "version: 1\nlead: {content: {a: {list: [{from: b, %s}]}}}\n",
	"#/$defs/tableFile":         "version: 1\ntables: {a: {file: b.csv, %s}}\n",
	"#/$defs/restObject":        "version: 1\nlead: {content: {'*': {%s}}}\n",
	"#/$defs/restObject/…/rest": "version: 1\nlead: {content: {'*': {rest: {%s}}}}\n",
	"#/$defs/assignment":        "version: 1\nassign: [{%s}]\n",
	"#/$defs/test":              "version: 1\ntests: [{%s}]\n",
	"#/$defs/test/…/request":    "version: 1\ntests: [{row: {}, request: {%s}}]\n",

	"#/$defs/test/…/request/…/locationSearch": "version: 1\ntests: [{row: {}, request: {locationSearch: {%s}}}]\n",
}

// keysOf collects the keys of the schema by place; those of the branches of a
// oneOf belong to one place.
func keysOf(keys map[string][]string, place string, s any) {
	schema, _ := s.(map[string]any)
	if branches, ok := schema["oneOf"].([]any); ok {
		for _, branch := range branches {
			keysOf(keys, place, branch)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, member := range properties {
		if schema["additionalProperties"] == false {
			keys[place] = append(keys[place], name)
		}
		keysOf(keys, place+"/…/"+name, member)
	}
	defs, _ := schema["$defs"].(map[string]any)
	for name, def := range defs {
		keysOf(keys, place+"/$defs/"+name, def)
	}
}

// knownHere is what the parser says it knows at a place.
func knownHere(t *testing.T, file string) []string {
	t.Helper()
	_, err := Parse("m", []byte(file), nil)
	var es Errors
	if !errors.As(err, &es) {
		t.Fatalf("%s was taken", file)
	}
	for _, e := range es {
		if list, found := strings.CutPrefix(e.Hint, "known here: "); found {
			return slices.Sorted(slices.Values(strings.Split(list, ", ")))
		}
	}
	t.Fatalf("%s: %v", file, err)
	return nil
}

// nothingNear is no word of the language, nor near to one.
const nothingNear = "qqqqqqqqqqqqqqqq"

// faults 105
func TestTheSchemaKnowsTheKeysThatTheParserKnows(t *testing.T) {
	inSchema := map[string][]string{}
	keysOf(inSchema, "#", newSchemaChecker(t).root)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(places)), slices.Sorted(maps.Keys(inSchema))); diff != "" {
		t.Fatalf("places (-test +schema):\n%s", diff)
	}
	for place, file := range places {
		keys := slices.Sorted(slices.Values(inSchema[place]))
		if diff := cmp.Diff(knownHere(t, fmt.Sprintf(file, nothingNear+": x")), slices.Compact(keys)); diff != "" {
			t.Errorf("keys of %s (-parser +schema):\n%s", place, diff)
		}
	}
}

func TestTheSchemaKnowsTheWordsThatTheParserKnows(t *testing.T) {
	c := newSchemaChecker(t)
	words := func(pointer string) []string {
		var words []string
		for _, w := range c.at(pointer)["enum"].([]any) {
			words = append(words, w.(string))
		}
		return words
	}
	sorted := func(words []string) []string { return slices.Sorted(slices.Values(words)) }
	for pointer, file := range map[string]string{
		"#/$defs/source/properties/format": "version: 1\nsource: {format: %s}\n",
		"#/$defs/as":                       "version: 1\nlead: {content: {a: {from: b, as: %s}}}\n",
		"#/$defs/onInvalid":                "version: 1\nlead: {content: {a: {from: b, on_invalid: %s}}}\n",
		"#/$defs/empty":                    "version: 1\nlead: {content: {a: {from: b, empty: %s}}}\n",
	} {
		if diff := cmp.Diff(knownHere(t, fmt.Sprintf(file, nothingNear)), sorted(words(pointer))); diff != "" {
			t.Errorf("words of %s (-parser +schema):\n%s", pointer, diff)
		}
	}

	inSchema := words("#/$defs/step/anyOf/0")
	for i := 1; i < len(c.at("#/$defs/step")["anyOf"].([]any)); i++ {
		pattern := c.at(fmt.Sprintf("#/$defs/step/anyOf/%d", i))["pattern"].(string)
		inSchema = append(inSchema, regexp.MustCompile(`^\^([a-z0-9]+):`).FindStringSubmatch(pattern)[1])
	}
	var known []string
	for _, s := range steps {
		known = append(known, s.name())
	}
	if diff := cmp.Diff(known, inSchema); diff != "" {
		t.Errorf("steps (-parser +schema):\n%s", diff)
	}

	known = nil
	for _, f := range formats {
		known = append(known, f.name)
	}
	if diff := cmp.Diff(known, words("#/$defs/format/anyOf/0")); diff != "" {
		t.Errorf("formats (-parser +schema):\n%s", diff)
	}

	known = nil
	for _, s := range statuses {
		known = append(known, s.key, s.label)
	}
	if diff := cmp.Diff(sorted(known), sorted(words("#/$defs/statusName/anyOf/0"))); diff != "" {
		t.Errorf("statuses (-parser +schema):\n%s", diff)
	}
	pattern := regexp.MustCompile(c.at("#/$defs/statusName/anyOf/1")["pattern"].(string))
	for _, s := range known {
		if !pattern.MatchString(strings.ToUpper(s)) || pattern.MatchString(s+"x") {
			t.Errorf("the pattern of statuses misjudges %q", s)
		}
	}
}

// goodFiles are mapping files that use the whole language.
func goodFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		"nothing": "version: 1\n", "version as a text": "version: '1'\n",
		"JSON":      `{"version": 1, "key": "{id}", "lead": {"content": {"a": {"from": "{b}", "required": true}}}}`,
		"tenFields": tenFields, "people": people,
		"source":   "version: 1\nsource: {format: csv, delimiter: ';', encoding: windows-1252, header: false, columns: [id, first, 3], 'null': ['', NULL, n/a, 0]}\n",
		"tab":      "version: 1\nsource: {format: tsv, delimiter: tab, header: true}\n",
		"sheet":    "version: 1\nsource: {format: xlsx, sheet: Leads}\n",
		"frame":    "version: 1\nsource: {skip_rows: 3, skip_footer: 2, footer: /^Grand total/, comment: '#', escape: '\\'}\n",
		"quote":    "version: 1\nsource: {quote: none}\n",
		"keys":     "version: 1\nnamespace: dealers.2024\nkey: {from: '{id}-{n}', apply: [lower], format: /a/}\nlead_id: '{lead}'\nskip_if: 'test == \"yes\"'\n",
		"statuses": "version: 1\nlead: {status: CLOSED | won}\n",
		"status":   "version: 1\nlead: {status: {from: '{s}', map: {a: Open, b: Closed | Won, c: ''}, else: '{}', default: New}}\n",
		"assign": "version: 1\nassign:\n- organization: {from: '{o}', map: {a: b}, else: '{}'}\n- {locator: l, type: radius, search_text: '{a}'}\n" +
			"- {locator: '{l}', type: regions-radius, search_text: {from: '{a}', default: Berlin}}\n- {locator: l, type: regions, postal_code: 01234}\n",
		"values": "version: 1\nlead:\n  content:\n    a: {from: '{a}', apply: [trim, lower, upper, title, squeeze, digits, 'e164:US', 'date:DD.MM.YYYY', 'truncate:80', 'split:,:-1', 'split:::1'], empty: clear}\n" +
			"    b: {from: '{b}', format: '/^[0-9]{5}$/'}\n    c: {from: '{c}', format: email, required: true}\n    d: {expr: 'int(score) * 10', as: number}\n    e: true\n    f: 1.5\n    '*': rest\n",
		"tables": "version: 1\ntables: {a: {Won: closedWon}, b: {x: 1}}\nlead: {status: {from: '{s}', map: a}, content: {n: {from: '{n}', map: b, else: '{}'}}}\n",
		"parts": "version: 1\nkey: {join: ['{a}', {from: '{b}', apply: [lower]}, {join: [x, '{c}']}], sep: '/'}\nassign: [{locator: l, type: radius, search_text: {join: ['{a}', {from: '{b}', default: x}], sep: ', '}}]\n" +
			"lead:\n  status: {first: ['{a}', open], map: {x: open}, else: '{}', pull: {Open: x}, conflict: {closedWon: service}}\n  content:\n    a: {first: ['{a}', {from: '{b}', on_invalid: drop, format: email}], default: x, empty: clear}\n" +
			"    b: {object: {c: '{c}', d: {object: {e: {list: [x, {from: '{f}', as: number}]}}}}, required: true, empty: clear}\n    c: {list: ['{a}', {object: {b: '{b}'}}], on_invalid: drop}\n    '*': {rest: {except: [ssn, 'tmp_*'], prefix: crm_}}\n",
		"steps": "version: 1\nlead:\n  content:\n    a: {from: '{a}', apply: ['e164:{country}', 'replace:/(a)\\/b/$1\\//', 'replace:/x//', 'extract:/a(b)/', 'date:YYYY-MM-DD|unix|D. MMMM YYYY@de']}\n",
		"tests": "version: 1\ntests:\n- {row: {a: 7, b: null, c.d: x}, request: {organizationID: o, typeKey: k, typeLabel: l, status: open, content: {a: 1, b: [x, {}]}}}\n" +
			"- row: {}\n  request: {locatorID: l, locationSearch: {searchText: a, postalCode: 01234}}\n",
	}
	samples, err := filepath.Glob("../samples/*.yaml")
	exports, errExports := filepath.Glob("../samples/*/*.yaml")
	if err != nil || errExports != nil || len(samples) == 0 || len(exports) == 0 {
		t.Fatalf("no samples: %v %v", err, errExports)
	}
	for _, name := range append(samples, exports...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nversion:") || strings.HasPrefix(string(data), "version:") {
			files[name] = string(data)
		}
	}
	return files
}

func TestTheSchemaTakesWhatTheParserTakes(t *testing.T) {
	c := newSchemaChecker(t)
	for name, file := range goodFiles(t) {
		if _, err := Parse("m", []byte(file), nil); err != nil {
			t.Errorf("%s: the parser says %v", name, err)
		}
		if !c.takes(asEditor(t, file)) {
			t.Errorf("%s: the schema refuses it", name)
		}
	}
}

func TestTheSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	c := newSchemaChecker(t)
	for _, file := range []string{
		"key: a\n", "version: 2\n", "version: 1\nkeys: a\n", "version: 1\nkey: ''\n", "version: 1\nkey: [a]\n", "version: 1\nkey: {}\n",
		"version: 1\nkey: id\n", "version: 1\nlead_id: id\n", "version: 1\nlead: {external_id: {from: id}}\n", "version: 1\nkey: '{{id}'\n",
		"version: 1\nkey: {from: '{a}', map: {b: c}}\n", "version: 1\nkey: {from: '{a}', default: b}\n", "version: 1\nkey: {expr: a}\n",
		"version: 1\nsource: {}\nassign: []\n", "version: 1\nsource: {format: json}\n", "version: 1\nsource: {delimiter: ab}\n", "version: 1\nsource: {delimiter: '\"'}\n",
		"version: 1\nsource: {format: jsonl, delimiter: ;}\n", "version: 1\nsource: {format: jsonl, header: false, columns: [a]}\n",
		"version: 1\nsource: {format: xlsx, delimiter: ;}\n",
		"version: 1\nsource: {skip_rows: -1}\n", "version: 1\nsource: {skip_footer: 1001}\n", "version: 1\nsource: {footer: Total}\n", "version: 1\nsource: {comment: ' '}\n",
		"version: 1\nsource: {comment: ''}\n", "version: 1\nsource: {escape: '\"'}\n", "version: 1\nsource: {escape: '\\', quote: none}\n",
		"version: 1\nsource: {format: jsonl, skip_rows: 1}\n", "version: 1\nsource: {format: xlsx, comment: '#'}\n", "version: 1\nsource: {format: xlsx, encoding: utf-8}\n",
		"version: 1\nkey: {from: '{a}', as: number}\n", "version: 1\nkey: {from: '{a}', empty: clear}\n", "version: 1\nlead: {status: {from: '{a}', as: json}}\n",
		"version: 1\nsource: {header: no}\n", "version: 1\nsource: {header: false}\n", "version: 1\nsource: {columns: [a]}\n", "version: 1\nsource: {header: false, columns: [a, a]}\n",
		"version: 1\nsource: {header: false, columns: [' ']}\n", "version: 1\nsource: {'null': x}\n",
		"version: 1\nnamespace: a b\n", "version: 1\nnamespace: ''\n", "version: 1\nskip_if: [a]\n",
		"version: 1\nlead: {type_key: {from: a, expr: b}}\n", "version: 1\nlead: {type_key: {from: a, else: b}}\n", "version: 1\nlead: {type_key: {map: {a: b}}}\n", "version: 1\nlead: {type_key: {from: a, map: [a]}}\n",
		"version: 1\nlead: {type_key: {from: a, required: yes please}}\n", "version: 1\nlead: {type_key: {from: a, apply: lower}}\n", "version: 1\nlead: {type_key: {from: a, apply: []}}\n",
		"version: 1\nlead: {type_key: {from: a, apply: [lowercase]}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['e164:us']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['e164: US']}}\n", "version: 1\nlead: {type_key: {from: a, apply: [e164: US]}}\n",
		"version: 1\nlead: {type_key: {from: a, apply: ['date:']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['date: DD.MM.YYYY']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['truncate:0']}}\n",
		"version: 1\nlead: {type_key: {from: a, apply: ['split::1']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['split:,:0']}}\n", "version: 1\nlead: {type_key: {from: a, apply: [trim:]}}\n",
		"version: 1\nlead: {type_key: {from: a, format: mail}}\n", "version: 1\nlead: {type_key: {from: a, format: '/a'}}\n", "version: 1\nlead: {type_key: {from: a, format: //}}\n", "version: 1\nlead: {type_key: {from: a, format: /a/i}}\n",
		"version: 1\nlead: {type_key: {from: a, format: /" + strings.Repeat("a", 1025) + "/}}\n",
		"version: 1\nlead: {status: won}\n", "version: 1\nlead: {status: {from: '{a}', map: {b: won}}}\n", "version: 1\nlead: {status: {from: '{a}', default: won}}\n",
		"version: 1\nlead: {name: a}\n", "version: 1\nlead: {content: [a]}\n", "version: 1\nlead: {content: {' ': a}}\n", "version: 1\nlead: {content: {a: }}\n", "version: 1\nlead: {content: {'*': all}}\n",
		"version: 1\nlead: {content: {a: {from: b, as: int}}}\n", "version: 1\nlead: {content: {a: {from: b, empty: drop}}}\n",
		"version: 1\ntables: {a: b}\n", "version: 1\ntables: {a: {' ': x}}\n", "version: 1\ntables: {a: {file: a/b.csv, key: k, value: v}}\n", "version: 1\ntables: {a: {file: b.csv, key: k}}\n", "version: 1\ntables: {a: {x: [y]}}\n",
		"version: 1\nlead: {content: {a: {first: []}}}\n", "version: 1\nlead: {content: {a: {first: [b], join: [c]}}}\n", "version: 1\nlead: {content: {a: {join: [{object: {b: c}}]}}}\n",
		"version: 1\nlead: {content: {a: {from: b, sep: c}}}\n", "version: 1\nlead: {content: {a: {object: {}}}}\n", "version: 1\nlead: {content: {a: {object: {b: c}, apply: [lower]}}}\n",
		"version: 1\nlead: {content: {a: {list: [{from: '{b}', empty: clear}]}}}\n", "version: 1\nlead: {content: {a: {first: [{from: '1', as: number}]}}}\n", "version: 1\nlead: {type_key: {object: {a: b}}}\n",
		"version: 1\nlead: {type_key: {from: '{a}', on_invalid: drop}}\n", "version: 1\nlead: {content: {a: {from: '{a}', on_invalid: drop, required: true}}}\n",
		"version: 1\nkey: {first: ['{a}']}\n", "version: 1\nkey: {join: [{from: '{a}', default: x}]}\n", "version: 1\nkey: {join: ['{a}'], from: '{b}'}\n",
		"version: 1\nlead: {status: {from: '{a}', map: {b: open}, pull: {won: b}}}\n", "version: 1\nlead: {status: {from: '{a}', conflict: {open: mine}}}\n",
		"version: 1\nlead: {content: {'*': {rest: {}, x: y}}}\n", "version: 1\nlead: {content: {'*': {rest: {except: []}}}}\n",
		"version: 1\nlead: {type_key: {from: a, apply: ['replace:/a/']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['replace:a/b/']}}\n", "version: 1\nlead: {type_key: {from: a, apply: ['extract:/a/']}}\n",
		"version: 1\nassign: [{}]\n", "version: 1\nassign: [{organization: a, locator: b}]\n", "version: 1\nassign: [{locator: a, type: radius}]\n", "version: 1\nassign: [{locator: a, search_text: b}]\n",
		"version: 1\nassign: [{locator: a, type: regions, search_text: b}]\n", "version: 1\nassign: [{locator: a, type: radius, postal_code: b}]\n", "version: 1\nassign: [{locator: a, type: region, postal_code: b}]\n",
		"version: 1\ntests: []\n", "version: 1\ntests: [{row: {}}]\n", "version: 1\ntests: [{row: {a: [b]}, request: {}}]\n", "version: 1\ntests: [{row: {}, request: {typekey: a}}]\n",
		"version: 1\ntests: [{row: {}, request: {status: [a]}}]\n", "version: 1\ntests: [{row: {}, request: {content: a}}]\n", "[a]\n",
	} {
		if _, err := Parse("m", []byte(file), nil); err == nil {
			t.Errorf("the parser takes\n%s", file)
		}
		if c.takes(asEditor(t, file)) {
			t.Errorf("the schema takes\n%s", file)
		}
	}
}

// schemaChecker holds the mapping file's JSON Schema: as an object, and compiled.
type schemaChecker struct {
	t     testing.TB
	root  map[string]any
	rules *jsonschema.Schema
}

func newSchemaChecker(t testing.TB) schemaChecker {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	rules, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schemaChecker{t, doc.(map[string]any), rules}
}

// at is the part of the schema that a pointer such as #/$defs/text names.
func (c schemaChecker) at(pointer string) map[string]any {
	c.t.Helper()
	var here any = c.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "#"), "/") {
		switch parent := here.(type) {
		case map[string]any:
			if name != "" {
				here = parent[name]
			}
		case []any:
			i, _ := strconv.Atoi(name)
			here = parent[i]
		}
	}
	found, ok := here.(map[string]any)
	if !ok {
		c.t.Fatalf("the schema has no %s", pointer)
	}
	return found
}

// takes reports whether a value is valid by the schema.
func (c schemaChecker) takes(v any) bool { return c.rules.Validate(v) == nil }

// asEditor is what an editor makes of a mapping file before it asks the schema.
func asEditor(t testing.TB, file string) any {
	t.Helper()
	docs, err := load([]byte(file))
	if err != nil || len(docs) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	return plainValue(docs[0])
}

func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			object[n.Content[i].Value] = plainValue(n.Content[i+1])
		}
		return object
	case yaml.SequenceNode:
		list := []any{}
		for _, child := range n.Content {
			list = append(list, plainValue(child))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true"
	case "!!int", "!!float":
		var number float64
		if _, err := fmt.Sscan(n.Value, &number); err != nil {
			return math.MaxFloat64
		}
		return number
	}
	return n.Value
}
