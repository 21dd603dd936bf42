-- Has the session $4 take the place of the one that commits for the worker $1 of the ledger $2, as a commit of its own. It waits for
-- whatever an earlier session has begun; what that has not read yet it refuses, since the row is of another session from here on. The
-- worker has made $3 commits, or one more. Of a standby that was waited for and has taken over, it notes whether it waits for others.
UPDATE leadferry.workers SET beat = clock_timestamp(), session = $4,
	timeline = CASE standby WHEN 'waited for' THEN leadferry.timeline() ELSE timeline END,
	standby = CASE WHEN standby = 'waited for' AND timeline <> leadferry.timeline()
		AND current_setting('synchronous_standby_names') = '' THEN 'none' ELSE standby END
WHERE worker = $1 AND ledger = $2 AND commits BETWEEN $3::bigint AND $3::bigint + 1
RETURNING commits, seq, leadferry.timeline(), standby, leadferry.promised(standby)
