package importer

import (
	"cmp"
	"errors"
	"fmt"

	"leadferry/checkpoint"
	"leadferry/importer/delivery"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/crash"
)

// Stop is why a run ended before its input did.
type Stop = delivery.Stop

// graver returns the stop with the more important exit code. first may be nil.
func graver(first, then *Stop) *Stop {
	if first == nil || report.WorseExitCode(first.Code, then.Code) != first.Code {
		return then
	}
	return first
}

func interrupted() *Stop { return &Stop{Reason: "interrupted", Code: report.CodeInterrupted} }

// crashed returns the stop after a fault of the program itself. What is settled stays.
func crashed(err error) *Stop {
	const hint = "this is a fault of leadferry: report it with this line. The same command goes on from here. It may " +
		"fail again at the same row: then leave out that row, or use --limit"
	return delivery.Lasting(report.CodeStopped, err.Error(), hint)
}

// ledgerFailed returns the stop after an error of the checkpoint.
func ledgerFailed(err error) *Stop {
	refused, opened := errors.AsType[*checkpoint.OpenError](err)
	switch {
	case errors.As(err, new(*crash.Error)):
		return crashed(err)
	case errors.Is(err, checkpoint.ErrEnough):
		return delivery.StopFor("as many leads as --max-creates allows have been made", "")
	case errors.Is(err, checkpoint.ErrOtherMaySend):
		return delivery.StopFor("while this run stood still, others decided about its rows", "")
	case errors.Is(err, checkpoint.ErrFenced):
		const hint = "nothing is to be repaired: the newer one goes on. If that was refused, start this one again"
		return delivery.Lasting(report.CodeFenced, "a newer worker has taken the place of this one", hint)
	case errors.Is(err, checkpoint.ErrDamaged):
		reason := fmt.Sprintf("the checkpoint is damaged: %v", err)
		if opened { // its own hint is for a command that opens it
			reason = fmt.Sprintf("the checkpoint %s %s", refused.Path, refused.Text)
		}
		return delivery.Lasting(report.CodeCheckpoint, reason, "leadferry checkpoint check says what to do")
	case opened && errors.Is(err, checkpoint.ErrGone):
		const hint = "if another run has begun, wait until it has ended; then run the same command again: it says " +
			"what to do"
		return delivery.Lasting(report.CodeCheckpoint, refused.Text, hint)
	case opened: // it is not what it was when the run began
		reason := "the checkpoint cannot be relied on any more: " + refused.Text
		return delivery.Lasting(report.CodeCheckpoint, reason, refused.Hint)
	case errors.Is(err, checkpoint.ErrNoWitness):
		reason := fmt.Sprintf("nothing was sent: the run cannot note outside the checkpoint that it uses it: %v", err)
		const hint = "make room on the disk, make the state directory writable, or give the run a folder (--out)"
		return delivery.Lasting(report.CodeStopped, reason, hint)
	case errors.Is(err, checkpoint.ErrRemoved):
		const hint = "find out what took it away, put it back, and keep this run's results: they hold its lead IDs"
		return delivery.Lasting(report.CodeStopped, fmt.Sprintf("the checkpoint is lost: %v", err), hint)
	}
	hint := "make room or repair the disk"
	if server, served := errors.AsType[*checkpoint.StoreError](err); served {
		hint = cmp.Or(server.Hint, "see what its server says; the same command goes on from there")
	}
	return delivery.StopFor(fmt.Sprintf("the checkpoint could not be written: %v", err), hint)
}

// inputEnded returns the stop after an input that could not be read to its end.
func inputEnded(err error) *Stop {
	if _, failed := errors.AsType[*crash.Error](err); failed {
		return crashed(err)
	}
	hint := "correct the file"
	if lost, is := errors.AsType[*source.LostError](err); is && lost.Hint != "" {
		hint = lost.Hint
	}
	return delivery.Lasting(report.CodeStopped, fmt.Sprintf("the input could not be read to its end: %v", err),
		hint+"; then run the same command again: nothing is sent twice")
}

// limiter says whether rows may be sent, and when a limit ends the run. Only the engine, under its lock, uses it.
type limiter struct {
	limits  *delivery.Limits
	counts  checkpoint.Counts
	fleet   bool // member checks the limits, except the one on the first rows; the ledger counts the creates
	creates int  // leads that are made or may be (--max-creates)
	enough  bool // the fleet may make no more leads
	first   int  // number of first rows: if all are refused with one status, every row is wrong
	refused int  // that status; 0: no row was sent yet; -1: statuses differ, or a row was accepted
}

// count counts a row that has ended, and returns why a limit ends the run, or nil.
func (l *limiter) count(it *item) *Stop {
	if it.faults != nil {
		l.counts.Invalid++
	}
	if it.attempts > 0 {
		l.sent(it)
	}
	if stop := l.limits.Reached(delivery.Counts(l.counts)); !l.fleet && stop != nil {
		return stop
	}
	if l.noneAccepted() && l.counts.Sent >= max(l.first, 1) {
		return delivery.AllRefused(l.counts.Sent, l.refused)
	}
	return nil
}

func (l *limiter) sent(it *item) {
	l.counts.Sent++
	status := it.refusedAs
	if it.outcome == Rejected {
		status = it.entry.Code
	}
	if status != 0 && (l.refused == 0 || l.refused == status) {
		l.refused = status
	} else {
		l.refused = -1
	}
	switch {
	case it.outcome == Rejected, it.outcome == Failed, it.refusedAs != 0:
		l.counts.Refused++
	case it.outcome == InDoubt:
		l.counts.Doubts++
	}
}

// created counts a create that has ended. If it made no lead, its share of --max-creates is free again.
func (l *limiter) created(it *item, refused bool) {
	if it.outcome != Created && it.outcome != Partial && (it.outcome != InDoubt || refused || it.refusedAs != 0) {
		l.creates--
	}
}

// mayBegin reports whether one more row may be sent while underWay rows are being sent. why, if not nil, ends the run.
func (l *limiter) mayBegin(a Action, underWay int) (may bool, why *Stop) {
	switch most := l.limits.MaxCreates; {
	case a.requests() && l.noneAccepted() && underWay > 0 && l.counts.Sent+underWay >= l.first:
		return false, nil // those under way will show whether something is wrong with every row
	case a != Create:
		return true, nil
	case l.limits.Doubts(0): // of earlier runs
		return false, l.limits.DoubtsBefore()
	case !l.enough && (most == 0 || l.fleet || l.creates < most):
		return true, nil
	case underWay > 0: // wait: one of these rows may make no lead
		return false, nil
	}
	return false, ledgerFailed(checkpoint.ErrEnough)
}

// noneAccepted reports whether no row was accepted so far: all were refused with one status, or none was sent.
func (l *limiter) noneAccepted() bool {
	return l.limits.MaxRejects != delivery.Share{} && (l.refused > 0 || l.counts.Sent == 0)
}
