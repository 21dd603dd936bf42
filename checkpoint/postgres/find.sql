-- $1 ledger, $2 keys, $3 lead IDs, $4 ExternalIDs, $5 folds, $6 hashes of the keys, $7 hashes of the folds.
-- The first column says what a row was found by, the second which value it was. OFFSET 0 makes the server look up each value by its index:
-- with a plan that was made while the tables were empty, it would read whole ledgers instead. Empty values are not looked up, nor are
-- hashes as long as no key was forgotten: that takes a third of the server's time.
SELECT 0::smallint, ''::bytea, l.key, l.record, l.worker, l.state, l.seq FROM unnest($2::bytea[]) AS w (key)
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.key = w.key OFFSET 0) l
UNION ALL
SELECT 1::smallint, convert_to(w.lead_id, 'UTF8'), l.key, l.record, l.worker, l.state, l.seq FROM unnest($3::text[]) AS w (lead_id)
CROSS JOIN LATERAL (SELECT key FROM leadferry.lead_ids o WHERE o.ledger = $1 AND o.lead_id = w.lead_id OFFSET 0) i
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.key = i.key OFFSET 0) l WHERE w.lead_id <> ''
UNION ALL
SELECT 2::smallint, convert_to(w.external_id, 'UTF8'), l.key, l.record, l.worker, l.state, l.seq FROM unnest($4::text[]) AS w (external_id)
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link <> '' AND r.link = w.external_id OFFSET 0) l WHERE w.external_id <> ''
UNION ALL
SELECT 2::smallint, convert_to(w.external_id, 'UTF8'), l.key, l.record, l.worker, l.state, l.seq FROM unnest($4::text[]) AS w (external_id)
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link2 <> '' AND r.link2 = w.external_id OFFSET 0) l WHERE w.external_id <> ''
UNION ALL
SELECT 2::smallint, convert_to(w.external_id, 'UTF8'), l.key, l.record, l.worker, l.state, l.seq FROM unnest($4::text[]) AS w (external_id)
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.link3 <> '' AND r.link3 = w.external_id OFFSET 0) l WHERE w.external_id <> ''
UNION ALL
SELECT 3::smallint, l.fold, l.key, l.record, l.worker, l.state, l.seq FROM unnest($5::bytea[]) AS w (fold)
CROSS JOIN LATERAL (SELECT * FROM leadferry.lead_rows r WHERE r.ledger = $1 AND r.fold <> '' AND r.fold = w.fold OFFSET 0) l
UNION ALL
SELECT 4::smallint, w.key, ''::bytea, ''::bytea, 0::bigint, 0::smallint, 0::bigint FROM unnest($2::bytea[], $6::bytea[]) AS w (key, hash)
CROSS JOIN LATERAL (SELECT FROM leadferry.forgotten o WHERE o.ledger = $1 AND o.hash = w.hash OFFSET 0) f WHERE EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)
UNION ALL
SELECT 5::smallint, w.fold, ''::bytea, ''::bytea, 0::bigint, 0::smallint, 0::bigint FROM unnest($5::bytea[], $7::bytea[]) AS w (fold, hash)
CROSS JOIN LATERAL (SELECT FROM leadferry.forgotten o WHERE o.ledger = $1 AND o.fold = w.hash OFFSET 0) f WHERE EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)
