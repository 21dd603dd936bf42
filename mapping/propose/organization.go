package propose

// organizationChoice is how the leads find their dealers.
type organizationChoice struct {
	column *column // names the organization, or nil
	live   bool    // its cells can be the service's IDs; else it is offered in a comment
	why    string
}

// chooseOrganization looks for the column that names the dealer of each lead.
func (t *table) chooseOrganization() organizationChoice {
	var best organizationChoice
	most := 0.0
	for _, c := range t.columns {
		o := t.organizationOf(c)
		if o.column == nil {
			continue
		}
		score := c.name.strength(partOrganization) + c.profile.share(kindUUID) + 0.5*c.profile.fill()
		if o.live {
			score += 2
		}
		if score > most {
			best, most = o, score
		}
	}
	return best
}

// organizationOf judges one column: IDs are few for many leads. Names of dealers
// and the numbers of other systems need a person.
func (t *table) organizationOf(c *column) organizationChoice {
	p, strength := c.profile, c.name.strength(partOrganization)
	if p.filled == 0 && p.rows > 0 {
		return organizationChoice{}
	}
	repeats := p.filled < 20 || p.distinct < p.filled
	empties := t.empties(c)
	switch {
	case strength >= surePart && p.rows == 0:
		return organizationChoice{c, true, "by its name: no row was there to look at"}
	case strength >= leastScore && p.share(kindUUID) >= 0.9 && repeats:
		return organizationChoice{c, true, and("by name and values, "+count(p.distinct, "dealer"), empties)}
	case strength >= leastScore && p.share(kindCode) >= 0.9 && nothingLike(p, kindDate, kindEmail, kindDamaged) && repeats && p.longest <= mostKey:
		return organizationChoice{c, true, and("by name and values, "+count(p.distinct, "code")+": the service's own IDs?", empties)}
	case strength >= surePart && p.share(kindSolid) >= 0.9:
		return organizationChoice{c, false, "another system's numbers, by their looks"}
	case strength >= leastScore && c.name.strength(partCompany) == 0 && nothingLike(p, kindEmail, kindDate, kindYesNo):
		return organizationChoice{c, false, "says where, but not by an ID"}
	case strength == 0 && !c.name.known && !c.name.foreign && p.share(kindUUID) == 1 && p.filled >= 10 && p.distinct*2 <= p.filled:
		return organizationChoice{c, false, "IDs that many rows share: dealers?"}
	}
	return organizationChoice{}
}
