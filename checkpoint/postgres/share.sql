-- Gives a worker a piece of its fleet's rate, if there is one: a number of requests, and how long to wait before the first. $1 ledger,
-- $2 fleet. The rate may be given away only so far ahead that a worker waits for a piece or two of each other worker. A later time was
-- noted before the server's clock was set back, and nobody waits for it.
UPDATE leadferry.fleets SET given = least(greatest(given, clock_timestamp()),
		clock_timestamp() + greatest(60, 2 * shards * leadferry.piece(rate, shards) / rate) * interval '1 second')
	+ leadferry.piece(rate, shards) / rate * interval '1 second'
WHERE ledger = $1 AND fleet = $2 AND rate > 0
RETURNING leadferry.piece(rate, shards)::integer,
	greatest(given - clock_timestamp() - leadferry.piece(rate, shards) / rate * interval '1 second', interval '0')
