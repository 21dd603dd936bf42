package checkpoint

// Query asks for a lead by its key, else by its own ID, else by its ExternalID, be it
// linked or only to be; what is empty is not asked for. Alike, unless nil, takes the key
// that looks like this one where no lead is found.
type Query struct {
	Key, LeadID, ExternalID string
	Alike                   *Likeness
}

// Match says by what a lead was found.
type Match uint8

// The matches. NoMatch: no lead is known, though something may stand under the key.
// Ambiguous: the Query fits two leads.
const (
	NoMatch Match = iota
	ByKey
	ByLeadID
	ByExternalID
	Ambiguous
)

// Likeness is a key that looks like the one that was asked for and has a lead, or may have
// one. File and Line say where its row was last sent from; a lead that was adopted, and a
// key that was forgotten, have none.
type Likeness struct {
	State State
	File  string
	Line  int
}

// Shape is what rows were made leads of: the columns of their file, in any order, what of
// a row is its key as the mapping says it ("" for the row's own data), and the namespace.
type Shape struct {
	Columns        []string
	Key, Namespace string
}

// Kin is a shape by which leads were made before, of a file whose columns include those of
// another one or are included in them. Of the columns no more is kept than keyed digests.
type Kin struct {
	Key, Namespace string
	Strange        []string // columns of the other file that this one lacked
	Lacking        int      // its columns that the other file lacks
}
