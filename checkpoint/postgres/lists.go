package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

// pageRows is how many rows are read at a time when all are read.
const pageRows = 2048

// Scan calls f with what is stored under each key, see [checkpoint.Store].
func (s *Store) Scan(ctx context.Context, which checkpoint.Filter, f func(checkpoint.KeptKey) error) error {
	for last, more := []byte{}, true; more; {
		page, err := s.page(ctx, which.State, last)
		for i := 0; i < len(page) && err == nil; i++ {
			err = f(page[i].KeptKey)
			last = []byte(page[i].key)
		}
		if err != nil {
			return err
		}
		more = len(page) == pageRows
	}
	return nil
}

// page are the next rows after a key.
func (s *Store) page(ctx context.Context, state checkpoint.State, after []byte) (page []*row, err error) {
	where := `l.state > 0`
	if state != checkpoint.Unknown {
		where = `l.state = $4`
	}
	err = s.read(ctx, func(c *pgx.Conn) error {
		page = page[:0]
		rows, err := c.Query(ctx, `SELECT `+columnNames("l.")+`, l.seq FROM leadferry.lead_rows l
			WHERE l.ledger = $1 AND l.key > $2 AND
			`+where+` AND $4::integer >= 0 ORDER BY l.ledger, l.key LIMIT $3`, s.ledger, after, pageRows, int32(state))
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

// Under is what is stored under a key, see [checkpoint.Store].
func (s *Store) Under(ctx context.Context, key string) (k checkpoint.KeptKey, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		f, err := (&wanted{keys: []string{key}}).find(c, s.ledger)
		if err == nil {
			k = f.row(key, nil).KeptKey
		}
		return err
	})
	return k, err
}

// Check looks through every row, the owners of leads and the counts. What is wrong is
// [checkpoint.ErrDamaged].
func (s *Store) Check(ctx context.Context) error {
	err := s.Scan(ctx, checkpoint.Filter{}, func(checkpoint.KeptKey) error { return nil })
	for _, one := range []struct{ what, sql string }{
		{"keys are not as its workers have counted them", `SELECT count(*) FROM
			(SELECT count(*) FILTER (WHERE state = 1) AS a, count(*) FILTER (WHERE state = 2) AS b, count(*) FILTER
			(WHERE state = 3) AS c,
				count(*) FILTER (WHERE state = 4) AS d, count(*) FILTER (WHERE state = 5) AS e FROM leadferry.lead_rows
				WHERE ledger = $1) x,
			(SELECT coalesce(sum(created), 0) AS a, coalesce(sum(partial), 0) AS b, coalesce(sum(rejected), 0) AS c,
				coalesce(sum(in_doubt), 0) AS d, coalesce(sum(not_made), 0) AS e FROM leadferry.workers WHERE ledger =
				$1) y
			WHERE (x.a, x.b, x.c, x.d, x.e) IS DISTINCT FROM (y.a, y.b, y.c, y.d, y.e)`},
		{"leads are not found by their ID", `SELECT count(*) FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.state
			IN (1, 2) AND l.lead_id <> ''
			AND NOT EXISTS (SELECT 1 FROM leadferry.lead_ids i WHERE i.ledger = $1 AND i.lead_id = l.lead_id AND i.key =
			l.key)`},
	} {
		var wrong int
		if err == nil {
			err = s.read(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, one.sql, s.ledger).Scan(&wrong) })
		}
		if err == nil && wrong != 0 {
			err = s.refuse(checkpoint.ErrDamaged, fmt.Sprintf("is not in order: %d %s", wrong, one.what),
				"keep it as it is, export what it knows with leadferry checkpoint export, and report this")
		}
	}
	return err
}
