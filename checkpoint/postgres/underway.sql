-- The runs that may still settle rows in doubt themselves, beside this worker's.
SELECT w.run FROM leadferry.workers me JOIN leadferry.workers w USING (ledger)
WHERE me.worker = $1 AND w.run <> '' AND BESIDE
