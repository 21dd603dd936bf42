-- $1 ledger, $2 worker, $3 fleet. Requests of all workers count; of rows read, only those of the newest worker of each shard. Doubts
-- are only those of workers beside this one: what earlier workers left was counted when this one began, and a person may have settled
-- it since. What a worker holds that did not end in order is in doubt. But an incomplete ledger holds other rows, too.
WITH crew AS MATERIALIZED (
	SELECT w.fenced IS NULL AND w.ended IS NULL OR l.missing <> '' AS going, w.in_doubt, m.*,
		row_number() OVER (PARTITION BY w.shard ORDER BY w.worker DESC) = 1 AS newest, BESIDE AS beside
	FROM leadferry.workers me JOIN leadferry.ledgers l USING (ledger) JOIN leadferry.workers w USING (ledger)
		JOIN leadferry.members m ON m.worker = w.worker
	WHERE me.worker = $2 AND me.ledger = $1 AND w.fleet = $3
)
SELECT (SELECT fenced IS NOT NULL FROM leadferry.workers WHERE worker = $2),
	(SELECT greatest(leadferry.opening(f) - clock_timestamp(), interval '0') FROM leadferry.fleets f WHERE ledger = $1 AND fleet = $3),
	coalesce(sum(read) FILTER (WHERE newest), 0)::bigint, coalesce(sum(invalid) FILTER (WHERE newest), 0)::bigint,
	coalesce(sum(sent), 0)::bigint, coalesce(sum(refused), 0)::bigint,
	coalesce(sum(CASE WHEN going THEN doubts ELSE greatest(doubts, in_doubt) END) FILTER (WHERE beside), 0)::bigint
FROM crew
