package importer

import "context"

// lateRows are rows that other workers of a fleet have claimed, most likely this one's predecessors. At the end of the run
// they are looked up once more: what has been settled by then has a lead, the rest is in doubt.
type lateRows struct {
	items []*item
	names map[leadName]struct{} // of their leads, whose other rows have to wait with them
}

// mostLate is how many may wait; a worker holds few claims when it is replaced.
const mostLate = 1000

func (l *lateRows) add(it *item, ns *leadNames) {
	if l.names == nil {
		l.names = map[leadName]struct{}{}
	}
	it.late = true
	l.items = append(l.items, it)
	for _, n := range ns.all() {
		l.names[n] = struct{}{}
	}
}

// behind reports whether a row has to wait since one of its lead does.
func (l *lateRows) behind(it *item, ns *leadNames) bool {
	if len(l.items) == 0 || it.late {
		return false
	}
	for _, n := range ns.all() {
		if _, waits := l.names[n]; waits {
			return true
		}
	}
	return false
}

// putOff puts a row off to the end of the run, once, where the run is a worker of a fleet.
func (s *scheduler) putOff(it *item, ns *leadNames) bool {
	if s.member == nil || it.late || len(s.late.items) >= mostLate || s.stopped != nil {
		return false
	}
	s.late.add(it, ns)
	return true
}

// lookAgain has the rows that were put off come once more.
func (s *scheduler) lookAgain(ctx context.Context) {
	b := &batch{items: s.late.items}
	s.late = lateRows{}
	s.load(ctx, b, true)
}
