-- Returns the $2 newest workers of the ledger $1, and all that hold rows in doubt, oldest first.
WITH held AS (
	SELECT worker, count(*) AS n FROM leadferry.lead_rows WHERE ledger = $1 AND state = 4 GROUP BY 1
)
SELECT w.worker, w.run, w.command, w.fleet, w.shard, w.shards, w.host, w.process, w.started, w.beat, w.fenced, w.ended,
	coalesce(h.n, 0), leadferry.alive(w), leadferry.may_settle(w)
FROM leadferry.workers w LEFT JOIN held h USING (worker)
WHERE w.ledger = $1
	AND (h.n > 0 OR w.worker IN (SELECT worker FROM leadferry.workers WHERE ledger = $1 ORDER BY worker DESC LIMIT $2))
ORDER BY w.worker
