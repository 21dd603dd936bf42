-- Makes a transaction the next commit of the worker $1 of the ledger $2, after $4 commits, and only of the session $3. $5 says that the
-- commit claims something: a fenced worker may not do that, and nobody may on a server that must take no changes.
WITH me AS (
	UPDATE leadferry.workers SET commits = commits + 1, seq = nextval('leadferry.commits'), beat = clock_timestamp()
	WHERE worker = $1 AND ledger = $2 AND session = $3 AND commits = $4
	RETURNING seq, fenced IS NULL AS live, standby
)
SELECT seq, leadferry.must(seq IS NOT NULL, 'LF004'), leadferry.must(leadferry.promised(standby), 'LF005'),
	leadferry.must(NOT $5 OR live AND NOT UNCHANGING, 'LF002')
FROM (SELECT 1) one LEFT JOIN me ON true
