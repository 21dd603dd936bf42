-- The other ledgers of the trunk $1 than $2 that keep its leads: the same service under another address is another target.
SELECT l.id, l.base_url, l.leads_url, l.trunk_id, c.n[1] + c.n[2] + c.n[4], c.seq, w.run, w.started
FROM leadferry.ledgers l
CROSS JOIN LATERAL (
	SELECT leadferry.counted(l.ledger) AS n, max(seq) AS seq FROM leadferry.workers WHERE ledger = l.ledger
) c
CROSS JOIN LATERAL (SELECT run, started FROM leadferry.workers WHERE ledger = l.ledger ORDER BY worker DESC LIMIT 1) w
WHERE l.trunk_id = $1 AND l.ledger <> $2 AND l.moved_to = ''
