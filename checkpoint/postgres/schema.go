package postgres

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"leadferry/checkpoint"
)

//go:embed schema.sql
var schemaSQL string

// migrations bring a schema from one version to the next; the first one makes it.
var migrations = [...]string{schemaSQL}

// migrate makes the schema or brings it to this version, where this user may.
func (s *Store) migrate(ctx context.Context) error {
	have, err := s.version(ctx)
	switch {
	case err != nil:
		return err
	case have == len(migrations):
		return nil
	case have > len(migrations):
		return s.refuse(checkpoint.ErrVersion, fmt.Sprintf("its schema has version %d, this program knows versions up to %d", have, len(migrations)), "use the newer leadferry that made it")
	case s.o.ReadOnly && have == 0:
		return s.refuse(checkpoint.ErrMissing, "there is no ledger in this database", "leadferry checkpoint init makes the schema, and a run the ledger of its target")
	case s.o.ReadOnly:
		return s.refuse(checkpoint.ErrVersion, "its schema is of an older version", "leadferry checkpoint init brings it to this one")
	}
	err = pgx.BeginFunc(ctx, s.writer.Conn, func(tx pgx.Tx) error { return s.carryOut(ctx, tx.Conn().PgConn()) })
	if mayNot(err) {
		return s.refuse(checkpoint.ErrPlace, "its schema is not there yet or of an older version, and this user may not make it",
			"have the owner of the database run leadferry checkpoint init "+s.at.Name+" and grant this user the role leadferry_worker")
	}
	return s.serverError(err)
}

// carryOut carries out the migrations that are missing, inside a transaction.
func (s *Store) carryOut(ctx context.Context, c *pgconn.PgConn) error {
	if _, err := c.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('leadferry schema'))`).ReadAll(); err != nil {
		return err
	}
	have, err := s.version(ctx)
	if err != nil || have >= len(migrations) { // another process was quicker
		return err
	}
	var todo []string
	if have == 0 {
		todo = append(todo, `CREATE SCHEMA IF NOT EXISTS leadferry`)
	}
	todo = append(append(todo, `SET LOCAL search_path = leadferry`), migrations[have:]...)
	for _, one := range append(todo, fmt.Sprintf(`UPDATE version SET number = %d`, len(migrations))) {
		if _, err := c.Exec(ctx, one).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// version is that of the schema; 0: there is none.
func (s *Store) version(ctx context.Context) (number int, err error) {
	var there bool // by the tables, which show what was just committed: names are looked up in a cache
	err = s.writer.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'leadferry' AND c.relname = 'version')`).Scan(&there)
	if err == nil && there {
		err = s.writer.QueryRow(ctx, `SELECT number FROM leadferry.version`).Scan(&number)
	}
	if mayNot(err) {
		return 0, s.refuse(checkpoint.ErrPlace, "this user may not read it", "grant the user the role leadferry_worker, or leadferry_reader; leadferry checkpoint init says how")
	}
	if err != nil {
		err = s.serverError(err)
	}
	return number, err
}

// mayNot says that a privilege is missing.
func mayNot(err error) bool { return isOneOf(err, "42501") }

// newID is a random name that no other ledger has.
func newID() string { return hex.EncodeToString(newSecret()[:8]) }

func newSecret() []byte {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return secret
}

//go:embed roles.sql
var rolesSQL string

// makeRoles makes the roles that are not there.
const makeRoles = `DO $$ DECLARE r text; BEGIN
	FOREACH r IN ARRAY ARRAY['leadferry_worker', 'leadferry_reader'] LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', r); END IF;
	END LOOP;
END $$;
`

// Prepared is what Init made of a database.
type Prepared struct {
	Database, Owner string
	Version         int    // of the schema
	Roles           bool   // they are there, and may what they are to
	Grants          string // Roles: false: what somebody who may make roles has to carry out
}

// Init makes the schema at an address, or brings it to this version, and the roles of those who
// use it.
func Init(name string, o Options) (p Prepared, err error) {
	s, err := connect(name, checkpoint.Target{}, o)
	if err != nil {
		return p, err
	}
	defer s.writer.Close()
	ctx := context.Background()
	if err := s.writer.Promises(s.o.ReadOnly); err != nil {
		return p, err
	}
	if err := s.migrate(ctx); err != nil {
		return p, err
	}
	err = s.writer.QueryRow(ctx, `SELECT current_database(), pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'leadferry'`).Scan(&p.Database, &p.Owner)
	if err != nil {
		return p, s.serverError(err)
	}
	p.Version, p.Roles = len(migrations), true
	if _, err := s.writer.PgConn().Exec(ctx, makeRoles+rolesSQL).ReadAll(); mayNot(err) {
		p.Roles, p.Grants = false, makeRoles+rolesSQL
	} else if err != nil {
		return p, s.serverError(err)
	}
	s.writer.Warned()
	return p, nil
}

// findLedger finds the target's ledger, or makes it.
func (s *Store) findLedger(ctx context.Context) error {
	find := func() error {
		return s.writer.QueryRow(ctx, `SELECT ledger, id, missing, since FROM leadferry.ledgers
			WHERE base_url = $1 AND leads_url = $2 AND trunk_id = $3`, s.target.BaseURL, s.target.LeadsURL, s.target.TrunkID).
			Scan(&s.ledger, &s.id, &s.missing, &s.since)
	}
	err := find()
	if errors.Is(err, pgx.ErrNoRows) {
		if s.o.Require || s.o.ReadOnly {
			return s.refuse(checkpoint.ErrMissing, "has no ledger of this target", "check the target's flags; a run without --require-checkpoint begins one")
		}
		if err := s.makeLedger(ctx); err != nil {
			return s.serverError(err)
		}
		err = find()
	}
	if err != nil {
		return s.serverError(err)
	}
	return s.findDigests(ctx)
}

// findDigests reads the key of the ledger's digests. Who only looks need not have it, unless it is for a run.
func (s *Store) findDigests(ctx context.Context) error {
	var secret []byte
	err := s.writer.QueryRow(ctx, `SELECT secret FROM leadferry.digest_keys WHERE ledger = $1`, s.ledger).Scan(&secret)
	switch {
	case mayNot(err) && s.o.ReadOnly && s.o.Run == "":
		secret = newSecret()
	case mayNot(err):
		return s.mayOnlyLook()
	case err != nil:
		return s.serverError(err)
	}
	s.digests = checkpoint.NewDigester(secret)
	return nil
}

func (s *Store) mayOnlyLook() error {
	return s.refuse(checkpoint.ErrPlace, "this user may only look at it", "grant the user the role leadferry_worker")
}

// makeLedger makes one, unless another process does at the same time.
func (s *Store) makeLedger(ctx context.Context) error {
	_, err := s.writer.Exec(ctx, `WITH made AS (
			INSERT INTO leadferry.ledgers (id, base_url, leads_url, trunk_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING ledger
		) INSERT INTO leadferry.digest_keys (ledger, secret) SELECT ledger, $5 FROM made`,
		newID(), s.target.BaseURL, s.target.LeadsURL, s.target.TrunkID, newSecret())
	return err
}

// begin makes the worker's row.
func (s *Store) begin(ctx context.Context) (err error) {
	if err := s.enlist(ctx); err != nil {
		return err
	}
	s.fresh, err = s.empty(ctx)
	return err
}

// empty says that nothing is known of any key, and that no run came to its end.
func (s *Store) empty(ctx context.Context) (empty bool, err error) {
	err = s.writer.QueryRow(ctx, `SELECT NOT EXISTS (SELECT 1 FROM leadferry.ledgers WHERE ledger = $1 AND missing <> '')
		AND NOT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1 AND state > 0)
		AND NOT EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1) 
		AND NOT EXISTS (SELECT 1 FROM leadferry.notes WHERE ledger = $1 AND (starts_with(name, 'decided ') OR starts_with(name, 'shape ')
			OR starts_with(name, 'run ') AND value::jsonb ? 'Finished' OR value LIKE '%"adopting":{%'))`, s.ledger).Scan(&empty)
	if err != nil {
		err = s.serverError(err)
	}
	return empty, err
}
