-- Makes keys own leads. $1 ledger, $2 lead IDs, $3 their keys, $4 by force. A lead that another key still owns ends the transaction,
-- unless it is taken by force.
WITH owned AS (
	INSERT INTO leadferry.lead_ids AS i (ledger, lead_id, key)
	SELECT $1, w.* FROM unnest($2::text[], $3::bytea[]) AS w (lead_id, key)
	ON CONFLICT (ledger, lead_id) DO UPDATE SET key = excluded.key
		WHERE $4 OR i.key = excluded.key OR NOT leadferry.holds($1, i.key, i.lead_id)
	RETURNING 1
)
SELECT leadferry.must((SELECT count(*) FROM owned) = cardinality($2), 'LF001')
