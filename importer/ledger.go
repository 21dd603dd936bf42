package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// prepare reads from the checkpoint what must be known before the run is announced.
func (r *run) prepare(ctx context.Context, l *checkpoint.Ledger) (err error) {
	r.keepIn(l)
	if r.drift == nil && !r.DryRun && r.makes() {
		if err := r.heedDoubts(ctx); err != nil {
			return err
		}
	}
	r.join(l.Store)
	if r.drift != nil {
		if err := r.prepareReconciliation(ctx); err != nil {
			return err
		}
	}
	if r.makes() {
		if err := r.findShapes(ctx); err != nil {
			return err
		}
	}
	return r.hear(ctx)
}

// makes reports whether the run may make leads.
func (r *run) makes() bool { return !r.matches || r.Missing == MissingCreate }

// hear judges the checkpoint by its witnesses. Questions to a person come when the run is announced.
func (r *run) hear(ctx context.Context) (err error) {
	if err := checkpoint.RefuseHalfAdopted(ctx, r.ledger); err != nil {
		return err
	}
	if r.Witnesses != nil {
		r.Witnesses.Looks, r.Witnesses.Flags = r.DryRun, r.Flags
	}
	if r.judged, err = r.judge(ctx); err != nil {
		return err
	}
	if err := r.judged.RefuseOlder(); err != nil || r.DryRun || !r.makes() || r.Witnesses == nil {
		return err
	}
	return checkpoint.OnThisMachine(ctx, r.ledger, r.Machine, false)
}

// judge asks the witnesses about the checkpoint. Kinds of inputs may belong to another target, unless the mapping names
// the target.
func (r *run) judge(ctx context.Context) (*checkpoint.Verdict, error) {
	kinds := r.kinds()
	if r.Mapping.Target != (mapping.Target{}) {
		kinds = nil
	}
	return checkpoint.Judge(ctx, r.ledger, r.Witnesses, r.makes(), kinds)
}

// kinds are the kinds of inputs of which this checkpoint has not made leads yet.
func (r *run) kinds() (kinds []checkpoint.Kind) {
	for i := range r.shapes {
		if shape := r.shapes[i].Load(); shape != nil && len(shape.Columns) > 0 {
			kinds = append(kinds, checkpoint.KindOf(shape))
		}
	}
	return kinds
}

// heedDoubts counts the rows in doubt, and finds out whether the run before stopped because of doubts. Rows that are
// sent again do not raise that number.
func (r *run) heedDoubts(ctx context.Context) (err error) {
	l := &r.tally.limits
	if l.MaxInDoubt > 0 {
		if l.Standing, err = r.ledger.Standing(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.ResendInDoubt && r.Terms != nil: // what others send again is not known here
		l.Standing = 0
	case r.ResendInDoubt && l.MaxInDoubt > 0:
		l.MaxInDoubt = max(l.MaxInDoubt, l.Standing)
	}
	r.Limits = *l
	runs, err := checkpoint.Runs(ctx, r.ledger)
	runs = slices.DeleteFunc(runs, func(i checkpoint.RunInfo) bool { return i.Finished.IsZero() })
	if n := len(runs); n > 0 && runs[n-1].Outcome == "stopped" && runs[n-1].Counts[InDoubt.String()] > 0 {
		r.breaker.Beware()
	}
	return err
}

func (r *run) keepIn(l *checkpoint.Ledger) {
	r.ledger, r.opened, r.intake.sums, r.digests = l, l.Info(), l.Digests(), newDigester(l.Digests())
}

// openLedger opens the checkpoint; nil for a dry run without one.
func openLedger(o *Options) (*checkpoint.Ledger, error) {
	store, err := o.Open(o.Require, o.DryRun)
	if o.DryRun && !o.Require && errors.Is(err, checkpoint.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g := checkpoint.Gathering{
		Slots: slotsPerPlace * o.Concurrency, Places: o.Concurrency, Far: checkpoint.IsAddress(store.Info().Path),
	}
	return checkpoint.NewLedger(store, g), nil
}

// noteStart lists the run in the checkpoint and writes its witness. Only then may anything be claimed.
func (r *run) noteStart(ctx context.Context) error {
	unlock, err := r.Witnesses.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Judge again, because a person may have taken long to answer. What was answered holds; anything new is refused.
	now, err := r.judge(ctx)
	switch {
	case err != nil:
		return err
	case !r.judged.Covers(now):
		return now.Refuse("")
	}
	if err := now.Answer(ctx, r.ledger); err != nil {
		return err
	}
	if err := checkpoint.PutRun(ctx, r.ledger,
		checkpoint.RunInfo{ID: r.RunID, Command: r.Command, Started: r.began, Outcome: "unfinished"}); err != nil {
		return err
	}
	t, err := r.Witnesses.Begin(r.ledger, checkpoint.Witness{
		Run: r.RunID, Command: r.Command, Process: os.Getpid(), Started: r.began, Kinds: r.kinds(),
	}, r.Files.Dir)
	if err != nil {
		return err
	}
	r.ledger.Attest(t)
	return nil
}

func (r *run) closeLedger(s *report.Summary) error {
	var noted, closed error
	if r.sender != nil {
		noted = checkpoint.PutRun(context.Background(), r.ledger, checkpoint.RunInfo{
			ID: s.RunID, Command: s.Command, Started: s.StartedAt, Finished: s.FinishedAt, Outcome: s.Outcome,
			Counts: s.Rows.ByName(),
		})
	}
	gone := false
	if r.stopped != nil {
		gone, closed = r.ledger.Drop()
	} else {
		closed = r.ledger.Close()
	}
	// a later run that finds another checkpoint there has nothing to compare it with
	if s.Checkpoint.Sequence = r.ledger.Info().Sequence; gone {
		s.Checkpoint.ID, s.Checkpoint.Sequence = "", 0
	}
	return cmp.Or(noted, closed)
}

// How far JSONL is read to find its columns, before anything is sent: objects, and bytes that stay in memory.
const firstObjects, firstBytes = 1000, 16 << 20

// findShapes compares the shape of each input with those that the checkpoint knows. It refuses a file with nearly the
// columns of a known one but another key: every row would make another lead.
func (r *run) findShapes(ctx context.Context) error {
	var refused []error
	var ids []string // of the refused inputs
	for i, f := range r.Inputs {
		shape := r.shapeOf(f)
		known, kin, err := checkpoint.Noted(ctx, r.ledger, shape)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		r.shapes[i].Store(&shape)
		if err := refuseShape(f, &shape, kin); err != nil {
			kind := checkpoint.KindOf(&shape)
			refused, ids = append(refused, err), append(ids, kind.ID())
		}
	}
	switch answer := checkpoint.AnswerID(ids); {
	case len(refused) == 0 && r.NewKey != "":
		return fmt.Errorf("--new-key=%s answers nothing: files with these columns were already imported with "+
			"this key, or never\nhint: leave it out", r.NewKey)
	case len(refused) > 0 && r.NewKey != answer:
		return fmt.Errorf("%w; if new leads are meant: --new-key=%s", errors.Join(refused...), answer)
	}
	return nil
}

func (o *Options) shapeOf(f *source.File) checkpoint.Shape {
	return checkpoint.Shape{Columns: columnsOf(f), Key: o.keyForm(f), Namespace: o.Mapping.Namespace()}
}

// keyForm is the effective key, as text. If the row's own data are the key, it includes the source settings that change
// cells: read with others, each row would have another key.
func (o *Options) keyForm(f *source.File) string {
	form, s := o.Mapping.KeyForm(), &o.Mapping.Source
	if form != "" {
		return form
	}
	var settings report.Texts
	encoding, null := strings.ToLower(f.Info().Encoding), strings.Join(s.Null, ", ")
	settings.Add(encoding != "" && encoding != "utf-8", "encoding %s", encoding)
	settings.Add(s.NoQuotes, "quote none")
	settings.Add(s.Backslash, "escape backslash")
	settings.Add(null != "", "null %s", null)
	return strings.Join(settings, "; ")
}

// ownData reports whether the row's own data are the key: any other form names a column.
func ownData(form string) bool { return !strings.Contains(form, "{") }

// refuseShape refuses a file with nearly the columns of known ones but another key, or returns nil. The rejects of a
// run have the columns of its input, or fewer.
func refuseShape(f *source.File, s *checkpoint.Shape, kin []checkpoint.Kin) error {
	var same, other *checkpoint.Kin
	for i := range kin {
		if k := &kin[i]; k.Key == s.Key && k.Namespace == s.Namespace {
			same = k
		} else {
			other = k
		}
	}
	path := f.Info().Path
	switch {
	case ownData(s.Key) && isRejects(f):
		return nil
	case same != nil && ownData(s.Key):
		differ := fmt.Sprintf("missing: %d", same.Lacking)
		if len(same.Strange) > 0 {
			differ = "new: " + quoted(same.Strange)
		}
		return fmt.Errorf("%s: a file with nearly these columns was imported before, and the whole row is the key "+
			"(%s): every row would make a new lead\n"+
			"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\", or restore "+
			"the columns", path, differ)
	case same == nil && other != nil:
		return fmt.Errorf("%s: a file with these columns was imported with %s. The mapping now says %s: every row "+
			"would make a new lead\n"+
			"hint: restore key, namespace and source of the mapping", path, keyOf(other.Key, other.Namespace),
			keyOf(s.Key, s.Namespace))
	}
	return nil
}

func isRejects(f *source.File) bool {
	h := f.Header()
	if h.Open {
		if ahead := f.ReadAhead(1); len(ahead) > 0 {
			h = ahead[0].Header
		}
	}
	return h != nil && h.Rejects
}

func keyOf(key, namespace string) string {
	text := "key " + key
	if ownData(key) {
		text = "the whole row as key"
		if key != "" {
			text += " (" + key + ")"
		}
	}
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}

// columnsOf are the columns of an input. For JSONL they are the keys that all of the first objects have.
func columnsOf(f *source.File) []string {
	h := f.Header()
	if !h.Open {
		return h.Names[:h.Own]
	}
	var names []string // of the first row, less those that later ones lack
	for n, size := 0, 0; n < firstObjects && size < firstBytes; n++ {
		ahead := f.ReadAhead(n + 1)
		if len(ahead) <= n {
			break
		}
		row := &ahead[n]
		size += len(row.Raw)
		switch h := row.Header; {
		case row.Problem != nil || h == nil || h.Own == 0:
		case names == nil:
			names = slices.Clone(h.Names[:h.Own])
		default:
			names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(h.Names[:h.Own], name) })
		}
	}
	return names
}
