-- $1 ledger, $2 keys, $3 lead IDs, $4 ExternalIDs, $5 folds, $6 hashes of keys, $7 hashes of folds. The first
-- column says by what a row was found, the second by which value.
SELECT 0::smallint, ''::bytea, COLUMNS FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.key = ANY ($2::bytea[])
UNION ALL
SELECT 1::smallint, convert_to(i.lead_id, 'UTF8'), COLUMNS FROM leadferry.lead_ids i JOIN leadferry.lead_rows l ON l.ledger = $1 AND l.key = i.key
WHERE i.ledger = $1 AND i.lead_id = ANY ($3::text[])
UNION ALL
SELECT 2::smallint, ''::bytea, COLUMNS FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.external_id <> '' AND l.external_id = ANY ($4::text[])
UNION ALL
SELECT 2::smallint, ''::bytea, COLUMNS FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.want_link <> '' AND l.want_link = ANY ($4::text[])
UNION ALL
SELECT 2::smallint, ''::bytea, COLUMNS FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.hidden IS NOT NULL AND l.hidden && $4::text[]
UNION ALL
SELECT 3::smallint, l.fold, COLUMNS FROM leadferry.lead_rows l WHERE l.ledger = $1 AND l.fold <> '' AND l.fold = ANY ($5::bytea[])
UNION ALL
SELECT 4::smallint, f.hash, ''::bytea, NOTHING FROM leadferry.forgotten f WHERE f.ledger = $1 AND f.hash = ANY ($6::bytea[])
UNION ALL
SELECT 5::smallint, f.fold, ''::bytea, NOTHING FROM leadferry.forgotten f WHERE f.ledger = $1 AND f.fold = ANY ($7::bytea[])
