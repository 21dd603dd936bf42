// Package propose writes a mapping file for an input that it has seen a sample
// of: the brain of leadferry init.
//
// It stands before mapping, whose language it writes and whose rules judge the
// outcome, and reads no file itself:
//
//	Input ─▶ table (cells measured) ─▶ parts (which column plays which part)
//	      ─▶ draft (decisions) ─▶ YAML ─▶ mapping.Parse, Bind, Map of the sample ─▶ Proposal
//
// A part is given to a column by its name and by its cells: both have a say, and
// cells that contradict the name win. The words that it knows lie in words/.
//
// Promises: the same Input gives the same Proposal; the YAML is a mapping file
// that loads, and every sampled row is valid under it unless a person has to
// decide something, which a comment and a note then say; no cell of a row stands
// in comments or notes, but for words of a status column that holds few and short
// ones. Any Input is answered, however odd.
package propose

// Input is a sample of a file. Encoding, Sheet and Delimiter are set where the
// mapping has to say them: flags named them, or the file is not what a reader
// takes it for by itself.
type Input struct {
	File      string // how people call the file; "-" is standard input
	Format    string // csv, tsv, jsonl or xlsx
	Delimiter rune
	Encoding  string
	Sheet     string
	NoHeader  bool // the Columns are made up, and the mapping must list them

	Columns  []string
	Rows     [][]string // a cell for each column; a shorter row has empty ones
	Complete bool       // Rows are all rows of the file
	Bad      int        // rows that could not be read and are not in Rows
}

// Proposal is a mapping file of at most 1 MiB, and what people should know of
// it: sentences that say what was decided and what they have to decide.
type Proposal struct {
	YAML  []byte
	Notes []string
}

// Propose writes a mapping file for the sampled input.
func Propose(in Input) Proposal {
	t := newTable(in)
	d := newDraft(t)
	yaml, checked := settle(t, d)
	return Proposal{YAML: yaml, Notes: notes(t, d, checked)}
}
