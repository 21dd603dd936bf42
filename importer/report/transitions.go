package report

import "fmt"

// topTransitions is how many changes of status the text for people shows.
const topTransitions = 12

// transitions show which statuses leads went from and to.
func (s *Summary) transitions(p *page) {
	width := 0
	for i := range s.Transitions {
		width = max(width, len(s.Transitions[i].from()))
	}
	for i := range s.Transitions {
		t := &s.Transitions[i]
		if i == 0 {
			p.heading("Changes of status, confirmed")
		}
		if i == topTransitions {
			leads := 0
			for _, t := range s.Transitions[i:] {
				leads += t.Leads
			}
			p.figure(leads, "otherwise")
			return
		}
		p.figure(t.Leads, fmt.Sprintf("%-*s  to %s", width, t.from(), Escape(t.To)))
	}
}

func (t *Transition) from() string {
	if t.From == "" {
		return "not known"
	}
	return Escape(t.From)
}
