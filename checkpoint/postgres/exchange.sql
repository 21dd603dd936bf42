-- $1 ledger, $2 worker, $3 fleet. Requests count whoever sent them; rows that were read, those of the newest worker of each
-- shard. What a worker holds that came to its end out of order is in doubt.
WITH crew AS MATERIALIZED (
	SELECT w.fenced IS NULL AND w.ended IS NULL AS going, w.in_doubt, m.*, row_number() OVER (PARTITION BY w.shard ORDER BY w.worker DESC) = 1 AS newest
	FROM leadferry.workers w JOIN leadferry.members m USING (worker) WHERE w.ledger = $1 AND w.fleet = $3
)
SELECT (SELECT fenced IS NOT NULL FROM leadferry.workers WHERE worker = $2),
	(SELECT greatest(leadferry.opening(f) - clock_timestamp(), interval '0') FROM leadferry.fleets f WHERE ledger = $1 AND fleet = $3),
	coalesce(sum(read) FILTER (WHERE newest), 0)::bigint, coalesce(sum(invalid) FILTER (WHERE newest), 0)::bigint,
	coalesce(sum(sent), 0)::bigint, coalesce(sum(refused), 0)::bigint,
	coalesce(sum(CASE WHEN going THEN doubts ELSE greatest(doubts, in_doubt) END), 0)::bigint
FROM crew
