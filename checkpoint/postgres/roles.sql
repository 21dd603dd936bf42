-- What the roles may do. The owner of the schema may do everything; he alone forgets people and removes ledgers.
GRANT USAGE ON SCHEMA leadferry TO leadferry_worker, leadferry_reader;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA leadferry TO leadferry_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA leadferry TO leadferry_worker;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA leadferry TO leadferry_worker, leadferry_reader;
REVOKE INSERT, UPDATE ON leadferry.version FROM leadferry_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA leadferry TO leadferry_reader;
REVOKE ALL ON leadferry.digest_keys FROM leadferry_reader;
