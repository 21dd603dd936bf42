-- Sets the counts of keys, or of forgotten keys, of all workers of the ledger $1 to zero if there are none any more.
WITH n AS (
	SELECT EXISTS (SELECT FROM leadferry.lead_rows WHERE ledger = $1)::integer AS keys,
		EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)::integer AS blocks
)
UPDATE leadferry.workers SET created = created * keys, partial = partial * keys, rejected = rejected * keys,
	in_doubt = in_doubt * keys, not_made = not_made * keys, forgotten = forgotten * blocks
FROM n WHERE ledger = $1
