package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// pageRows is how many rows are read at a time by whoever goes through all of them.
const pageRows = 2048

// Each calls f with every key that the Filter takes, in order.
func (s *Store) Each(ctx context.Context, which checkpoint.Filter, f func(checkpoint.Entry) error) error {
	for r, err := range s.rows(ctx, which.State) {
		if err == nil && (which.Run == "" || r.visible().Maker() == which.Run) {
			err = f(r.visible().Entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows are all of a state, or all that are known, in the order of their keys; an error is the last.
func (s *Store) rows(ctx context.Context, state checkpoint.State) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		for last, more := []byte{}, true; more; {
			page, err := s.page(ctx, state, last)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page {
				if last = []byte(r.key); !yield(r, nil) {
					return
				}
			}
			more = len(page) == pageRows
		}
	}
}

// page are the next rows after a key.
func (s *Store) page(ctx context.Context, state checkpoint.State, after []byte) (page []*row, err error) {
	where := `l.state > 0`
	if state != checkpoint.Unknown {
		where = `l.state = $4`
	}
	err = s.read(ctx, func(c *pgx.Conn) error {
		page = page[:0]
		rows, err := c.Query(ctx, `SELECT `+columnsOf("l")+`, l.seq FROM leadferry.lead_rows l
			WHERE l.ledger = $1 AND l.key > $2 AND `+where+` AND $4::integer >= 0 ORDER BY l.ledger, l.key LIMIT $3`, s.ledger, after, pageRows, int32(state))
		if err != nil {
			return err
		}
		var one stood
		_, err = pgx.ForEachRow(rows, one.fields(), func() error {
			r, err := one.row()
			page = append(page, r)
			return err
		})
		return err
	})
	return page, err
}

// History tells what was done with a key.
func (s *Store) History(ctx context.Context, key string) (all []checkpoint.Event, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		all = nil
		f, err := (&wanted{keys: []string{key}}).find(c, s.ledger)
		if err != nil {
			return err
		}
		r := f.row(key, nil)
		var sends []*checkpoint.Kept
		rows, err := c.Query(ctx, decisionColumns+` WHERE ledger = $1 AND key = $2 ORDER BY number`, s.ledger, []byte(key))
		if err != nil {
			return err
		}
		err = eachDecision(rows, func(d *decision) error { sends = append(sends, d.Send); return nil })
		all = checkpoint.HistoryOf(r.Entry, r.Intent, sends)
		return err
	})
	return all, err
}

const decisionColumns = `SELECT number, key, lead_id, "exists", sent, run, decided, send FROM leadferry.decision_rows`

// Runs returns what was put, in the order of the first time.
func (s *Store) Runs(ctx context.Context) (all []checkpoint.RunInfo, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		all, err = runsOf(ctx, c, s.ledger, 0)
		return err
	})
	return all, err
}

// runsOf are the runs of a ledger, or the newest ones.
func runsOf(ctx context.Context, c *pgx.Conn, ledger int32, newest int) (all []checkpoint.RunInfo, err error) {
	rows, err := c.Query(ctx, `SELECT run, command, started, finished, outcome, counts FROM leadferry.run_rows WHERE ledger = $1
		ORDER BY number DESC LIMIT nullif($2::bigint, 0)`, ledger, newest)
	if err != nil {
		return nil, err
	}
	var r checkpoint.RunInfo
	var started, finished *time.Time
	var counts []byte
	_, err = pgx.ForEachRow(rows, []any{&r.ID, &r.Command, &started, &finished, &r.Outcome, &counts}, func() error {
		one := r
		one.ID, one.Command, one.Outcome = restore(r.ID), restore(r.Command), restore(r.Outcome)
		one.Started, one.Finished = moment(started), moment(finished)
		all = append(all, one)
		return json.Unmarshal(counts, &all[len(all)-1].Counts)
	})
	slices.Reverse(all)
	return all, err
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// PutRun keeps a run.
func (s *Store) PutRun(ctx context.Context, r checkpoint.RunInfo) error {
	return s.alone(false, func() error { return s.putRun(context.WithoutCancel(ctx), s.writer.Conn, r) })
}

func (s *Store) putRun(ctx context.Context, conn *pgx.Conn, r checkpoint.RunInfo) error {
	counts, err := json.Marshal(r.Counts)
	if err != nil {
		return err
	}
	instant := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = time.UnixMilli(t.UnixMilli()).UTC()
		return &t
	}
	_, err = conn.Exec(ctx, `INSERT INTO leadferry.run_rows (ledger, run, command, started, finished, outcome, counts, worker)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (ledger, run) DO UPDATE SET command = $3, started = $4, finished = $5, outcome = $6, counts = $7`,
		s.ledger, clean(r.ID), clean(r.Command), instant(r.Started), instant(r.Finished), clean(r.Outcome), string(counts), s.worker)
	return err
}

// Audit returns what people decided, see [checkpoint.Store].
func (s *Store) Audit(ctx context.Context) (a checkpoint.Audit, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		a = checkpoint.Audit{}
		rows, err := c.Query(ctx, decisionColumns+` WHERE ledger = $1 ORDER BY number`, s.ledger)
		if err != nil {
			return err
		}
		made := map[int64]*decision{}
		err = eachDecision(rows, func(d *decision) error {
			made[d.number], a.Decisions = d, append(a.Decisions, d.KeptDecision)
			return nil
		})
		if err != nil {
			return err
		}
		if rows, err = c.Query(ctx, `SELECT decision, found, other, text FROM leadferry.contradictions WHERE ledger = $1 ORDER BY number`, s.ledger); err != nil {
			return err
		}
		var number, found int64
		var other []byte
		var text string
		_, err = pgx.ForEachRow(rows, []any{&number, &found, &other, &text}, func() error {
			if d := made[number]; d != nil { // else it came later
				a.Contradictions = append(a.Contradictions, checkpoint.Contradiction{
					Decision: d.Decision, Decided: d.At, Found: time.UnixMilli(found).UTC(), Other: string(other), Text: text,
				})
			}
			return nil
		})
		return err
	})
	return a, err
}

// Check looks through every row, the owners of leads and the counts. What is wrong is
// [checkpoint.ErrDamaged].
func (s *Store) Check(ctx context.Context) error {
	err := s.Each(ctx, checkpoint.Filter{}, func(checkpoint.Entry) error { return nil })
	for _, one := range []struct{ what, sql string }{
		{"keys are not as its workers have counted them", `SELECT count(*) FROM
			(SELECT count(*) FILTER (WHERE state = 1) AS a, count(*) FILTER (WHERE state = 2) AS b, count(*) FILTER (WHERE state = 3) AS c,
				count(*) FILTER (WHERE state = 4) AS d, count(*) FILTER (WHERE state = 5) AS e FROM leadferry.lead_rows WHERE ledger = $1) x,
			(SELECT coalesce(sum(created), 0) AS a, coalesce(sum(partial), 0) AS b, coalesce(sum(rejected), 0) AS c,
				coalesce(sum(in_doubt), 0) AS d, coalesce(sum(not_made), 0) AS e FROM leadferry.workers WHERE ledger = $1) y
			WHERE (x.a, x.b, x.c, x.d, x.e) IS DISTINCT FROM (y.a, y.b, y.c, y.d, y.e)`},
		{"leads are not found by their ID", `SELECT count(*) FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.state IN (1, 2) AND l.lead_id <> ''
			AND NOT EXISTS (SELECT 1 FROM leadferry.lead_ids i WHERE i.ledger = $1 AND i.lead_id = l.lead_id AND i.key = l.key)`},
	} {
		var wrong int
		if err == nil {
			err = s.read(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, one.sql, s.ledger).Scan(&wrong) })
		}
		if err == nil && wrong != 0 {
			err = s.refuse(checkpoint.ErrDamaged, fmt.Sprintf("is not in order: %d %s", wrong, one.what), "keep it as it is, export what it knows with leadferry checkpoint export, and report this")
		}
	}
	return err
}

// shapeKey is what a shape stands under.
type shapeKey struct{ columns, key, namespace string }

func (s *Store) shapeKey(shape *checkpoint.Shape) shapeKey {
	k := s.digests.Shape(shape)
	return shapeKey{string(k.Columns), clean(k.Key), clean(k.Namespace)}
}

// newShape says whether a claim has a shape that this process has not noted yet.
func (s *Store) newShape(changes []*checkpoint.Change) bool { return len(s.shapesOf(changes)) > 0 }

func (s *Store) shapesOf(changes []*checkpoint.Change) (all []shapeKey) {
	var last *checkpoint.Shape
	for _, c := range changes {
		if c.Kind != checkpoint.Claim || c.Shape == nil || c.Shape == last || len(c.Shape.Columns) == 0 {
			continue
		}
		last = c.Shape
		if k := s.shapeKey(c.Shape); !s.shapes[k] && !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// keepShapes notes shapes, each once.
func (s *Store) keepShapes(shapes []shapeKey) error {
	for _, k := range shapes {
		_, err := s.writer.Exec(context.Background(), `INSERT INTO leadferry.shapes (ledger, columns, key, namespace) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			s.ledger, []byte(k.columns), k.key, k.namespace)
		if err != nil {
			return err
		}
	}
	return nil
}

// Shapes returns all by which leads were made, see [checkpoint.Store].
func (s *Store) Shapes(ctx context.Context) (all []checkpoint.KeptShape, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT columns, key, namespace FROM leadferry.shapes WHERE ledger = $1`, s.ledger)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[checkpoint.KeptShape])
		return err
	})
	for i := range all {
		all[i].Key, all[i].Namespace = restore(all[i].Key), restore(all[i].Namespace)
	}
	return all, err
}
