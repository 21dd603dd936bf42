-- The roles for users of the ledgers, and what they may do. The owner of the schema may do everything. Only the owner may forget people
-- and remove ledgers.
DO $$ DECLARE r text; BEGIN
	FOREACH r IN ARRAY ARRAY['leadferry_worker', 'leadferry_reader'] LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = r) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', r); END IF;
	END LOOP;
END $$;
GRANT USAGE ON SCHEMA leadferry TO leadferry_worker, leadferry_reader;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA leadferry TO leadferry_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA leadferry TO leadferry_worker;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA leadferry TO leadferry_worker, leadferry_reader;
REVOKE INSERT, UPDATE ON leadferry.version FROM leadferry_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA leadferry TO leadferry_reader;
REVOKE ALL ON leadferry.digest_keys FROM leadferry_reader;
