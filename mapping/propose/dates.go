package propose

import (
	"slices"
	"strings"
	"sync"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// dateShape is of what may be a date: numbers in an order of their own, or a number beside the name of a month.
var dateShape = spelling.Form(`^(?:[0-9]{4}(?:[-/.]|\. ?|年|년 ?)[0-9]{1,2}|(?:19|20)[0-9]{6}$|[0-9]{1,2}(?:\.[0-9]{1,2}\.|/[0-9]{1,2}/|-[0-9]{1,2}-)` +
	`(?:[0-9]{4}|[0-9]{2})(?:[ ,T]|$)|(?:\p{L}{3,9},? )?[0-9]{1,2}\.?[ -](?:de )?[\p{L}\p{M}]{3,12}\.?,?[ -](?:de )?[0-9]{2,4}|\p{L}{3,9} [0-9]{1,2},? [0-9]{4}` +
	`|\p{L}{3} \p{L}{3} [0-9]{1,2} [0-9]{4})`)

// dateLayout is a way to write dates, and the one that has day and month in the other order.
type dateLayout struct {
	name, swapped string
	read          texts.Conversion
}

// dateLayouts are all that are tried: ways to write the day, the time behind it, and the languages of the names of months.
var dateLayouts = sync.OnceValue(func() (list []dateLayout) {
	swap := strings.NewReplacer("D", "M", "M", "D")
	for _, day := range []string{
		"D.M.YYYY", "D/M/YYYY", "M/D/YYYY", "D-M-YYYY", "M-D-YYYY", "D.M.YY", "D/M/YY", "M/D/YY", "YYYY-M-D", "YYYY/M/D", "YYYY.M.D", "YYYY年M月D日", "YYYY년 M월 D일",
		"YYYY. M. D.", "YYYYMMDD", "D MMM YYYY", "D-MMM-YYYY", "MMM D, YYYY", "D MMMM YYYY", "MMMM D, YYYY", "D. MMMM YYYY", "D 'de' MMMM 'de' YYYY",
	} {
		for _, time := range []string{"", " HH:mm", " HH:mm:ss", ", HH:mm", ", HH:mm:ss", " h:mm A", " h:mm:ss A"} {
			for _, language := range []string{"", "@de", "@fr", "@es", "@it", "@pt", "@nl", "@pl", "@sv", "@da", "@cs", "@ru", "@tr"} {
				if language != "" && !strings.Contains(day, "MMM") {
					break
				}
				l := dateLayout{name: day + time + language}
				if strings.ContainsAny(day, "/-") && !strings.HasPrefix(day, "Y") && !strings.Contains(day, "MMM") {
					l.swapped = swap.Replace(day) + time
				}
				l.read, _ = texts.Date(l.name)
				list = append(list, l)
			}
		}
	}
	return list
})

// dateStep is the step that makes ISO dates of a column, and what a person should know of it. A column in which day and
// month could change places stays as it is, and the person is asked.
func (c *column) dateStep() (step, remark string) {
	const mostLayouts, severalWays = 3, "? as it is: its dates are written in several ways, or some are none"
	var rest, names, swapped []string // cells without layout, layouts
	for _, cell := range c.cells {
		if cell != "" && !texts.IsDate(cell) {
			rest = append(rest, cell)
		}
	}
	slices.Sort(rest)
	unsure := false
	for rest = slices.Compact(rest); len(rest) > 0 && len(names) < mostLayouts; {
		fits := map[string][]string{} // cells left over by a layout that reads the first
		best := dateLayout{}
		for _, l := range dateLayouts() {
			if _, ok := l.read(rest[0]); !ok {
				continue
			}
			fits[l.name] = slices.DeleteFunc(slices.Clone(rest), func(cell string) bool {
				_, ok := l.read(cell)
				return ok
			})
			if best.name == "" || len(fits[l.name]) < len(fits[best.name]) {
				best = l
			}
		}
		if best.name == "" {
			return "", severalWays
		}
		other := best.name
		if left, known := fits[best.swapped]; known && len(left) == len(fits[best.name]) {
			other, unsure = best.swapped, true
		}
		names, swapped, rest = append(names, best.name), append(swapped, other), fits[best.name]
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "YYYY-") }) {
		return "", "" // they are ISO dates, perhaps with a blank before the time
	}
	step = "date:" + strings.Join(names, "|")
	if _, fault := texts.Date(strings.TrimPrefix(step, "date:")); fault != nil || len(rest) > 0 {
		return "", severalWays
	}
	if unsure {
		ways := "Say apply: [" + quoted(step) + "] or [" + quoted("date:"+strings.Join(swapped, "|")) + "]"
		return "", "? as it is: day or month first? " + ways
	}
	return step, ""
}
