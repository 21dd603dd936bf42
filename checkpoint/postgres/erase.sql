-- Removes the keys $2 of the ledger $1, the leads that they own, and the hashes ($3) of forgotten ones. The worker $4 subtracts them
-- from its counts.
WITH gone AS (
	DELETE FROM leadferry.lead_rows WHERE ledger = $1 AND key = ANY ($2::bytea[])
	RETURNING state, CASE state WHEN 4 THEN hidden_lead ELSE lead_id END AS lead_id
), unblocked AS (
	DELETE FROM leadferry.forgotten WHERE ledger = $1 AND hash = ANY ($3::bytea[]) RETURNING 1
), disowned AS (
	DELETE FROM leadferry.lead_ids i WHERE i.ledger = $1 AND (i.key = ANY ($2) OR i.lead_id IN (SELECT lead_id FROM gone WHERE lead_id <> ''))
), counted AS (
	SELECT count(*) FILTER (WHERE state = 1) AS created, count(*) FILTER (WHERE state = 2) AS partial,
		count(*) FILTER (WHERE state = 3) AS rejected, count(*) FILTER (WHERE state = 4) AS in_doubt,
		count(*) FILTER (WHERE state = 5) AS not_made, (SELECT count(*) FROM unblocked) AS forgotten
	FROM gone
)
UPDATE leadferry.workers w SET created = w.created - c.created, partial = w.partial - c.partial, rejected = w.rejected - c.rejected,
	in_doubt = w.in_doubt - c.in_doubt, not_made = w.not_made - c.not_made, forgotten = w.forgotten - c.forgotten
FROM counted c WHERE w.worker = $4
