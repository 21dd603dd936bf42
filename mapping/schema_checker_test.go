package mapping

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// schemaChecker tells whether values are valid by a JSON Schema, of which it knows what
// the mapping file's uses.
type schemaChecker struct {
	t    testing.TB
	root map[string]any
}

func newSchemaChecker(t testing.TB) schemaChecker {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return schemaChecker{t, root}
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

// takes reports whether v is valid by the schema s.
func (c schemaChecker) takes(s any, v any) bool {
	if yes, ok := s.(bool); ok {
		return yes
	}
	schema := s.(map[string]any)
	for keyword, argument := range schema {
		if !c.holds(schema, keyword, argument, v) {
			return false
		}
	}
	return true
}

func (c schemaChecker) holds(schema map[string]any, keyword string, argument, v any) bool {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	text, isText := v.(string)
	takes := func(s any) bool { return c.takes(s, v) }
	switch keyword {
	case "$schema", "$id", "$defs", "title", "description", "examples", "then":
	case "$ref":
		return takes(c.at(argument.(string)))
	case "allOf":
		return !slices.ContainsFunc(argument.([]any), func(s any) bool { return !takes(s) })
	case "anyOf":
		return slices.ContainsFunc(argument.([]any), takes)
	case "oneOf":
		return slices.ContainsFunc(argument.([]any), takes) &&
			len(slices.DeleteFunc(slices.Clone(argument.([]any)), func(s any) bool { return !takes(s) })) == 1
	case "if":
		return !takes(argument) || takes(schema["then"])
	case "type":
		types, several := argument.([]any)
		if !several {
			types = []any{argument}
		}
		return slices.Contains(types, any(typeOf(v)))
	case "enum":
		return slices.ContainsFunc(argument.([]any), func(e any) bool { return reflect.DeepEqual(e, v) })
	case "const":
		return reflect.DeepEqual(argument, v)
	case "pattern":
		return !isText || regexp.MustCompile(argument.(string)).MatchString(text)
	case "minLength":
		return !isText || utf8.RuneCountInString(text) >= int(argument.(float64))
	case "maxLength":
		return !isText || utf8.RuneCountInString(text) <= int(argument.(float64))
	case "minItems":
		return !isList || len(list) >= int(argument.(float64))
	case "uniqueItems":
		for i := range list {
			if slices.ContainsFunc(list[:i], func(e any) bool { return reflect.DeepEqual(e, list[i]) }) {
				return false
			}
		}
	case "items":
		return !slices.ContainsFunc(list, func(e any) bool { return !c.takes(argument, e) })
	case "required":
		return !isObject || hasAll(object, argument)
	case "dependentRequired":
		for name, needed := range argument.(map[string]any) {
			if _, found := object[name]; found && !hasAll(object, needed) {
				return false
			}
		}
	case "properties", "additionalProperties":
		return c.holdsMembers(schema, keyword, object)
	case "propertyNames":
		for name := range object {
			if !c.takes(argument, name) {
				return false
			}
		}
	default:
		c.t.Fatalf("the checker does not know the keyword %s", keyword)
	}
	return true
}

func (c schemaChecker) holdsMembers(schema map[string]any, keyword string, object map[string]any) bool {
	properties, _ := schema["properties"].(map[string]any)
	for name, member := range object {
		s, named := properties[name]
		if !named {
			s = schema["additionalProperties"]
		}
		if named == (keyword == "properties") && !c.takes(s, member) {
			return false
		}
	}
	return true
}

func hasAll(object map[string]any, names any) bool {
	return !slices.ContainsFunc(names.([]any), func(name any) bool {
		_, found := object[name.(string)]
		return !found
	})
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

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
