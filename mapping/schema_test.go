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

	"leadferry/internal/testsupport/must"
)

// places maps each object of the schema that lists its keys to a mapping file with that object. The content of the
// object is %s.
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

// keysOf collects the keys of the schema by place. The branches of a oneOf are one place.
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

// knownHere returns the words that the parser says it knows at a place.
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

// nothingNear is not a word of the language, and not similar to one.
const nothingNear = "qqqqqqqqqqqqqqqq"

// faults 105
func TestTheSchemaKnowsTheKeysThatTheParserKnows(t *testing.T) {
	inSchema := map[string][]string{}
	keysOf(inSchema, "#", newSchemaChecker(t).root)
	must.Same(t, slices.Sorted(maps.Keys(places)), slices.Sorted(maps.Keys(inSchema)), "places")
	for place, file := range places {
		keys := slices.Sorted(slices.Values(inSchema[place]))
		must.Same(t, knownHere(t, fmt.Sprintf(file, nothingNear+": x")), slices.Compact(keys), place)
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
		must.Same(t, knownHere(t, fmt.Sprintf(file, nothingNear)), sorted(words(pointer)), pointer)
	}

	inSchema := words("#/$defs/step/anyOf/0")
	for i := 1; i < len(c.at("#/$defs/step")["anyOf"].([]any)); i++ {
		pattern := c.at(fmt.Sprintf("#/$defs/step/anyOf/%d", i))["pattern"].(string)
		inSchema = append(inSchema, regexp.MustCompile(`^\^([a-z0-9]+):`).FindStringSubmatch(pattern)[1])
	}
	var known []string
	for _, s := range steps {
		name, _, _ := strings.Cut(s.form, ":")
		known = append(known, name)
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

// schemaFiles are mapping files that the schema and the parser take, and those that both refuse.
type schemaFiles struct {
	Good    map[string]string
	Refused []string
}

func schemaCases(t *testing.T) (cases schemaFiles) {
	t.Helper()
	readCases(t, "schema.yaml", &cases)
	return cases
}

// goodFiles are mapping files that use the whole language.
func goodFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{"tenFields": tenFields, "people": people}
	maps.Copy(files, schemaCases(t).Good)
	samples, err := filepath.Glob("../samples/*.yaml")
	exports, errExports := filepath.Glob("../samples/*/*.yaml")
	if err != nil || errExports != nil || len(samples) == 0 || len(exports) == 0 {
		t.Fatalf("no samples: %v %v", err, errExports)
	}
	for _, name := range append(samples, exports...) {
		data, err := os.ReadFile(name)
		must.Do(t, err)
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
	for _, file := range schemaCases(t).Refused {
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
	must.Do(t, err)
	compiler := jsonschema.NewCompiler()
	must.Do(t, compiler.AddResource("schema.json", doc))
	rules, err := compiler.Compile("schema.json")
	must.Do(t, err)
	return schemaChecker{t, doc.(map[string]any), rules}
}

// at returns the part of the schema that a pointer names, for example #/$defs/text.
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

// asEditor returns what an editor makes of a mapping file before it asks the schema.
func asEditor(t testing.TB, file string) any {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Load([]byte(file), &doc); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return plainValue(doc.Content[0])
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
