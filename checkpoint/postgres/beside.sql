( -- Says whether the worker w went on when me began, or began later: it may still settle its rows in doubt itself. What other workers
	-- left in doubt is counted when a run begins.
	(w.ended IS NULL OR w.ended > me.started) AND (w.fenced_by IS NULL OR w.fenced_by > me.worker)
	AND w.beat > me.started - interval '60 seconds'
)
