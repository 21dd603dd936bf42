-- Reads the next $4 rows of the ledger $1 from the key $2 on. It returns the rows in the state $3 (0: in any), and always the last row, so
-- that its key is known. So no statement reads the whole ledger to find a few rows: meanwhile the worker could not show life.
SELECT l.key, l.record, l.worker, l.state, l.seq FROM (
	SELECT *, lead(key) OVER (ORDER BY key) IS NULL AS last FROM (
		SELECT * FROM leadferry.lead_rows WHERE ledger = $1 AND key >= $2 ORDER BY ledger, key LIMIT $4
	) page
) l
WHERE l.last OR $3::smallint IN (0, l.state)
ORDER BY l.key
