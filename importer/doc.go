// Package importer carries rows from files into the lead service, once each.
//
// It is the middle of leadferry and the only package that knows the order of
// steps: source reads Rows, mapping makes Records, a planner looks at what the
// checkpoint knows and answers with one Step, the engine claims, sends, settles
// and records. Import, Sync and Validate are this one engine with different planners.
//
// It promises that no create leaves before its intent is durable and no update before
// its mark, that no outcome is shown before it is durable, that a create which may
// have been applied is never sent again by itself, that a row which may be known already
// (its key looks like a known one, the checkpoint is incomplete) is held, not sent, that
// an update counts only when the lead that comes back shows it, that rows of one lead are
// judged one after another in file order, and that the outcomes add up to the rows read.
package importer
