-- How the server and its standbys are, and why something of the ledger $1 is gone. $2 is how a worker's standbys are noted that are waited for;
-- $3 says that those that are not will never take over. Standbys that nothing is said of are noted as ''.
WITH standbys AS ( -- A backup that is being taken is none: its first connection tells how far it is, its second one has a slot of its own.
	SELECT count(*) AS n FROM pg_stat_replication
	WHERE coalesce(application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal') AND pid NOT IN (SELECT pid FROM pg_stat_progress_basebackup)
		AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE active_pid IS NOT NULL AND temporary AND slot_name LIKE 'pg\_basebackup\_%')
), crew AS (
	SELECT * FROM leadferry.workers WHERE ledger = $1
), gone_on AS ( -- They may have claimed more than stands here.
	SELECT * FROM crew WHERE worker = (SELECT max(worker) FROM crew)
		OR ended IS NULL AND fenced IS NULL AND beat > (SELECT max(beat) FROM crew) - interval '15 minutes'
), counted AS (
	SELECT sum(created + partial + rejected + in_doubt + not_made) AS keys, sum(forgotten) AS blocks FROM crew
)
SELECT leadferry.timeline(), CASE WHEN current_setting('synchronous_standby_names') <> '' THEN $2 WHEN s.n = 0 THEN 'none' WHEN $3::boolean THEN 'never promoted' ELSE '' END,
	CASE -- What is gone. Where a history has branched, that is what workers have committed for whom no standby was waited for.
	WHEN EXISTS (SELECT 1 FROM gone_on WHERE timeline NOT IN (0, leadferry.timeline()) AND standby <> $2)
	THEN 'its server''s history has branched since the last run: it was restored, or a standby took over that was not waited for'
	WHEN c.keys > 0 AND NOT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1)
		OR c.blocks > 0 AND NOT EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1)
	THEN 'none of the rows that it knew, or of the keys that it was to forget, is there any more: a table was emptied, or a restore has failed with it'
	ELSE '' END,
	-- Sequences are behind what they gave: logical replication leaves them where they were.
	coalesce(pg_sequence_last_value('leadferry.commits'), 0) < (SELECT coalesce(max(seq), 0) FROM crew)
		OR coalesce(pg_sequence_last_value(pg_get_serial_sequence('leadferry.workers', 'worker')), 0) < (SELECT coalesce(max(worker), 0) FROM leadferry.workers)
FROM standbys s, counted c
