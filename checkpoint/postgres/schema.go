package postgres

import (
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"leadferry/checkpoint"
	"leadferry/checkpoint/postgres/server"
)

//go:embed *.sql
var files embed.FS

// statement returns the statement in a file. Conditions and columns replace its words in capitals.
func statement(name string) string { return statements()[name] }

var statements = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	list, _ := files.ReadDir(".") // cannot fail: the files are in the program
	for _, f := range list {
		text, _ := files.ReadFile(f.Name())
		all[strings.TrimSuffix(f.Name(), ".sql")] = string(text)
	}
	var kinds []string
	for i, c := range columns {
		kinds = append(kinds, fmt.Sprintf("$%d::%s[]", i+6, c.kind))
	}
	words := strings.NewReplacer("BESIDE", all["beside"], "UNCHANGING", all["unchanging"],
		"LISTS", strings.Join(kinds, ", "), "COLUMNS", columnNames(""), "GIVEN", columnNames("g."))
	for name, text := range all {
		all[name] = words.Replace(text)
	}
	return all
})

func (s *Store) prepare() error {
	have, err := s.versionThere()
	switch {
	case err != nil || have == checkpoint.Format:
		return err
	case have != 0:
		return s.Refuse(checkpoint.ErrVersion,
			fmt.Sprintf("has schema version %d; this program reads version %d", have, checkpoint.Format),
			"use the program that made it, or export it with that one and adopt the export in another database")
	case s.o.ReadOnly:
		return s.Refuse(checkpoint.ErrMissing, "there is no ledger in this database",
			"leadferry checkpoint init makes the schema; a run makes the ledger of its target")
	}
	err = s.conn.Together(func() error {
		if _, err := s.conn.Do(`SELECT pg_advisory_xact_lock(hashtext('leadferry schema'))`); err != nil {
			return err
		}
		if have, err := s.versionThere(); err != nil || have == checkpoint.Format { // another process was quicker
			return err
		}
		const begin = `CREATE SCHEMA IF NOT EXISTS leadferry; SET LOCAL search_path = leadferry;`
		return s.conn.Script(begin + statement("schema") +
			fmt.Sprintf("INSERT INTO version VALUES (%d)", checkpoint.Format))
	})
	if mayNot(err) {
		return s.Refuse(checkpoint.ErrPlace, "its schema is not there, and this user may not make it",
			"if it was there before, restore it (docs/fleet.md): a new one knows no lead. Else have the owner of the "+
				"database run leadferry checkpoint init postgres://OWNER@HOST/DATABASE, and grant this user the role "+
				"leadferry_worker")
	}
	return err
}

// versionThere returns the version of the schema in the database; 0: there is none.
func (s *Store) versionThere() (number int, err error) {
	var there bool // pg_class shows what was just committed; the lookup of a name may use a cache
	err = s.conn.One(`SELECT EXISTS (SELECT FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'leadferry' AND c.relname = 'version')`).Scan(&there)
	if err == nil && there {
		err = s.conn.One(`SELECT number FROM leadferry.version`).Scan(&number)
	}
	return number, err
}

// Prepared says what Init has made.
type Prepared struct {
	Database, Owner string
	Grants          string // statements for somebody who may make roles; "": the roles exist
}

// Init makes the schema at an address, and the roles of those who use it.
func Init(name string, o Options) (p Prepared, err error) {
	s, err := connect(name, checkpoint.Target{}, o)
	if err != nil {
		return p, err
	}
	defer s.conn.Close()
	if err := s.prepare(); err != nil {
		return p, s.Explain(err)
	}
	err = s.conn.One(`SELECT current_database(), pg_get_userbyid(nspowner) FROM pg_namespace
		WHERE nspname = 'leadferry'`).Scan(&p.Database, &p.Owner)
	if err == nil {
		err = s.conn.Script(statement("roles"))
	}
	if mayNot(err) {
		p.Grants, err = statement("roles"), nil
	}
	return p, s.Explain(err)
}

// Targets returns the targets that have a ledger at an address.
func Targets(name string, o Options) (all []checkpoint.Target, err error) {
	o.ReadOnly = true
	s, err := connect(name, checkpoint.Target{}, o)
	if err != nil {
		return nil, err
	}
	defer s.conn.Close()
	have, err := s.versionThere()
	if err == nil && have != 0 {
		all, err = server.All(s.conn, pgx.RowToStructByPos[checkpoint.Target],
			`SELECT base_url, leads_url, trunk_id FROM leadferry.ledgers ORDER BY ledger`)
	}
	return all, s.Explain(err)
}

const secretSQL = `SELECT secret FROM leadferry.digest_keys WHERE ledger = $1`

// findLedger finds the target's ledger, or makes it. Another process may make it at the same time.
func (s *Store) findLedger() error {
	makes := !s.o.Require && !s.o.ReadOnly
	var err error
	if makes {
		_, err = s.conn.Do(`WITH made AS (
				INSERT INTO leadferry.ledgers (id, base_url, leads_url, trunk_id) VALUES ($1, $2, $3, $4)
				ON CONFLICT DO NOTHING RETURNING ledger
			) INSERT INTO leadferry.digest_keys (ledger, secret) SELECT ledger, $5 FROM made`,
			checkpoint.NewID(), s.target.BaseURL, s.target.LeadsURL, s.target.TrunkID, checkpoint.NewSecret())
	}
	if err == nil {
		err = s.conn.One(`SELECT ledger, id, missing, since FROM leadferry.ledgers
			WHERE base_url = $1 AND leads_url = $2 AND trunk_id = $3`,
			s.target.BaseURL, s.target.LeadsURL, s.target.TrunkID).Scan(&s.ledger, &s.id, &s.missing, &s.since)
	}
	if errors.Is(err, pgx.ErrNoRows) && !makes {
		return s.Refuse(checkpoint.ErrMissing, "has no ledger of this target",
			"check the target's flags; a run without --require-checkpoint begins one")
	}
	var secret []byte // of the digests; only a reader without a run may lack it
	if err == nil {
		err = s.conn.One(secretSQL, s.ledger).Scan(&secret)
	}
	switch {
	case mayNot(err) && s.o.ReadOnly && s.o.Run == "":
		secret = checkpoint.NewSecret()
	case err != nil:
		return err
	}
	s.digests = checkpoint.NewDigester(secret)
	return s.findBeside()
}

// findBeside finds the trunk's other ledgers: other machines may have made its leads by another address of the service.
func (s *Store) findBeside() error {
	w := checkpoint.Witness{Place: s.Name, Source: s.Name}
	s.beside = nil
	to := &w.Target
	at := []any{&w.Ledger, &to.BaseURL, &to.LeadsURL, &to.TrunkID, &w.Leads, &w.Commits, &w.Run, &w.Started}
	return s.conn.Each(at, func() error { s.beside = append(s.beside, w); return nil },
		statement("others"), s.target.TrunkID, s.ledger)
}
