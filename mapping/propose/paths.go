package propose

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of the paths that are looked for in objects and lists.
const (
	maxPaths    = 60 // of a column
	maxDepth    = 4
	maxElements = 3    // of a list
	maxSearched = 1000 // rows whose objects are searched for paths
)

// expand adds the paths into columns that hold objects or lists, as a reader of
// JSON lines resolves them.
func (t *table) expand() {
	own := t.columns
	t.columns = nil
	for _, c := range own {
		t.columns = append(t.columns, c)
		if c.profile.filled == 0 || c.profile.share(kindObject) < 0.9 {
			continue
		}
		t.expandColumn(c)
	}
	t.setTreesApart()
}

func (t *table) expandColumn(c *column) {
	paths := pathsOf(c)
	cells := make(map[string][]string, len(paths))
	for _, path := range paths {
		if header := c.header + "." + path; nameable(header) && !slices.Contains(t.names, header) {
			cells[path] = make([]string, len(c.cells))
		}
	}
	for i, cell := range c.cells {
		walk(cell, "", 1, func(path, value string) {
			if to := cells[path]; to != nil && !slices.Contains(t.null, value) {
				to[i] = value
			}
		})
	}
	for _, path := range paths {
		if cells[path] != nil {
			t.add(c.header+"."+path, c.header, cells[path])
		}
	}
}

// setTreesApart takes out the object in which Salesforce's trees tell type and
// reference of a record: the references number the records of one export, but
// for those that hold the record's ID.
func (t *table) setTreesApart() {
	kind := slices.IndexFunc(t.columns, func(c *column) bool { return c.header == "attributes.type" })
	if kind < 0 || t.columns[kind].profile.distinct != 1 {
		return
	}
	t.columns = slices.DeleteFunc(t.columns, func(c *column) bool {
		apart := c.header == "attributes" || c.inside == "attributes"
		if apart {
			t.numbered = append(t.numbered, c)
		}
		return apart
	})
}

// pathsOf lists the paths to texts, numbers and the like in a column's objects,
// in the order in which they are first met.
func pathsOf(c *column) []string {
	var paths []string
	seen := map[string]bool{}
	for _, cell := range c.cells[:min(len(c.cells), maxSearched)] {
		walk(cell, "", 1, func(path, _ string) {
			if !seen[path] && len(paths) < maxPaths {
				seen[path] = true
				paths = append(paths, path)
			}
		})
	}
	return paths
}

// walk calls f with path and text of each plain value in the JSON text.
func walk(text, path string, depth int, f func(path, value string)) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	begin, err := d.ReadToken()
	if err != nil || depth > maxDepth {
		return
	}
	list := begin.Kind() == '['
	if !list && begin.Kind() != '{' {
		return
	}
	for i := 0; d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		name := itoa(i)
		if !list {
			key, err := d.ReadToken()
			if err != nil {
				return
			}
			name = key.String()
		}
		value, err := d.ReadValue()
		if err != nil {
			return
		}
		if list && i >= maxElements || name == "" || strings.ContainsAny(name, ".{}") {
			continue
		}
		below(value.Clone(), path+name, depth, f)
	}
}

func below(value jsontext.Value, path string, depth int, f func(path, value string)) {
	switch value.Kind() {
	case '{', '[':
		walk(string(value), path+".", depth+1, f)
	case '"':
		if text, err := jsontext.AppendUnquote(nil, value); err == nil {
			f(path, strings.TrimSpace(string(text)))
		}
	case 'n':
	default:
		f(path, string(value))
	}
}
