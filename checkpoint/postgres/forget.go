package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
)

// Forget removes what is known of keys, see [checkpoint.Store]. What the server's log of changes
// and its backups hold stays there until they go.
func (s *Store) Forget(ctx context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	err = s.alone(true, func() (err error) {
		r, err = s.forget(ctx, keys, unblock)
		return err
	})
	if mayNot(err) {
		return r, s.refuse(checkpoint.ErrPlace, "this user may not remove rows", "have the owner of the schema forget them")
	}
	if err == nil {
		s.claims.drop(slices.Values(keys))
		s.claimed.Store(true)
		s.erased.Store(true)
	}
	return r, err
}

func (s *Store) forget(ctx context.Context, keys []string, unblock bool) (r checkpoint.ForgetResult, err error) {
	q, seen := &wanted{}, map[string]bool{}
	for i, key := range keys {
		if !checkpoint.ValidKey(key) {
			return r, &checkpoint.ListError{Index: i, Key: key, Text: "its " + checkpoint.ErrKey.Error()}
		}
		if !seen[key] {
			s.want(q, key, "")
		}
		seen[key] = true
	}
	w, _, err := s.working(q)
	if err != nil {
		return r, err
	}
	leads, states, before := map[string]bool{}, map[checkpoint.State]int{}, 0
	for i, key := range q.keys {
		row := w.rows[key]
		if held, _ := w.held(row); held && unblock { // as resolve refuses it: it may be sent still, and again then
			return r, &checkpoint.ListError{Index: i, Key: key, Text: heldText, Hint: heldHint}
		}
		r.Count(row.state())
		if states[row.state()]++; row.forgotten {
			before++
		}
		if row.lead() != "" {
			leads[row.lead()] = true
		}
	}
	if err := s.erase(ctx, q, leads); err != nil {
		return r, err
	}
	blocked := -before
	if !unblock {
		blocked += len(q.keys)
		if err := s.block(ctx, q); err != nil {
			return r, err
		}
	}
	_, err = s.writer.Exec(ctx, `UPDATE leadferry.workers SET created = created - $2, partial = partial - $3, rejected = rejected - $4,
		in_doubt = in_doubt - $5, not_made = not_made - $6, forgotten = forgotten + $7 WHERE worker = $1`,
		s.worker, states[checkpoint.Created], states[checkpoint.Partial], states[checkpoint.Rejected], states[checkpoint.InDoubt], states[checkpoint.NotMade], blocked)
	return r, err
}

// block leaves keyed hashes of keys, and of their folds.
func (s *Store) block(ctx context.Context, q *wanted) error {
	for i, key := range q.keys {
		folded := []byte{}
		if f := rowkey.Fold(key); f != "" {
			folded = s.digests.Blocked(f)
		}
		if _, err := s.writer.Exec(ctx, `INSERT INTO leadferry.forgotten (ledger, hash, fold) VALUES ($1, $2, $3)`, s.ledger, q.hashes[i], folded); err != nil {
			return err
		}
	}
	return nil
}

// erase removes keys, decisions about them and their leads wherever they stand.
func (s *Store) erase(ctx context.Context, q *wanted, leads map[string]bool) error {
	var ids []string
	for lead := range leads {
		ids = append(ids, checkpoint.Clean(lead))
	}
	keys := bytesOf(q.keys)
	for _, one := range []struct {
		sql  string
		args []any
	}{
		{`DELETE FROM leadferry.lead_rows WHERE ledger = $1 AND key = ANY ($2)`, []any{keys}},
		{`DELETE FROM leadferry.lead_ids WHERE ledger = $1 AND (key = ANY ($2) OR lead_id = ANY ($3))`, []any{keys, ids}},
		{`DELETE FROM leadferry.forgotten WHERE ledger = $1 AND hash = ANY ($2)`, []any{q.hashes}},
	} {
		if _, err := s.writer.Exec(ctx, one.sql, append([]any{s.ledger}, one.args...)...); err != nil {
			return err
		}
	}
	decisions, err := s.notes(ctx, s.writer.Conn, beginSo, checkpoint.DecidedNote)
	if err != nil {
		return err
	}
	gone := func(key string) bool { return slices.Contains(q.keys, key) }
	put := func(n checkpoint.Note) error { return s.putNote(ctx, s.writer.Conn, n) }
	if err := checkpoint.ForgetDecisions(decisions, gone, leads, put); err != nil || len(leads) == 0 {
		return err
	}
	return s.eachDoubt(func(w *working, r *row) {
		if clean := r.Intent.Scrubbed(leads); clean != r.Intent {
			next := *r
			next.Intent = clean
			w.put(&next)
		}
	})
}

// vacuum frees the room of what was removed, so that it is written over. It is no error if this
// user may not. Whoever calls it holds the lock of the writer.
func (s *Store) vacuum() {
	for _, table := range []string{"lead_rows", "lead_ids", "notes"} {
		_, _ = s.writer.Exec(context.Background(), `VACUUM leadferry.`+table)
	}
	s.writer.Warned()
}

func collectKeys(rows pgx.Rows) ([]string, error) {
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = string(key)
	}
	return all, err
}
