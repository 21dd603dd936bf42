-- Says what is wrong with the ledger $1, or '': the counts of its workers differ from its rows, or leads are not found by their ID.
SELECT CASE
	WHEN (leadferry.counted($1))[1:5] <> (
		SELECT ARRAY[count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
			count(*) FILTER (WHERE state = 4), count(*) FILTER (WHERE state = 5)]
		FROM leadferry.lead_rows WHERE ledger = $1)
	THEN 'its keys are not as its workers have counted them'
	WHEN lost.n > 0 THEN lost.n || ' leads are not found by their ID'
	ELSE '' END
FROM (SELECT count(*) AS n FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.state IN (1, 2) AND l.lead_id <> ''
	AND NOT EXISTS (SELECT FROM leadferry.lead_ids i WHERE i.ledger = $1 AND i.lead_id = l.lead_id AND i.key = l.key)) lost
