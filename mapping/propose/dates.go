package propose

import (
	"slices"
	"strings"
	"sync"

	"leadferry/mapping/texts"
)

// dateLayout is a way to write dates.
type dateLayout struct {
	name string
	read texts.Conversion
}

// dateLayouts are all that are tried, the likeliest first.
var dateLayouts = sync.OnceValue(func() (list []dateLayout) {
	dates := known().Dates
	for _, day := range dates.Days {
		for _, time := range dates.Times {
			for _, language := range append([]string{""}, dates.Languages...) {
				if language == "" || strings.Contains(day, "MMM") {
					read, _ := texts.Date(day + time + language)
					list = append(list, dateLayout{day + time + language, read})
				}
			}
		}
	}
	return list
})

// dateStep is the step that makes ISO dates of a column, and what a person should know of it. A column in which day and
// month could change places stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	const mostLayouts = 3
	swap := strings.NewReplacer("D", "M", "M", "D")
	var rest, names, swapped []string // cells without layout, layouts
	for _, cell := range c.cells {
		if cell != "" && !texts.IsDate(cell) {
			rest = append(rest, cell)
		}
	}
	slices.Sort(rest)
	rest = slices.Compact(rest)
	for len(rest) > 0 && len(names) < mostLayouts {
		best, left := "", map[string][]string{} // cells that a layout leaves over which reads the first
		for _, l := range dateLayouts() {
			if _, ok := l.read(rest[0]); ok {
				left[l.name] = slices.DeleteFunc(slices.Clone(rest), func(cell string) bool {
					_, ok := l.read(cell)
					return ok
				})
				if best == "" || len(left[l.name]) < len(left[best]) {
					best = l.name
				}
			}
		}
		if best == "" {
			break
		}
		other := swap.Replace(best)
		if cells, reads := left[other]; !reads || len(cells) > len(left[best]) {
			other = best
		}
		names, swapped, rest = append(names, best), append(swapped, other), left[best]
	}
	step, other := "date:"+strings.Join(names, "|"), "date:"+strings.Join(swapped, "|")
	_, fault := texts.Date(strings.Join(names, "|"))
	switch {
	case len(rest) > 0 || names != nil && fault != nil:
		return "", "? sent as it stands: not all cells are dates, or not in one form"
	case !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "YYYY-") }):
		return "", "" // they are ISO dates, perhaps with a blank before the time
	case step != other:
		return "", "? as it is: day or month first? Say apply: [" + quoted(step) + "] or [" + quoted(other) + "]"
	}
	for _, sign := range []string{"/", ".", "-"} {
		if strings.Contains(step, "M"+sign+"D"+sign) && strings.Contains(step, "D"+sign+"M"+sign) {
			return step, "? some dates have the day first, others the month"
		}
	}
	return step, ""
}
