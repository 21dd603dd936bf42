-- Writes rows of the ledger $1 for the worker $2. The lists have one value for each row: the version in which it was seen ($3; 0: it is
-- new), its state then ($4), the hash of a new key ($5), and then its columns. All rows are written or none: the transaction ends if
-- another worker has changed a row, or if a new key was forgotten. schema.go replaces the words in capitals.
WITH number AS MATERIALIZED (
	SELECT seq FROM leadferry.workers WHERE worker = $2
), given AS MATERIALIZED (
	SELECT * FROM unnest($3::bigint[], $4::smallint[], $5::bytea[], LISTS) AS g (seen, was, hash, COLUMNS)
), put AS (
	INSERT INTO leadferry.lead_rows (ledger, seq, COLUMNS)
	SELECT $1, n.seq, GIVEN FROM given g, number n
	WHERE g.seen = 0 AND (NOT EXISTS (SELECT 1 FROM leadferry.forgotten f WHERE f.ledger = $1)
		OR NOT EXISTS (SELECT 1 FROM leadferry.forgotten f WHERE f.ledger = $1 AND f.hash = g.hash OFFSET 0))
	RETURNING 0::smallint AS was, state
), changed AS (
	UPDATE leadferry.lead_rows l SET (seq, COLUMNS) = (n.seq, GIVEN)
	FROM number n, given g CROSS JOIN LATERAL (
		SELECT r.ctid FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.key = g.key AND r.seq = g.seen OFFSET 0 -- see find.sql
	) at
	WHERE l.ctid = at.ctid AND l.seq = g.seen AND g.seen > 0
	RETURNING g.was, l.state
), stored AS MATERIALIZED (
	SELECT * FROM put UNION ALL SELECT * FROM changed
), counted AS MATERIALIZED (
	SELECT count(*) FILTER (WHERE state = 1) - count(*) FILTER (WHERE was = 1) AS created,
		count(*) FILTER (WHERE state = 2) - count(*) FILTER (WHERE was = 2) AS partial,
		count(*) FILTER (WHERE state = 3) - count(*) FILTER (WHERE was = 3) AS rejected,
		count(*) FILTER (WHERE state = 4) - count(*) FILTER (WHERE was = 4) AS in_doubt,
		count(*) FILTER (WHERE state = 5) - count(*) FILTER (WHERE was = 5) AS not_made
	FROM stored
), noted AS (
	UPDATE leadferry.workers w SET created = w.created + c.created, partial = w.partial + c.partial, rejected = w.rejected + c.rejected,
		in_doubt = w.in_doubt + c.in_doubt, not_made = w.not_made + c.not_made
	FROM counted c WHERE w.worker = $2
)
SELECT leadferry.must((SELECT count(*) FROM stored) = (SELECT count(*) FROM given), 'LF001')
