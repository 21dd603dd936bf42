package findings

import "testing"

// Rows of kinds beyond the bound are counted once each, whatever they hold; the first rows of each kind are named.
func TestKindsAreBounded(t *testing.T) {
	const most = 10
	const others = -1
	k := NewKinds(most, func(int) int { return others })
	for i := range 3 * most {
		row := Spot{Line: i + 2, Number: i + 1}
		for j := range 3 {
			k.Add(row, 3*i+j)
			k.Add(row, 3*i+j)
		}
	}
	list := k.List()
	if len(list) != most+1 || list[1].Count != 1 || list[1].First[0].Line != 2 || list[most].First[0].Line != 5 {
		t.Errorf("%d kinds: %+v", len(list), list)
	}
	// The first ten kinds come from four rows, the last of which has two kinds more.
	if o := list[0]; o.Of != others || o.Count != 3*most-most/3 || len(o.First) != firstRows || o.First[0].Line != 5 {
		t.Errorf("%+v", o)
	}
}
