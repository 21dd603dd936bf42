-- Why a worker may claim nothing more, and how many leads its fleet may still make (null: any number).
SELECT w.fenced IS NOT NULL, UNCHANGING, l.missing, l.since, b.most - b.made
FROM leadferry.workers w
JOIN leadferry.ledgers l USING (ledger)
LEFT JOIN leadferry.budget b ON b.ledger = w.ledger AND b.fleet = w.fleet AND b.most > 0
WHERE w.worker = $1
