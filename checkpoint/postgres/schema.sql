-- The ledgers of leadferry, one for each target. Every change here needs a higher checkpoint.Format, which version holds.

CREATE TABLE version (number integer NOT NULL);

-- One sequence numbers the commits of all ledgers. No transaction waits for it.
CREATE SEQUENCE commits;

CREATE TABLE ledgers (
	ledger    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id        text NOT NULL UNIQUE,
	base_url  text NOT NULL,
	leads_url text NOT NULL,
	trunk_id  text NOT NULL,
	made      timestamptz NOT NULL DEFAULT now(),
	missing   text NOT NULL DEFAULT '',    -- what the ledger has lost: it is incomplete
	since     bigint NOT NULL DEFAULT 0,   -- the commit that noted it
	moved_to  text NOT NULL DEFAULT '',    -- where its leads are kept now: runs are refused
	filling   text NOT NULL DEFAULT '',    -- what is being copied into it: runs are refused until the copy is complete
	UNIQUE (base_url, leads_url, trunk_id)
);

-- Small JSON values by name: runs, what people decided about a key, the columns (as keyed digests), key and namespace of imported
-- files, where a ledger comes from, and what people have answered about other ledgers.
CREATE TABLE notes (
	ledger integer NOT NULL REFERENCES ledgers ON DELETE CASCADE,
	name   text COLLATE "C" NOT NULL,
	value  text COLLATE "C" NOT NULL,
	PRIMARY KEY (ledger, name)
);

-- The keys of digests, in a table of their own that readers may not see.
CREATE TABLE digest_keys (
	ledger integer PRIMARY KEY REFERENCES ledgers ON DELETE CASCADE,
	secret bytea NOT NULL
);

-- A worker is one opening of a ledger that writes: a run, a worker of a fleet, or a command of a person.
CREATE TABLE workers (
	worker   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	ledger   integer NOT NULL REFERENCES ledgers ON DELETE CASCADE,
	run      text NOT NULL DEFAULT '',
	command  text NOT NULL DEFAULT '',
	fleet    text NOT NULL DEFAULT '',
	shard    integer NOT NULL DEFAULT 0,
	shards   integer NOT NULL DEFAULT 0,
	host     text NOT NULL DEFAULT '',
	process  bigint NOT NULL DEFAULT 0,
	holds_for integer NOT NULL DEFAULT 0,  -- seconds after its last sign of life in which a request may still be applied
	timeline integer NOT NULL DEFAULT 0,   -- of the server when it began
	standby  text NOT NULL DEFAULT '',     -- the state of the server's standbys then
	started  timestamptz NOT NULL DEFAULT clock_timestamp(),
	beat     timestamptz NOT NULL DEFAULT clock_timestamp(),
	fenced   timestamptz,                  -- since then it may claim nothing
	fenced_by bigint,
	ended    timestamptz,                  -- in order: nothing is under way
	session  bigint NOT NULL DEFAULT 0,    -- which of its connections may commit: a connection that it has given up may not
	commits  bigint NOT NULL DEFAULT 0,
	seq      bigint NOT NULL DEFAULT 0,    -- the number of its last commit
	-- how many keys in each state it has added, less those that it has taken away
	created  bigint NOT NULL DEFAULT 0,
	partial  bigint NOT NULL DEFAULT 0,
	rejected bigint NOT NULL DEFAULT 0,
	in_doubt bigint NOT NULL DEFAULT 0,
	not_made bigint NOT NULL DEFAULT 0,
	forgotten bigint NOT NULL DEFAULT 0
);
CREATE INDEX ON workers (ledger, worker);
CREATE INDEX ON workers (ledger, fleet, shard, worker) WHERE fleet <> '';

-- One row a key. State: 0 nothing, 1 created, 2 partial, 3 rejected, 4 in doubt, 5 not made.
CREATE TABLE lead_rows (
	-- An outcome changes the columns in the middle: the server's WAL leaves out what stays the same at both ends of a row.
	worker       bigint NOT NULL,
	line         bigint NOT NULL,
	ledger       integer NOT NULL,
	code         integer NOT NULL,
	seq          bigint NOT NULL,
	updated      bigint NOT NULL,          -- milliseconds since 1970
	state        smallint NOT NULL,
	lead_id      text COLLATE "C" NOT NULL,
	location     text COLLATE "C" NOT NULL,
	external_id  text COLLATE "C" NOT NULL, -- that the lead has or should get
	reason       text COLLATE "C" NOT NULL,
	record       bytea NOT NULL,           -- all that is known of the key; the columns for people are written with it, and never read by leadferry
	status       text COLLATE "C" NOT NULL,
	organization text COLLATE "C" NOT NULL,
	locator      text COLLATE "C" NOT NULL,
	key          bytea NOT NULL,
	file         text COLLATE "C" NOT NULL,
	run          text COLLATE "C" NOT NULL,
	fold         bytea NOT NULL,           -- of the key, if it differs from the key
	hidden_lead  text COLLATE "C" NOT NULL, -- of a key in doubt: the lead that it has
	link         text COLLATE "C" NOT NULL, -- the ExternalIDs that the key owns, see KeptKey.Links: mostly one, which an outcome does not change
	link2        text COLLATE "C" NOT NULL,
	link3        text COLLATE "C" NOT NULL,
	PRIMARY KEY (ledger, key)
) WITH (fillfactor = 50, autovacuum_vacuum_insert_scale_factor = 0.1);
-- Half of each page is left free for outcomes, which come for all of its rows at once. There is no index by state: outcomes that change no
-- index are made in place, and rows in doubt are few, and only people ask for them.
CREATE INDEX leads_fold ON lead_rows (ledger, fold) WHERE fold <> '';
CREATE INDEX leads_link ON lead_rows (ledger, link) WHERE link <> '';
CREATE INDEX leads_link2 ON lead_rows (ledger, link2) WHERE link2 <> '';
CREATE INDEX leads_link3 ON lead_rows (ledger, link3) WHERE link3 <> '';

-- Which key has a lead, or has asked for an ExternalID (with "@" in front). A row whose key has given it up since means nothing.
CREATE TABLE lead_ids (
	ledger  integer NOT NULL,
	lead_id text COLLATE "C" NOT NULL,
	key     bytea NOT NULL,
	PRIMARY KEY (ledger, lead_id)
);

-- Forgotten keys: only keyed hashes of them and of their folds.
CREATE TABLE forgotten (
	ledger integer NOT NULL REFERENCES ledgers ON DELETE CASCADE,
	hash   bytea NOT NULL,
	fold   bytea NOT NULL,
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (ledger, hash)
);
CREATE INDEX ON forgotten (fold, ledger); -- in this order, so that the server does not look for hashes by the ledger alone

-- The terms of a fleet, and the rate and the pause that hold for all of its workers.
CREATE TABLE fleets (
	ledger integer NOT NULL REFERENCES ledgers ON DELETE CASCADE,
	fleet  text NOT NULL,
	shards integer NOT NULL,
	rate   double precision NOT NULL,      -- requests a second; 0: no limit
	terms  jsonb NOT NULL,
	made   timestamptz NOT NULL DEFAULT clock_timestamp(),
	given  timestamptz NOT NULL DEFAULT clock_timestamp(), -- the rate is given away until then
	opens  timestamptz NOT NULL DEFAULT clock_timestamp(), -- nothing is sent before this time
	PRIMARY KEY (ledger, fleet)
) WITH (fillfactor = 50);

-- How many leads a fleet may make, and has made or may have made. In a separate table, since claims lock it.
CREATE TABLE budget (
	ledger integer NOT NULL REFERENCES ledgers ON DELETE CASCADE,
	fleet  text NOT NULL,
	most   bigint NOT NULL,                -- 0: no limit
	made   bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (ledger, fleet)
) WITH (fillfactor = 50);

-- The last report of each worker of a fleet.
CREATE TABLE members (
	worker  bigint PRIMARY KEY REFERENCES workers ON DELETE CASCADE,
	told    timestamptz NOT NULL DEFAULT clock_timestamp(),
	read    bigint NOT NULL DEFAULT 0,
	invalid bigint NOT NULL DEFAULT 0,
	sent    bigint NOT NULL DEFAULT 0,
	refused bigint NOT NULL DEFAULT 0,     -- of those sent: refused or failed
	doubts  bigint NOT NULL DEFAULT 0,
	rows    jsonb,                         -- by outcome
	summary bytea                          -- its summary at the end, in JSON
) WITH (fillfactor = 50);

-- A worker's part of the requests of a quarter of a second.
CREATE FUNCTION piece(rate double precision, shards integer) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN greatest(1, floor(rate / 4 / greatest(shards, 1)));

-- When a fleet's pause ends; NULL if that is too far away: the server's clock was set back.
CREATE FUNCTION opening(f fleets) RETURNS timestamptz LANGUAGE sql VOLATILE
	RETURN CASE WHEN f.opens <= clock_timestamp() + interval '15 minutes' THEN f.opens END;

-- Says whether a worker shows life. A minute after its last sign of life, somebody else may begin.
CREATE FUNCTION alive(w workers) RETURNS boolean LANGUAGE sql VOLATILE
	RETURN w.ended IS NULL AND w.beat > clock_timestamp() - interval '60 seconds';

-- Says whether a worker may still send what it has claimed, or its requests may still be applied: it has not ended, and has shown life not
-- too long ago.
CREATE FUNCTION may_settle(w workers) RETURNS boolean LANGUAGE sql VOLATILE
	RETURN w.ended IS NULL AND w.beat > clock_timestamp() - greatest(900, w.holds_for + 60) * interval '1 second';

-- The number of keys in each state, and of forgotten keys, as the workers of a ledger have counted them.
CREATE FUNCTION counted(of integer) RETURNS bigint[] LANGUAGE sql STABLE
	RETURN (SELECT ARRAY[coalesce(sum(created), 0), coalesce(sum(partial), 0), coalesce(sum(rejected), 0), coalesce(sum(in_doubt), 0),
		coalesce(sum(not_made), 0), coalesce(sum(forgotten), 0)]::bigint[] FROM workers WHERE ledger = of);

-- Says whether nothing is known of any key of a ledger, and no run has come to its end.
CREATE FUNCTION untouched(of integer) RETURNS boolean LANGUAGE sql STABLE
	RETURN NOT EXISTS (SELECT FROM ledgers WHERE ledger = of AND missing <> '')
		AND NOT EXISTS (SELECT FROM lead_rows WHERE ledger = of AND state > 0) AND NOT EXISTS (SELECT FROM forgotten WHERE ledger = of)
		AND NOT EXISTS (SELECT FROM notes WHERE ledger = of AND (starts_with(name, 'decided ') OR starts_with(name, 'shape ')
			OR starts_with(name, 'run ') AND value::jsonb ->> 'Outcome' IN ('complete', 'attention') OR value LIKE '%"adopting":{%'));

-- The number of the server's history. It changes with every promotion of a standby and every restore to an earlier moment.
CREATE FUNCTION timeline() RETURNS integer LANGUAGE sql VOLATILE
	RETURN ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;

-- Says whether commits are as durable now as when a worker began; standby is the state of the standbys then. What a standby lacks when it
-- takes over is lost, and nobody notices.
CREATE FUNCTION promised(standby text) RETURNS boolean LANGUAGE sql STABLE
	RETURN current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AND current_setting('synchronous_commit') IN ('on', 'remote_apply')
		AND (standby <> 'waited for' OR current_setting('synchronous_standby_names') <> '');

-- Ends a transaction if something is not as its client knows it. The code tells the client what.
CREATE FUNCTION must(be boolean, code text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF be IS NOT TRUE THEN RAISE EXCEPTION 'something is not as leadferry has it' USING ERRCODE = code; END IF;
	RETURN true;
END $$;

-- Says whether a key still has a lead, or an ExternalID, that it came to own, see lead_ids. It looks again each time: a transaction that waited
-- for another worker's commit sees the result of that commit.
CREATE FUNCTION holds(of integer, k bytea, lead text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	RETURN EXISTS (SELECT 1 FROM leadferry.lead_rows r WHERE r.ledger = of AND r.key = k
		AND (lead = CASE r.state WHEN 4 THEN r.hidden_lead ELSE r.lead_id END OR lead IN ('@' || r.link, '@' || r.link2, '@' || r.link3)));
END $$;

-- For people. Texts that are not UTF-8 are shown in hexadecimal digits.
CREATE FUNCTION text_of(b bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN convert_from(b, 'UTF8');
EXCEPTION WHEN others THEN
	RETURN '\x' || encode(b, 'hex');
END $$;

CREATE FUNCTION state_name(s smallint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (ARRAY['created', 'partial', 'rejected', 'in_doubt', 'not_made'])[s];

CREATE VIEW leads AS
	SELECT t.trunk_id, replace(text_of(l.key), E'\x1f', '/') AS key, state_name(l.state) AS state, l.lead_id, l.organization, l.location, l.status,
		l.external_id, l.run, to_timestamp(l.updated / 1000.0) AS updated, l.file, l.line, l.code, l.reason
	FROM lead_rows l JOIN ledgers t USING (ledger) WHERE l.state > 0;

CREATE VIEW in_doubt AS
	SELECT t.trunk_id, replace(text_of(l.key), E'\x1f', '/') AS key, to_timestamp(l.updated / 1000.0) AS sent, l.file, l.line, l.organization, l.locator, l.status, l.external_id,
		l.code, l.reason, l.run, l.worker, coalesce(may_settle(w), false) AS under_way
	FROM lead_rows l JOIN ledgers t USING (ledger) LEFT JOIN workers w USING (worker) WHERE l.state = 4;

CREATE VIEW runs AS
	SELECT t.trunk_id, v->>'ID' AS run, v->>'Command' AS command, (v->>'Started')::timestamptz AS started, (v->>'Finished')::timestamptz AS finished,
		v->>'Outcome' AS outcome, coalesce(v->'Counts', '{}') AS counts
	FROM notes n JOIN ledgers t USING (ledger) CROSS JOIN LATERAL (SELECT n.value::jsonb AS v) x WHERE starts_with(n.name, 'run ');

CREATE VIEW decisions AS
	SELECT t.trunk_id, (d->>'At')::timestamptz AS decided, replace(d->>'Key', E'\x1f', '/') AS key,
		CASE WHEN d->>'LeadID' <> '' THEN d->>'LeadID' WHEN (d->>'Exists')::boolean THEN 'exists' ELSE 'none' END AS decision,
		(SELECT string_agg(c->>'Text', '; ' ORDER BY c->>'Found') FROM jsonb_array_elements(d->'Against') c) AS contradicted
	FROM notes n JOIN ledgers t USING (ledger) CROSS JOIN LATERAL (SELECT n.value::jsonb AS v WHERE starts_with(n.name, 'decided ')) x
		CROSS JOIN LATERAL jsonb_array_elements(v) d;
