-- $1 ledger, $2 worker; the lists say, by row: what is to stand, what it is seen as, whether it is a claim, the lead it comes to
-- own, and the hash of a key that is new. Rows that do not come back were refused. Words in capitals are filled in by statements.
WITH me AS MATERIALIZED (
	SELECT fenced IS NULL AS live FROM leadferry.workers
	WHERE worker = $2 AND PROMISED
	FOR NO KEY UPDATE
), given AS MATERIALIZED (
	SELECT * FROM unnest($3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::integer[], $9::text[], $10::text[], $11::text[], $12::text[],
		$13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bytea[], $20::bytea[], $21::text[], $22::bytea[],
		$23::text[], $24::bigint[], $25::smallint[], $26::boolean[], $27::text[], $28::bytea[])
	AS g (COLUMNS, hidden, seen, was, claim, owns, hash)
), number AS MATERIALIZED (
	SELECT nextval('leadferry.commits') AS seq
), owned AS (
	INSERT INTO leadferry.lead_ids (ledger, lead_id, key)
	SELECT $1, g.owns, g.key FROM given g, me WHERE g.owns <> ''
	OVER RETURNING lead_id, key
), fit AS NOT MATERIALIZED (
	SELECT g.* FROM given g, me
	WHERE (me.live OR NOT g.claim) AND (g.owns = ''
		OR (g.owns, g.key) IN (SELECT lead_id, key FROM owned) -- hashed; EXISTS would go through all for each
		OR EXISTS (SELECT 1 FROM leadferry.lead_ids i WHERE i.ledger = $1 AND i.lead_id = g.owns AND i.key = g.key OFFSET 0))
), put AS (
	INSERT INTO leadferry.lead_rows (ledger, seq, COLUMNS, hidden)
	SELECT $1, n.seq, GIVEN, string_to_array(nullif(g.hidden, ''), E'\x1e')
	FROM fit g, number n
	WHERE g.seen = 0 AND (NOT EXISTS (SELECT 1 FROM leadferry.forgotten f WHERE f.ledger = $1)
		OR NOT EXISTS (SELECT 1 FROM leadferry.forgotten f WHERE f.ledger = $1 AND f.hash = g.hash OFFSET 0))
	OVER RETURNING key, seq, 0::smallint AS was, state
), changed AS (
	UPDATE leadferry.lead_rows l SET (seq, COLUMNS, hidden) = (n.seq, GIVEN, string_to_array(nullif(g.hidden, ''), E'\x1e'))
	FROM number n, fit g CROSS JOIN LATERAL (
		SELECT r.ctid FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.key = g.key AND r.seq = g.seen OFFSET 0 -- see find.sql
	) at
	WHERE l.ctid = at.ctid AND l.seq = g.seen AND g.seen > 0
	RETURNING l.key, l.seq, g.was, l.state
), stored AS MATERIALIZED (
	SELECT * FROM put UNION ALL SELECT * FROM changed
), counted AS MATERIALIZED (
	SELECT count(*) FILTER (WHERE state = 1) - count(*) FILTER (WHERE was = 1) AS created,
		count(*) FILTER (WHERE state = 2) - count(*) FILTER (WHERE was = 2) AS partial,
		count(*) FILTER (WHERE state = 3) - count(*) FILTER (WHERE was = 3) AS rejected,
		count(*) FILTER (WHERE state = 4) - count(*) FILTER (WHERE was = 4) AS in_doubt,
		count(*) FILTER (WHERE state = 5) - count(*) FILTER (WHERE was = 5) AS not_made
	FROM stored
), bumped AS (
	UPDATE leadferry.workers w SET commits = w.commits + 1, seq = n.seq, beat = clock_timestamp(),
		created = w.created + c.created, partial = w.partial + c.partial, rejected = w.rejected + c.rejected,
		in_doubt = w.in_doubt + c.in_doubt, not_made = w.not_made + c.not_made
	FROM counted c, number n, me WHERE w.worker = $2
	RETURNING w.commits, w.seq, w.fenced IS NULL AS live
)
SELECT b.commits, b.seq, b.live, s.key FROM bumped b LEFT JOIN stored s ON true
