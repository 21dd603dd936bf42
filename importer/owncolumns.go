package importer

import (
	"cmp"

	"leadferry/importer/source"
)

// ownColumns are those of all inputs side by side, for results that carry the rows' own
// cells: columns of one name are one, but for a name that stands twice in one file. JSON
// objects have no columns that could be known before the first row, so they stand whole
// in one of their own.
type ownColumns struct {
	names []string
	at    map[*source.Header][]int // where the cells of a file's rows go
	whole int                      // where JSON objects go
}

// wholeName is the column of JSON objects.
const wholeName = "json"

func newOwnColumns(inputs []*source.File) *ownColumns {
	c := &ownColumns{at: map[*source.Header][]int{}, whole: -1}
	type column struct {
		name string
		time int // that the name stands in its file
	}
	known := map[column]int{}
	for _, f := range inputs {
		h := f.Header()
		if h == nil || h.Open {
			if c.whole < 0 {
				c.whole, c.names = len(c.names), append(c.names, wholeName)
			}
			continue
		}
		times := map[string]int{}
		for _, name := range h.Names[:h.Own] {
			times[name]++
			at, ok := known[column{name, times[name]}]
			if !ok {
				at = len(c.names)
				known[column{name, times[name]}], c.names = at, append(c.names, name)
			}
			c.at[h] = append(c.at[h], at)
		}
	}
	return c
}

// cells puts a row's own cells, as they were read, into their places.
func (c *ownColumns) cells(row *source.Row) []string {
	cells := make([]string, len(c.names))
	if row.Header == nil || row.Header.Open {
		if c.whole >= 0 {
			cells[c.whole] = cmp.Or(row.Raw, row.Text)
		}
		return cells
	}
	for i, at := range c.at[row.Header] {
		if i < len(row.Cells) {
			cells[at] = row.Cells[i]
		}
	}
	return cells
}
