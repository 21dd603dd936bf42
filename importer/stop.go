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
	"leadferry/leadapi"
)

// Exit codes of a run (README, "Exit codes").
const (
	CodeComplete    = 0
	CodeAttention   = 1
	CodeStopped     = 3
	CodeCheckpoint  = 4
	CodeInDoubt     = 5
	CodeFenced      = 6
	CodeInterrupted = 130
)

// Stop is why a run ended before its input did.
type Stop = delivery.Stop

func stopFor(reason, hint string) *Stop { return &Stop{Reason: reason, Hint: hint, Code: CodeStopped} }

// graver is the reason to tell of two, the first of which may be nil.
func graver(first, then *Stop) *Stop {
	if first == nil || report.Graver(first.Code, then.Code) != first.Code {
		return then
	}
	return first
}

// lastingStop is a stop that the same command would meet again.
func lastingStop(code int, reason, hint string) *Stop {
	return &Stop{Reason: reason, Hint: hint, Code: code, Same: true}
}

func interrupted() *Stop { return &Stop{Reason: "interrupted", Code: CodeInterrupted} }

// crashed is the stop after a fault of the program itself. What is settled stays.
func crashed(err error) *Stop {
	return lastingStop(CodeStopped, err.Error(), "this is a fault of leadferry: report it with this line. The same "+
		"command goes on from here, but may fail again at the same row: the first rows with --limit, or the file "+
		"without that row, will do")
}

// ledgerFailed is the stop after an error of the checkpoint.
func ledgerFailed(err error) *Stop {
	refused, opened := errors.AsType[*checkpoint.OpenError](err)
	switch {
	case errors.As(err, new(*crash.Error)):
		return crashed(err)
	case errors.Is(err, checkpoint.ErrEnough):
		return stopFor("as many leads as --max-creates allows have been made", "")
	case errors.Is(err, checkpoint.ErrFenced):
		const hint = "there is nothing to repair: the newer one goes on"
		return lastingStop(CodeFenced, "a newer worker has taken the place of this one", hint)
	case errors.Is(err, checkpoint.ErrDamaged):
		reason := fmt.Sprintf("the checkpoint is damaged: %v", err)
		if opened { // its own hint is for who opens it
			reason = fmt.Sprintf("the checkpoint %s %s", refused.Path, refused.Text)
		}
		return lastingStop(CodeCheckpoint, reason, "leadferry checkpoint check says what to do")
	case opened && errors.Is(err, checkpoint.ErrGone):
		return lastingStop(CodeCheckpoint, "another run has begun: "+refused.Text, refused.Hint)
	case opened: // met again, it is not what it was
		reason := "the checkpoint cannot be relied on any more: " + refused.Text
		return lastingStop(CodeCheckpoint, reason, refused.Hint)
	case errors.Is(err, checkpoint.ErrNoWitness):
		const reason = "nothing was sent: the run cannot note outside the checkpoint that it uses it: %v"
		return lastingStop(CodeStopped, fmt.Sprintf(reason, err), "make the state directory writable (XDG_STATE_HOME "+
			"names another one), or let the run have a folder (--out)")
	case errors.Is(err, checkpoint.ErrRemoved):
		return lastingStop(CodeStopped, fmt.Sprintf("the checkpoint is lost: %v", err), "find out what took it away, "+
			"and put it back; keep this run's results, which hold the IDs of its leads")
	}
	hint := "make room or repair the disk"
	if server, served := errors.AsType[*checkpoint.StoreError](err); served {
		hint = cmp.Or(server.Hint, "see what its server says; the same command goes on from there")
	}
	return stopFor(fmt.Sprintf("the checkpoint could not be written: %v", err), hint)
}

func filesFailed(err error) *Stop { return stopFor(report.Unwritten(err)) }

// inputEnded is why the rows end before the input does.
func inputEnded(err error) *Stop {
	if _, failed := errors.AsType[*crash.Error](err); failed {
		return crashed(err)
	}
	hint := "mend the file"
	if lost, is := errors.AsType[*source.LostError](err); is && lost.Hint != "" {
		hint = lost.Hint
	}
	return lastingStop(CodeStopped, fmt.Sprintf("the input could not be read to its end: %v", err),
		hint+"; then run the same command again: nothing is sent twice")
}

const reasonPanic = "panic" // the class of a doubt after a fault of the program

// doubtReasons say for people what the classes of doubts mean.
var doubtReasons = map[string]string{
	"":                         "no answer is known: the run ended before it came, or still waits for it",
	leadapi.ReasonTimeout:      "no answer in time",
	leadapi.ReasonNoAnswer:     "the connection broke after the request was sent",
	leadapi.ReasonCanceled:     "the run was stopped before an answer came",
	leadapi.ReasonBadAnswer:    "the answer could not be read",
	leadapi.ReasonNoLeadID:     "the answer carries no usable lead ID",
	leadapi.ReasonServerError:  "the service answered with an error",
	leadapi.ReasonRedirect:     "the answer was a redirect",
	leadapi.ReasonThrottled:    "the service asked to wait, which --resend-on none does not trust",
	checkpoint.ReasonLeadTaken: "the answer names a lead ID that belongs to another row",
	checkpoint.ReasonIncomplete: "not sent: the checkpoint is incomplete, and the row may have a lead that it does " +
		"not know any more",
	checkpoint.ReasonAdopted: "it was in doubt in the checkpoint that it was taken over from",
	checkpoint.ReasonUnkept:  "its lead was made, and the checkpoint could not keep the lead's ID",
	reasonPanic:              "the program failed while the request was under way",
}

func doubtReason(class string, code int) string {
	text := cmp.Or(doubtReasons[class], class)
	if code != 0 {
		return fmt.Sprintf("%s, HTTP %d", text, code)
	}
	return text
}

// ForLocator precedes a locator where an organization is expected.
const ForLocator = "locator "

// AskedFor is the lead's organization or, while that is not known, the locator that was asked for.
func AskedFor(e *checkpoint.Entry) string {
	if e.Organization == "" && e.Locator != "" {
		return ForLocator + e.Locator
	}
	return e.Organization
}

// WithRequestID adds the request ID of a row in doubt, which leads the service's operators to its request.
func WithRequestID(text string, e *checkpoint.Entry) string {
	if e.State != checkpoint.InDoubt || e.RequestID == "" {
		return text
	}
	return text + "; request ID " + e.RequestID
}

// Explain says for people why an entry is in its state, or "".
func Explain(e *checkpoint.Entry) string {
	switch {
	case e.State == checkpoint.InDoubt:
		return doubtReason(e.Reason, e.Code)
	case e.State == checkpoint.Rejected:
		return refusedBefore(e)
	case e.Unsettled != "":
		return fmt.Sprintf("an update of run %s was not confirmed: the next one sends all of its row", e.Unsettled)
	case e.State == checkpoint.Partial:
		return "created but not linked yet"
	case e.State == checkpoint.Created && e.Refused != (checkpoint.Digest{}):
		return fmt.Sprintf("its last update was refused with HTTP %d", e.Code)
	}
	return ""
}
