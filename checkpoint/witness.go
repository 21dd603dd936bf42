package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Witness is a note outside a ledger that says how far the ledger had come. A run writes it before its first claim,
// overwrites its counts with every commit (not synced), and closes it at the end. One copy is in the run's folder
// (run.json), another in the user's book of ledgers, see [Witnesses].
type Witness struct {
	Commits uint64 `json:"commits,omitempty"` // number of the last commit; in PostgreSQL of the worker's last commit
	Leads   int    `json:"leads,omitempty"`   // see [Info.Counted]
	Open    bool   `json:"open,omitempty"`    // the run is under way, or did not end in order

	Freed     int        `json:"freed,omitempty"` // see [Info.Counted], when the run began or ended
	Lacks     bool       `json:"lacks,omitempty"` // the ledger was incomplete when the run began
	Ledger    string     `json:"ledger"`          // its ID
	Target    Target     `json:"target"`
	Place     string     `json:"place"` // path or address
	Run       string     `json:"run"`
	Command   string     `json:"command"`
	Process   int        `json:"process"`
	Started   time.Time  `json:"started"`
	Folder    string     `json:"folder,omitempty"`    // of the run
	Page      string     `json:"page,omitempty"`      // address of its live page, while it is under way
	Kinds     []Kind     `json:"kinds,omitempty"`     // of files that leads were made of
	Ancestors []Ancestor `json:"ancestors,omitempty"` // of the ledger, when the run began
	Left      string     `json:"left,omitempty"`      // state of the checkpoint file at the end, see [Witnesses.Left]

	Source string `json:"-"` // the file that says so
	Err    error  `json:"-"` // why it cannot be read: then only Source is known
}

// Kind identifies files of one sort by hashes of their key, their namespace and each of their columns. Names of columns
// are no secret, but a book that somebody mails should not list them.
type Kind struct {
	Key       string   `json:"key"`
	Namespace string   `json:"namespace"`
	Columns   []string `json:"columns"`
}

// KindOf returns the kind of files of a shape.
func KindOf(s *Shape) Kind {
	column := func(name string) string { return hashOf("column", name) }
	return Kind{hashOf("key", s.Key), hashOf("namespace", s.Namespace), hashed(s.Columns, column)}
}

func hashed(columns []string, hash func(string) string) []string {
	all := Map(columns, hash)
	slices.Sort(all)
	return all
}

func hashOf(what, text string) string {
	sum := sha256.Sum256([]byte("leadferry " + what + "\x00" + text))
	return hex.EncodeToString(sum[:6])
}

// ID names the kind in questions and answers.
func (k *Kind) ID() string { return shortID(append([]string{k.Key, k.Namespace}, k.Columns...)...) }

// sameKey reports whether two files have the same key and namespace.
func (k *Kind) sameKey(other *Kind) bool { return k.Key == other.Key && k.Namespace == other.Namespace }

func (k *Kind) equals(o *Kind) bool { return k.sameKey(o) && slices.Equal(k.Columns, o.Columns) }

// shared returns how many columns two files have in common.
func (k *Kind) shared(other *Kind) (n int) {
	for _, column := range other.Columns {
		if _, found := slices.BinarySearch(k.Columns, column); found {
			n++
		}
	}
	return n
}

// isAkin reports whether two files share at least half of the columns of one of them.
func (k *Kind) isAkin(other *Kind) bool {
	shared := k.shared(other)
	return shared > 0 && 2*shared >= min(len(k.Columns), len(other.Columns))
}

// AnswerID returns the one word that answers a refusal, whatever the number of its reasons.
func AnswerID(ids []string) string {
	return shortID(slices.Compact(slices.Sorted(slices.Values(ids)))...)
}

// shortID names one text by itself and several by a hash.
func shortID(texts ...string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// head is the first part of a witness. Its length is fixed, so that a commit overwrites it inside one sector of a disk.
func (w *Witness) head() []byte {
	return fmt.Appendf(nil, `{"commits":%20d,"leads":%12d,"open":%5t,`, w.Commits, w.Leads, w.Open)
}

func (w *Witness) encode() []byte {
	tail := *w
	tail.Commits, tail.Leads, tail.Open = 0, 0, false // they are in the head
	rest, _ := json.Marshal(tail)                     // JSON can hold this type of ours
	return append(append(w.head(), rest[1:]...), '\n')
}

// knows reports whether the ledger may have known leads. A ledger whose run did not end counts as knowing some.
func (w *Witness) knows() bool { return w.Leads > 0 || w.Open }

// knew says what the ledger knew, for people. A command has no run.
func (w *Witness) knew() string {
	last := "its last run (" + w.Run + ", " + day(w.Started) + ")"
	if w.Run == "" {
		last = "its last command (" + day(w.Started) + ")"
	}
	if w.Open {
		return fmt.Sprintf("it knew %d leads or more, and %s did not end or is going on", w.Leads-w.Freed, last)
	}
	return fmt.Sprintf("it knew %d leads after %s", w.Leads-w.Freed, last)
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
