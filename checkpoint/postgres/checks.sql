-- Returns the state of the server and its standbys, and what is gone of the ledger $1. $2 is the state of standbys that commits wait for. $3
-- says that the other standbys will never take over. The state of standbys that nobody has said anything about is ''. The last two columns
-- say what is wrong with the database, or nothing, and what to do about it.
WITH standbys AS ( -- A backup under way is no standby: its first connection reports its progress, its second one has a slot of its own.
	SELECT count(*) AS n FROM pg_stat_replication
	WHERE coalesce(application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal') AND pid NOT IN (SELECT pid FROM pg_stat_progress_basebackup)
		AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE active_pid IS NOT NULL AND temporary AND slot_name LIKE 'pg\_basebackup\_%')
), crew AS (
	SELECT * FROM leadferry.workers WHERE ledger = $1
), gone_on AS ( -- They may have claimed more than this server knows.
	SELECT * FROM crew WHERE worker = (SELECT max(worker) FROM crew)
		OR ended IS NULL AND fenced IS NULL AND beat > (SELECT max(beat) FROM crew) - interval '15 minutes'
), counted AS (
	SELECT sum(created + partial + rejected + in_doubt + not_made) AS keys, sum(forgotten) AS blocks FROM crew
)
SELECT leadferry.timeline(), CASE WHEN current_setting('synchronous_standby_names') <> '' THEN $2 WHEN s.n = 0 THEN 'none' WHEN $3::boolean THEN 'never promoted' ELSE '' END,
	CASE -- What is gone. If the history has branched, commits of workers that waited for no standby may be lost.
	WHEN EXISTS (SELECT 1 FROM gone_on WHERE timeline NOT IN (0, leadferry.timeline()) AND standby <> $2)
	THEN 'its server''s history has branched since the last run: it was restored, or a standby took over that was not waited for'
	WHEN c.keys > 0 AND NOT EXISTS (SELECT 1 FROM leadferry.lead_rows WHERE ledger = $1)
		OR c.blocks > 0 AND NOT EXISTS (SELECT 1 FROM leadferry.forgotten WHERE ledger = $1)
	THEN 'none of the rows that it knew, or of the keys that it was to forget, is there any more: a table was emptied, or a restore has failed with it'
	ELSE '' END,
	coalesce(f.fault, ''), coalesce(f.way, '')
FROM standbys s, counted c LEFT JOIN LATERAL (
	SELECT 'the table ' || relname || ' is UNLOGGED: a crash of the server would empty it' AS fault,
		'have the owner say ALTER TABLE leadferry.' || quote_ident(relname) || ' SET LOGGED' AS way
	FROM pg_class WHERE relnamespace = 'leadferry'::regnamespace AND relkind = 'r' AND relpersistence <> 'p'
	UNION ALL -- logical replication does not copy the values of sequences
	SELECT 'its sequences are behind its tables, as logical replication leaves them: numbers would be given twice',
		'have the owner set each sequence of the schema leadferry to the highest number of its column, '
			'as by SELECT setval(''leadferry.commits'', max(seq)) FROM leadferry.workers'
	WHERE coalesce(pg_sequence_last_value('leadferry.commits'), 0) < (SELECT coalesce(max(seq), 0) FROM crew)
		OR coalesce(pg_sequence_last_value(pg_get_serial_sequence('leadferry.workers', 'worker')), 0) < (SELECT coalesce(max(worker), 0) FROM leadferry.workers)
	LIMIT 1
) f ON true
