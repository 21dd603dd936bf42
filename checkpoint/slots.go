package checkpoint

// slots bound how many intents of this process stand without an outcome, and so what a
// death leaves in doubt. A claim takes a slot with the commit that makes it durable, and
// the commit that settles or withdraws it gives the slot back: to claims of the same
// commit already, since a commit is there as a whole or not at all.
type slots struct {
	most    int                 // 0: any number
	taken   map[string]struct{} // keys
	waiting []op                // claims, in their order
	group   []op                // room of admit
}

func newSlots(most int) slots { return slots{most: most, taken: make(map[string]struct{})} }

// next reports whether a claim that waits has a slot now.
func (s *slots) next() bool { return len(s.waiting) > 0 && len(s.taken) < s.most }

// admit gives the changes of a batch that can be made now: claims come last, as many as
// have slots, the others wait. What it gives stands until the next call.
func (s *slots) admit(batch []op) []op {
	if s.most == 0 {
		return batch
	}
	s.group = s.group[:0]
	for i := range batch {
		o := &batch[i]
		switch o.kind {
		case claimOp:
			s.waiting = append(s.waiting, *o)
			continue
		case settleOp, withdrawOp:
			delete(s.taken, o.entry.Key)
		}
		s.group = append(s.group, *o)
	}
	n := 0
	for ; n < len(s.waiting) && len(s.taken) < s.most; n++ {
		s.taken[s.waiting[n].entry.Key] = struct{}{}
	}
	s.group = append(s.group, s.waiting[:n]...)
	rest := copy(s.waiting, s.waiting[n:])
	clear(s.waiting[rest:])
	s.waiting = s.waiting[:rest]
	return s.group
}

// landed takes back the slots of claims that the ledger has refused.
func (s *slots) landed(group []op) {
	for i := range group {
		if o := &group[i]; o.kind == claimOp && o.err != nil {
			delete(s.taken, o.entry.Key)
		}
	}
	clear(s.group)
}

// refuse ends the claims that wait.
func (s *slots) refuse(err error) {
	for i := range s.waiting {
		s.waiting[i].finish(err)
	}
	s.waiting = nil
}
