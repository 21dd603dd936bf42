package report

// Checks are what a run that sends nothing (validate, --dry-run) says of the input and the mapping
// beside how each row ended. Lists come by rows, most first; no cell's value stands
// in them but IDs of organizations and locators, and, for the terminal alone, texts that
// are not mapped.
type Checks struct {
	Rules         []Rule       `json:"rules"`
	Statuses      []Word       `json:"-"`
	Lacking       []Lacking    `json:"-"`
	Repeats       Repeats      `json:"repeats"`
	LookAlikes    Repeats      `json:"look_alikes"`
	UnusedColumns []string     `json:"unused_columns"`
	DroppedRows   int          `json:"-"`               // that have values which were left out
	Caught        []Lacking    `json:"-"`               // texts that maps lack and else takes
	CaughtRows    int          `json:"-"`               // that have such
	Strict        bool         `json:"strict,omitzero"` // repeats, look-alikes, unused columns, what only else takes and dropped values count
	Assignments   []Assignment `json:"assignments"`     // organizations, then locators
	Projected     Projected    `json:"projected"`
	Tests         Tests        `json:"tests"`
	CannotCreate  []Fault      `json:"cannot_create"` // what the mapping lacks to make leads
	Unconfirmed   []Guess      `json:"unconfirmed"`   // guesses in the mapping that nobody has confirmed
	LostFiles     []Fault      `json:"lost_files"`    // that could not be read to their end
	Notes         []string     `json:"notes"`         // the remarks of the text for people
}

// Place is where a row starts.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Rule is a check that rows fail, with how many and the first three of them. Column
// names the column or columns that the value comes from, if any.
type Rule struct {
	Rule   string  `json:"rule"`
	Column string  `json:"column"`
	Error  string  `json:"error"`
	Rows   int     `json:"rows"`
	Places []Place `json:"places"`
}

// Word is a status that is neither the service's nor mapped, and where it stands
// first. Where Hidden says why, Status is empty and many words may be counted.
type Word struct {
	Status string `json:"status"`
	Hidden string `json:"hidden,omitempty"`
	Rows   int    `json:"rows"`
	Place
}

// Lacking is a text that the map of a value lacks, by what the mapping calls the value,
// and where it stands first; or all others.
type Lacking struct {
	Value, Text string
	Others      bool
	Rows        int
	Place
}

// named is the text in quotes, or what it is one of.
func (l *Lacking) named() string {
	if l.Others {
		return "other texts"
	}
	return `"` + l.Text + `"`
}

// named is the status in quotes, or why it is not shown.
func (w *Word) named() string {
	if w.Hidden != "" {
		return w.Hidden
	}
	return `"` + w.Status + `"`
}

// Repeats counts rows whose key stands in an earlier row, or looks like that of an earlier
// one, and names the first few.
type Repeats struct {
	Rows   int      `json:"rows"`
	Places []Repeat `json:"places"`
	More   []Repeat `json:"-"` // that the problems of a strict check name besides
}

// Repeat is one such row and the first of its key.
type Repeat struct {
	Place
	First Place `json:"first"`
	Row   int   `json:"-"` // its number
}

// Assignment counts rows by whom they name: an organization, or a locator by an entry
// of assign, counted from 1. Others are organizations or entries beyond those listed.
// With no ID at all the rows name nobody: the mapping has no assign.
type Assignment struct {
	OrganizationID string `json:"organization_id,omitempty"`
	LocatorID      string `json:"locator_id,omitempty"`
	Entry          int    `json:"entry,omitzero"`
	Others         string `json:"others,omitempty"` // "organizations" or "locators"
	Rows           int    `json:"rows"`
}

// Projected are the lead requests that the run would send when all goes well. Rate
// and DurationS, requests a second and seconds, are given together or not at all.
type Projected struct {
	Create    int     `json:"create"`
	Update    int     `json:"update"`
	AtMost    bool    `json:"at_most,omitzero"` // repeated keys were not looked for
	Rate      float64 `json:"rate,omitzero"`
	DurationS float64 `json:"duration_s,omitzero"`
}

// Tests are those of the mapping file.
type Tests struct {
	Run      int       `json:"run"`
	Failed   int       `json:"failed"`
	Failures []Failure `json:"failures"`
}

// Failure is a test, by its place in the mapping file, with what differs.
type Failure struct {
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Column      int      `json:"column"`
	Differences []string `json:"differences"`
}

// Fault is what is wrong with a file. Line and Column are left out where the fault
// has none.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitzero"`
	Column int    `json:"column,omitzero"`
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

// Guess is a line of the mapping that nobody has confirmed, and why it was written so. What
// the line says may be a word of the rows, and is shown to people only.
type Guess struct {
	Place
	Why string `json:"why"`
	Of  string `json:"-"`
}

// escape makes names of columns and texts fit to be shown, which may come from outside.
func (c *Checks) escape() {
	each(c.Rules, func(r *Rule) { r.Column, r.Error = Escape(r.Column), Escape(r.Error) })
	each(c.Tests.Failures, func(f *Failure) { f.Differences = escaped(f.Differences) })
	each(c.LostFiles, (*Fault).escape)
	each(c.CannotCreate, (*Fault).escape)
	each(c.Unconfirmed, func(g *Guess) { g.Of, g.Why = Escape(g.Of), Escape(g.Why) })
	c.UnusedColumns, c.Notes = escaped(c.UnusedColumns), escaped(c.Notes)
	c.Projected.DurationS = round(c.Projected.DurationS)
}

func (f *Fault) escape() { f.Error, f.Hint = Escape(f.Error), Escape(f.Hint) }

// escaped is a list of its own.
func escaped(texts []string) []string {
	var list []string
	for _, text := range texts {
		list = append(list, Escape(text))
	}
	return list
}
