coalesce(( -- Says whether the database must take no changes any more. Open sessions do not notice that by themselves.
	SELECT split_part(c, '=', 2)::boolean FROM pg_db_role_setting s, unnest(s.setconfig) c
	WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
		AND s.setrole IN (0, to_regrole(quote_ident(session_user))::oid) AND starts_with(c, 'default_transaction_read_only=')
	ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1
), false)
