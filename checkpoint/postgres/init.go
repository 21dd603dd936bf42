package postgres

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"leadferry/checkpoint"
)

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
	at, err := parseAddress(name)
	if err != nil {
		return p, err
	}
	s := &Store{at: at, o: o}
	if s.writer, err = s.meet(); err != nil {
		return p, err
	}
	defer s.writer.close()
	ctx := context.Background()
	if err := s.fits(s.writer); err != nil {
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
	s.writer.warned()
	return p, nil
}

// vanished refuses a ledger that is not the one of which a run at hand tells, at this address and of
// this target, or says what is known of that one.
func (s *Store) vanished(ctx context.Context) error {
	var ancestors string
	if err := s.writer.QueryRow(ctx, `SELECT ancestor FROM leadferry.ledgers WHERE ledger = $1`, s.ledger).Scan(&ancestors); err != nil {
		return s.serverError(err)
	}
	for _, w := range s.o.Witnesses {
		if w.Path != s.at.name || w.ID == s.id || w.Target.Canonical() != s.target || w.Leads+w.Made == 0 || slices.Contains(strings.Fields(ancestors), w.ID) {
			continue
		}
		if s.o.Anew && s.fresh {
			s.predecessor = "of which " + w.Source + " tells knew leads of this target and is gone"
			return nil
		}
		return s.refuse(checkpoint.ErrGone, "is not the ledger of which "+w.Source+" tells, which knew leads of this target",
			"restore that one: rows of which it knew would be made again; --new-checkpoint begins anew all the same, where nothing is known yet")
	}
	return nil
}
