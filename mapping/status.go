package mapping

import "strings"

// statuses are the statuses that a lead may have, by key and label
// (specification, "States and transitions").
var statuses = [...]struct{ key, label string }{
	{"open", "New"},
	{"contacted", "Contact Attempted"},
	{"inProgress", "In Progress"},
	{"onHold", "On Hold"},
	{"closedWon", "Closed | Won"},
	{"closedNotInterested", "Closed | Not Interested"},
	{"closedBoughtUsed", "Closed | Bought Used"},
	{"closedBoughtOtherBrand", "Closed | Bought Other Brand"},
}

// statusKey is the key of the status that has s, in any case, as key or label.
func statusKey(s string) (key string, ok bool) {
	for i := range statuses {
		if strings.EqualFold(s, statuses[i].key) || strings.EqualFold(s, statuses[i].label) {
			return statuses[i].key, true
		}
	}
	return "", false
}

// statusHint says what may have been meant by s, or what there is.
func statusHint(s string) string {
	var names, keys []string
	for _, st := range statuses {
		names, keys = append(names, st.key, st.label), append(keys, st.key)
	}
	if hint := didYouMean(s, names); hint != "" {
		return hint
	}
	return "the statuses are " + strings.Join(keys, ", ")
}
