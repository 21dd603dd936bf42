package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
)

const putNoteSQL = `INSERT INTO leadferry.notes AS n (ledger, name, value) VALUES ($1, $2, $3) ON CONFLICT (ledger,
	name) DO UPDATE SET value = excluded.value`

// notes are those whose names meet a condition.
func (s *Store) notes(ctx context.Context, c *pgx.Conn, which string, arg any) (all []checkpoint.Note, err error) {
	rows, err := c.Query(ctx, `SELECT name, value FROM leadferry.notes WHERE ledger = $1 AND `+which+` ORDER BY name`,
		s.ledger, arg)
	if err != nil {
		return nil, err
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		all = append(all, checkpoint.Note{Name: name, Value: []byte(value)})
		return nil
	})
	return all, err
}

// beginSo says of a note that its name begins with a text.
const beginSo = `starts_with(name, $2)`

// Notes returns those whose names begin so, see [checkpoint.Store].
func (s *Store) Notes(ctx context.Context, prefix string) (all []checkpoint.Note, err error) {
	err = s.read(ctx, func(c *pgx.Conn) error {
		all, err = s.notes(ctx, c, beginSo, prefix)
		return err
	})
	return all, err
}

// newShapes are the notes of shapes that claims have and that this process has not noted yet.
func (s *Store) newShapes(changes []*checkpoint.Change) (all []checkpoint.Note) {
	var last *checkpoint.Shape
	for _, c := range changes {
		if c.Kind != checkpoint.Claim || c.Shape == last {
			continue
		}
		last = c.Shape
		if n := s.digests.ShapeNote(c.Shape); n.Name != "" && !s.shapes[n.Name] {
			all = append(all, n)
		}
	}
	return all
}
