-- Gives a worker a piece of the rate of its fleet, unless that has none: requests, and after what time they may begin. $1 ledger,
-- $2 fleet. How far ahead the rate may be given away: no worker has more than a piece or two before it. What lies further ahead was
-- noted before the server's clock was put back, and nobody waits for that.
UPDATE leadferry.fleets SET given = least(greatest(given, clock_timestamp()),
		clock_timestamp() + greatest(60, 2 * shards * leadferry.piece(rate, shards) / rate) * interval '1 second')
	+ leadferry.piece(rate, shards) / rate * interval '1 second'
WHERE ledger = $1 AND fleet = $2 AND rate > 0
RETURNING leadferry.piece(rate, shards)::integer,
	greatest(given - clock_timestamp() - leadferry.piece(rate, shards) / rate * interval '1 second', interval '0')
