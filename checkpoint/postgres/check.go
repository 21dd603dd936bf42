package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

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
