package propose

// draft is what was decided, before it is written down.
type draft struct {
	origin       origin
	key          keyChoice
	organization organizationChoice
	status       *statusChoice
	otherStatus  *statusChoice
	parts        map[part]*column
	fields       []field
	rest         rest
}

// newDraft decides from the surest to the least sure: a column that plays one
// part is not looked at for the next.
func newDraft(t *table) *draft {
	d := &draft{origin: t.originOf()}
	taken := map[*column]bool{}
	if d.status, d.otherStatus = t.chooseStatus(); d.status != nil && d.status.live {
		d.status.column.part = partStatus
		taken[d.status.column] = true
	}
	if d.organization = t.chooseOrganization(); d.organization.live {
		d.organization.column.part = partOrganization
		taken[d.organization.column] = true
	}
	d.parts = t.assignParts(taken)
	d.fields = t.contentOf(d.parts)
	d.key = t.chooseKey(d.parts)
	d.settleRest(t)
	return d
}

// settleRest finds what the fields, key and status leave over.
func (d *draft) settleRest(t *table) {
	used := map[*column]bool{}
	for _, f := range d.fields {
		for _, c := range f.columns {
			used[c] = true
		}
	}
	if d.key.column != nil && d.key.external {
		used[d.key.column] = true
	}
	if d.organization.live {
		used[d.organization.column] = true
	}
	if d.status != nil && d.status.live {
		used[d.status.column] = true
	}
	d.rest = t.restOf(used, d.fields)
}
