package mapping

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

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
