package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leadferry/internal/disk"
	"leadferry/internal/shell"
)

// Finding is one reason that witnesses give against a run.
type Finding struct {
	ID      string // the word with which a person answers it
	Text    string // a sentence
	Witness Witness
	hints   []string // what to do about it
	older   bool     // the ledger is older than known
}

// Judgement is what the witnesses say about a run that is about to begin.
type Judgement struct {
	Path     string
	Older    []Finding // the ledger is older than known: refused until a person accepts it as incomplete
	Asks     []Finding // a person has to say whether the run may go on anyway
	Warnings []string

	ws    *Witnesses
	makes bool
	kinds []Kind
}

func ids(all []Finding) []string { return Map(all, func(f Finding) string { return f.ID }) }

func texts(all []Finding) string {
	return strings.Join(Map(all, func(f Finding) string { return f.Text }), "\n")
}

// hearing is a ledger that is compared with its witnesses.
type hearing struct {
	Store
	info    Info
	lineage Lineage
	ws      *Witnesses // nil: there are none
}

func hearingOf(ctx context.Context, s Store, ws *Witnesses) (h hearing, err error) {
	lineage, err := LineageOf(ctx, s)
	return hearing{Store: s, info: s.Info(), lineage: lineage, ws: ws}, err
}

// Judge compares a ledger with all witnesses. makes says that the run may make leads, from files of these kinds.
// Findings of witnesses in run folders are copied into the book.
func Judge(ctx context.Context, s Store, ws *Witnesses, makes bool, kinds []Kind) (*Judgement, error) {
	v, err := judge(ctx, s, ws, makes, kinds)
	if err == nil {
		ws.remember(slices.Concat(v.Older, v.Asks))
	}
	return v, err
}

// judge decides, by its witnesses, whether a lost, old or other ledger is in use.
func judge(ctx context.Context, s Store, ws *Witnesses, makes bool, kinds []Kind) (*Judgement, error) {
	h, err := hearingOf(ctx, s, ws)
	if err != nil {
		return nil, err
	}
	v := &Judgement{Path: h.info.Path, ws: ws, makes: makes, kinds: kinds}
	all := append(ws.All(), h.info.Beside...)
	for i := range all {
		f, err := h.compare(ctx, &all[i])
		switch {
		case err != nil:
			return nil, err
		case f == nil || h.answered(f):
		case f.older:
			v.Older = addFinding(v.Older, f)
		case f.Witness.Err != nil && h.info.Leads+h.info.InDoubt > 0:
			v.Warnings = append(v.Warnings, f.Text)
		case makes:
			v.Asks = addFinding(v.Asks, f)
		}
	}
	for i := range kinds {
		f := cmp.Or(h.otherTarget(all, &kinds[i]), h.rekeyed(all, &kinds[i]))
		if makes && f != nil && !h.answered(f) {
			v.Asks = addFinding(v.Asks, f)
		}
	}
	return v, nil
}

// answered reports whether a person has answered a finding for good.
func (h *hearing) answered(f *Finding) bool { return slices.Contains(h.lineage.Answered, f.ID) }

// addFinding adds a finding. Of several witnesses of one ledger it keeps the one with the most commits.
func addFinding(all []Finding, f *Finding) []Finding {
	i := slices.IndexFunc(all, func(other Finding) bool { return other.ID == f.ID })
	switch {
	case i < 0:
		return append(all, *f)
	case f.Witness.Commits > all[i].Witness.Commits:
		all[i] = *f
	}
	return all
}

// compare compares one witness with a ledger; nil: nothing is wrong.
func (h *hearing) compare(ctx context.Context, w *Witness) (*Finding, error) {
	f := &Finding{ID: w.Ledger, Witness: *w}
	ancestor := h.lineage.ancestor(w.Ledger)
	switch {
	case w.Err != nil:
		f.ID = hashOf("source", w.Source)
		f.Text = fmt.Sprintf("%s cannot be read, and it may know of leads (%v)", w.Source, w.Err)
		f.hints = []string{"run this as its owner, or let this user read it", h.ifLost(w)}
	case w.Ledger == h.info.ID:
		commits, knows, err := h.Reached(ctx, w.Run)
		switch f.older = true; {
		case err != nil:
			return nil, err
		case !knows && w.Run != "": // a command has no run
			const text = "it does not know the run %s of %s, which used it (%s)"
			f.Text = fmt.Sprintf(text, w.Run, day(w.Started), w.Source)
		case w.Commits > commits:
			f.Text = fmt.Sprintf("it is at commit %d, but %s tells of commit %d", commits, w.Source, w.Commits)
		}
	case ancestor != nil && w.Open && w.GoesOn():
		f.older, f.Text = true, fmt.Sprintf("it descends from %s, with which run %s goes on (%s)", w.Place, w.Run, w.Source)
	case ancestor != nil && w.Commits > ancestor.Commits:
		f.older, f.Text = true, fmt.Sprintf("it descends from the checkpoint %s, which went on afterwards: commit %d "+
			"was taken over, and %s tells of commit %d", w.Place, ancestor.Commits, w.Source, w.Commits)
	case ancestor == nil && w.Target.Canonical().TrunkID == h.info.Target.Canonical().TrunkID && w.knows():
		h.otherLedger(f, w)
	}
	if f.Text == "" {
		return nil, nil
	}
	return f, nil
}

// otherLedger fills a finding: another ledger knows leads of the trunk, where it is, and how to go on.
func (h *hearing) otherLedger(f *Finding, w *Witness) {
	theirs, where, place := w.Target.Canonical(), w.Place, "--checkpoint "+shell.Path(w.Place)
	elsewhere := theirs != h.info.Target.Canonical()
	if elsewhere {
		place += " --base-url " + shell.Word(theirs.BaseURL) + " --leads-url " + shell.Word(theirs.LeadsURL)
	}
	f.hints = []string{"to go on with the other one: " + place, h.ifLost(w)}
	switch {
	case elsewhere: // results of another address are refused
		where += " (service at " + theirs.LeadsURL + ")"
		f.hints[1] = "if the service has moved: leadferry checkpoint export " + place + " -o moved.csv; then " +
			adopt("moved.csv", h.info.Path, h.ws.Flags)
	case w.Place == h.info.Path:
		where = "it was at this place, where a new one is now"
		f.hints[0] = "if there is a copy of the checkpoint that was here, put it back"
	case IsAddress(h.info.Path) && !IsAddress(w.Place):
		f.hints[0] = "to move the other one here: leadferry checkpoint copy " + shell.Path(w.Place) + " " +
			shell.Path(h.info.Path)
	}
	f.Text = fmt.Sprintf("another checkpoint is in use for this trunk: %s; %s (%s)", where, w.knew(), w.Source)
}

// runsFolder is where runs have their folders, if nobody says otherwise.
const runsFolder = "leadferry-runs"

// ifLost returns the hint for a lost ledger: adopt the results of runs, from the run folders beside the witness's
// folder or in the working folder. If there are none, a person lists the known leads, and the new ledger is incomplete.
func (h *hearing) ifLost(w *Witness) string {
	runs, first := filepath.Dir(w.Folder), ""
	if w.Folder == "" || !holdsResults(runs) || disk.SameFile(runs, runsFolder) {
		runs = runsFolder
	}
	list := runs + "/*/results.csv*"
	if shell.Path(runs) != runs {
		list = shell.Path(list) // adopt knows patterns; in PowerShell, a word would end behind the folder's quotes
	}
	if !holdsResults(runs) {
		list = "known.csv"
		first = "write known.csv, with the line key,namespace,lead_id (the mapping's namespace, or nothing) and a " +
			"line for each lead that you know; then "
	}
	return "if it is lost: " + first + adopt(list, h.info.Path, h.ws.Flags) + " takes over the leads that these " +
		"files name. Name lists that were adopted before, too. The next import holds the rows that they do not name, " +
		"since their leads may exist"
}

func holdsResults(runs string) bool {
	names, _ := fs.Glob(os.DirFS(runs), "*/results.csv*")
	return names != nil
}

// otherTarget finds that files of a kind went to another trunk until now, and never to this one.
func (h *hearing) otherTarget(all []Witness, k *Kind) (found *Finding) {
	for i := range all {
		w := &all[i]
		if h.ws.Named || w.Err != nil || !w.knows() || !slices.ContainsFunc(w.Kinds,
			func(other Kind) bool { return k.sameKey(&other) && k.isAkin(&other) }) {
			continue
		}
		theirs, ours := w.Target.Canonical(), h.info.Target.Canonical()
		if theirs == ours {
			return nil
		}
		if theirs.TrunkID != ours.TrunkID { // else it is another ledger of this trunk, which compare finds
			text := fmt.Sprintf("files with these columns and this key went to trunk %s at %s so far, and never to "+
				"trunk %s at %s (%s)", theirs.TrunkID, theirs.LeadsURL, ours.TrunkID, ours.LeadsURL, w.Source)
			found = &Finding{ID: k.ID(), Witness: *w, Text: text, hints: []string{"name the right profile or trunk"}}
		}
	}
	return found
}

// rekeyed finds that leads of files of a kind were taken over from a ledger that made them with another key. It does
// not compare keys of leads that this ledger made itself: [NewShapes] does.
func (h *hearing) rekeyed(all []Witness, k *Kind) (found *Finding) {
	for i := range all {
		w := &all[i]
		isOwn := w.Ledger == h.info.ID
		if w.Err != nil || !isOwn && h.lineage.ancestor(w.Ledger) == nil {
			continue
		}
		for _, other := range w.Kinds {
			switch {
			case !k.isAkin(&other), isOwn && !k.sameKey(&other): // a run notes its kinds even if it makes no lead
			case k.sameKey(&other):
				return nil
			default:
				text := fmt.Sprintf("files with these columns were imported with another key or namespace, and their "+
					"leads were taken over (%s): every row would make a new lead", w.Source)
				found = &Finding{
					ID: shortID(k.ID(), "key"), Witness: *w, Text: text,
					hints: []string{"restore key, namespace and source of the mapping"},
				}
			}
		}
	}
	return found
}

// RefuseOlder says why a ledger that is older than known cannot be used, or returns nil.
func (v *Judgement) RefuseOlder() error {
	if len(v.Older) == 0 {
		return nil
	}
	return Refuse(v.Path, ErrRolledBack, texts(slices.Concat(v.Older, v.Asks))+". Leads made since would be made twice",
		"put the newest copy back; if there is none, and no run goes on with a later one, "+
			AcceptOlder(AnswerID(ids(v.Older)), v.Path))
}

// Refuse says why a run may not begin. It returns nil if nothing is found, or if the answer allows all that is found.
// An answer without a question is an error, too, so that no answer stays in a script for ever.
func (v *Judgement) Refuse(answer string) error {
	if err := v.RefuseOlder(); err != nil {
		return err
	}
	switch {
	case len(v.Asks) == 0 && answer == "":
		return nil
	case len(v.Asks) == 0:
		return ErrAnswersNothing
	case answer == AnswerID(ids(v.Asks)):
		return nil
	}
	var ways []string
	for i := range v.Asks {
		for _, way := range v.Asks[i].hints {
			if !slices.Contains(ways, way) {
				ways = append(ways, way)
			}
		}
	}
	ways = append(ways, "for other leads (rows sent before are made twice): --new-checkpoint="+AnswerID(ids(v.Asks)))
	return Refuse(v.Path, ErrGone, texts(v.Asks), strings.Join(ways, "\nhint: "))
}

// ErrAnswersNothing is the error of an answer without a question.
var ErrAnswersNothing = errors.New("the ID answers nothing: no witness speaks against this checkpoint, or it was " +
	"answered already")

// Begin notes a run in the ledger, and writes its witness into the book and the run's folder. Nothing may be claimed
// before Begin returns. It judges twice more: first because a person may have taken long to answer, and at the end
// because a run with another book may have begun meanwhile. What was answered holds; anything new is refused.
func (v *Judgement) Begin(ctx context.Context, l *Ledger, w Witness, folder string) error {
	unlock, err := v.ws.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	now, err := v.judgeAgain(ctx, l)
	if err == nil {
		err = now.Answer(ctx, l)
	}
	if err == nil {
		err = PutRun(ctx, l, RunInfo{ID: w.Run, Command: w.Command, Started: w.Started, Outcome: "unfinished"})
	}
	if err != nil {
		return err
	}
	w.Process, w.Kinds = os.Getpid(), v.kinds
	t, err := v.ws.Begin(l, w, folder)
	if err != nil {
		return err
	}
	l.Attest(t)
	_, err = v.judgeAgain(ctx, l)
	return err
}

// judgeAgain refuses what has come up since v. The book gets nothing: two runs that begin at once may both be refused.
func (v *Judgement) judgeAgain(ctx context.Context, s Store) (*Judgement, error) {
	now, err := judge(ctx, s, v.ws, v.makes, v.kinds)
	if err == nil && !v.Covers(now) {
		err = now.Refuse("")
	}
	return now, cmp.Or(err, RefuseHalfAdopted(ctx, s))
}

// Covers reports whether a later judgement finds only what this judgement has found.
func (v *Judgement) Covers(later *Judgement) bool {
	return len(later.Older) == 0 && !slices.ContainsFunc(later.Asks, func(f Finding) bool {
		return !slices.ContainsFunc(v.Asks, func(known Finding) bool { return known.ID == f.ID })
	})
}

// Question returns what a person is asked; "" if there is nothing.
func (v *Judgement) Question() string { return strings.ReplaceAll(texts(v.Asks), "\n", "; ") }

// AdoptRuns returns the command that adopts the results of runs into a checkpoint. flags name its target.
func AdoptRuns(path string, flags []string) string {
	return adopt(runsFolder+"/*/results.csv*", path, flags)
}

func adopt(lists, path string, flags []string) string {
	return "leadferry checkpoint adopt " + lists + at(path, flags)
}

// at returns the flags that name a checkpoint and its target in a command.
func at(path string, flags []string) string {
	line := " --checkpoint " + shell.Path(path)
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		if slices.Contains([]string{"--profile", "--config", "--base-url", "--leads-url", "--trunk-id"}, name) {
			line += " " + name + "=" + shell.Word(value)
		}
	}
	return line
}

// Answer records that a person has answered all findings, so that none of them is asked about again.
func (v *Judgement) Answer(ctx context.Context, s Store) error {
	if len(v.Asks) == 0 {
		return nil
	}
	return s.Alone(ctx, func(tx Tx) error {
		return changeLineage(tx, func(l *Lineage) { l.Answered = append(l.Answered, ids(v.Asks)...) })
	})
}
