-- Makes keys own the ExternalIDs that they ask for, as "@" and the ExternalID. $1 ledger, $2 ExternalIDs, $3 their keys. It ends the
-- transaction if another key has one of them, or should get it, see KeptKey.Links. The keys that the commit writes ($4) are checked already.
WITH asks AS MATERIALIZED (
	SELECT * FROM unnest($2::text[], $3::bytea[]) AS w (external_id, key)
), owned AS (
	INSERT INTO leadferry.lead_ids AS i (ledger, lead_id, key) SELECT $1, '@' || external_id, key FROM asks
	ON CONFLICT (ledger, lead_id) DO UPDATE SET key = excluded.key
		WHERE i.key = excluded.key OR i.key = ANY ($4::bytea[]) OR NOT leadferry.holds($1, i.key, i.lead_id)
	RETURNING 1
)
SELECT leadferry.must((SELECT count(*) FROM owned) = cardinality($2) AND NOT EXISTS (
	SELECT 1 FROM asks w CROSS JOIN LATERAL (
		SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link <> '' AND r.link = w.external_id
		UNION ALL SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link2 <> '' AND r.link2 = w.external_id
		UNION ALL SELECT r.key FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link3 <> '' AND r.link3 = w.external_id
	) o WHERE o.key <> w.key AND o.key <> ALL ($4::bytea[])
), 'LF001')
