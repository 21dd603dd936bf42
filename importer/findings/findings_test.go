package findings

import (
	"strconv"
	"testing"

	"leadferry/importer/report"
)

// Beyond the limit of kinds, a row counts once, whatever it holds. The first rows of each kind are named.
func TestKindsAreBounded(t *testing.T) {
	const most = 1000
	k := NewKinds()
	for i := range 3 * most {
		row := report.Place{Line: i + 2, Row: i + 1}
		for j := range 3 {
			k.Add(row, Kind{Rule: "format", Column: strconv.Itoa(3*i + j)}, "")
			k.Add(row, Kind{Rule: "format", Column: strconv.Itoa(3*i + j)}, "")
		}
	}
	list := k.List()
	if len(list) != most+1 || list[1].Rows != 1 || list[1].Examples[0].Line != 2 || list[most].Examples[0].Line != 2+most/3 {
		t.Errorf("%d kinds: %+v and others", len(list), list[:2])
	}
	if o := list[0]; o.Error != Others || o.Rule != "format" || o.Rows != 3*most-most/3 || len(o.Examples) != report.MostExamples || o.Examples[0].Line != 2+most/3 {
		t.Errorf("%+v", o)
	}
}
