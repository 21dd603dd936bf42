-- Has the workers of the ledger $1 count no keys, or no forgotten ones, where none is there any more.
WITH n AS (
	SELECT EXISTS (SELECT FROM leadferry.lead_rows WHERE ledger = $1)::integer AS keys,
		EXISTS (SELECT FROM leadferry.forgotten WHERE ledger = $1)::integer AS blocks
)
UPDATE leadferry.workers SET created = created * keys, partial = partial * keys, rejected = rejected * keys,
	in_doubt = in_doubt * keys, not_made = not_made * keys, forgotten = forgotten * blocks
FROM n WHERE ledger = $1
