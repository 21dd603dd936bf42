package propose

import (
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// count says a number of things: "1,234 rows", "1 row". A thing that ends in no
// letter of its own plural, such as "more", is said as it is.
func count(n int, thing string) string {
	digits := itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n == 1 || thing == "more" {
		return digits + " " + thing
	}
	return digits + " " + thing + "s"
}

// extent names the rows that were looked at, for a sentence.
func (t *table) extent() string {
	n := len(t.rows)
	switch {
	case n == 1 && t.in.Complete:
		return "the one row"
	case n == 1:
		return "the first row"
	case n == 2 && t.in.Complete:
		return "both rows"
	case t.in.Complete:
		return "all " + count(n, "row")
	}
	return "the first " + count(n, "row")
}

// empties says in how many rows a column holds nothing, or "".
func (t *table) empties(c *column) string {
	switch p := c.profile; {
	case p.rows == 0 || p.full():
		return ""
	default:
		return "empty in " + strings.TrimSuffix(strings.TrimSuffix(count(p.rows-p.filled, "row"), "rows"), "row") + "of " + count(p.rows, "row")
	}
}

// and joins remarks that hold something.
func and(remarks ...string) string {
	var said []string
	for _, r := range remarks {
		if r != "" {
			said = append(said, r)
		}
	}
	return strings.Join(said, "; ")
}
