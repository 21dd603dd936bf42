-- Replaces the session of the worker $1 of the ledger $2 by the session $4, in a separate commit. It waits for a commit that the earlier
-- session has begun; a later commit of that session is refused, since the row belongs to the new session then. The worker has made $3
-- commits, or one more. If a standby that commits waited for has taken over, this notes whether it waits for others.
UPDATE leadferry.workers SET beat = clock_timestamp(), session = $4,
	timeline = CASE standby WHEN 'waited for' THEN leadferry.timeline() ELSE timeline END,
	standby = CASE WHEN standby = 'waited for' AND timeline <> leadferry.timeline()
		AND current_setting('synchronous_standby_names') = '' THEN 'none' ELSE standby END
WHERE worker = $1 AND ledger = $2 AND tableoid = $5 AND commits BETWEEN $3::bigint AND $3::bigint + 1
RETURNING commits, seq, leadferry.timeline(), standby, leadferry.promised(standby)
