package importer

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/checkpoint"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// moved is what the answer to an update shows of the lead's status and owner.
type moved struct {
	from, to  string // status that was last confirmed, and that is now; equal: nothing was changed by the run
	elsewhere bool   // somebody else changed the status
	owner     bool   // somebody else changed the owner
}

// reasonNotConfirmed is the class of an update whose answer shows other values.
const reasonNotConfirmed = "not_confirmed"

// updated settles what the lead that came back shows. The update holds only when it
// is the lead that was meant and carries what was sent.
func (e *engine) updated(j *job, lead *leadapi.Lead) {
	if lead.ID != j.entry.LeadID {
		j.entry.Code = http.StatusOK
		e.unanswered(j, "the lead that came back is another one", nil)
		return
	}
	rec, send := &j.it.rec, &j.step.Send
	wrong, names := differing(rec, send, lead)
	e.see(j, lead)
	e.takeContent(j, wrong)
	entry := &j.entry
	entry.Code, entry.Reason, entry.Refused = http.StatusOK, "", checkpoint.Digest{}
	if names != nil {
		entry.Reason, entry.Synced = reasonNotConfirmed, true
		j.text = "the update was answered but not confirmed: the lead came back with another " + strings.Join(names, ", ")
		e.settle(j, Failed)
		return
	}
	if send.Status && entry.Status != j.leadBefore.status {
		j.moved.from, j.moved.to = j.leadBefore.status, entry.Status
	}
	if e.matches {
		entry.Synced = true
	} else {
		entry.Digest, entry.Synced = j.it.digest, false
	}
	if entry.State == checkpoint.Partial && entry.ExternalID != "" && entry.ExternalID == rec.ExternalID {
		entry.State, entry.WantLink = checkpoint.Created, ""
	}
	e.settle(j, j.step.Outcome)
}

// see takes over what the service shows of a lead, and notes what others changed.
func (e *engine) see(j *job, lead *leadapi.Lead) {
	entry, before := &j.entry, &j.leadBefore
	if lead.Status != "" {
		entry.Status = lead.Status
	}
	if lead.ExternalID != "" {
		entry.ExternalID = lead.ExternalID
	}
	if lead.OwnerID != "" {
		entry.Organization = lead.OwnerID
	}
	if lead.LocationName != "" {
		entry.Location = lead.LocationName
	}
	entry.Unsettled, entry.Sought, entry.Confirmed = "", "", checkpoint.Entry{}.Confirmed
	e.sign(j)
	if !j.step.Send.Status && before.unsettled == "" && before.status != "" && entry.Status != before.status {
		j.moved.elsewhere = true
		j.say(fmt.Sprintf("its status was changed on the service: %s was confirmed on %s, now it is %s",
			before.status, clock(before.confirmed), entry.Status))
	}
	if before.organization != "" && entry.Organization != before.organization {
		j.moved.owner = true
		j.say("it belongs to another organization now")
	}
}

// say adds a remark to how the row ended.
func (j *job) say(text string) {
	if j.text != "" {
		j.text += "; "
	}
	j.text += text
}

// takeContent keeps the digests of what the content is known to hold now.
func (e *engine) takeContent(j *job, wrong map[int]bool) {
	known := j.entry.Content
	if j.leadBefore.unsettled != "" {
		known = nil // the update before this one may have changed any of them
	}
	j.entry.Content = merged(known, &j.it.rec, j.it.sums, wrong)
}

// differing names what the lead carries otherwise than it was sent; wrong are the
// fields among it by their place in the Record.
func differing(rec *mapping.Record, send *Changes, lead *leadapi.Lead) (wrong map[int]bool, names []string) {
	if send.Status && lead.Status != rec.Status {
		names = append(names, "Status")
	}
	if send.ExternalID && lead.ExternalID != rec.ExternalID {
		names = append(names, "ExternalID")
	}
	for _, i := range send.Fields {
		f := &rec.Content[i]
		if carries(lead.Content[f.Name], f) {
			continue
		}
		if wrong == nil {
			wrong = map[int]bool{}
		}
		wrong[i] = true
		names = append(names, fmt.Sprintf("Content key %q", f.Name))
	}
	return wrong, names
}

// decimal is a number to its last digit, however it is written.
type decimal struct {
	negative bool
	digits   string // without zeros at either end
	power    int    // of ten
}

// decimalOf reads a JSON number. One with a power beyond reason is as it is written.
func decimalOf(number string) (d decimal) {
	rest, negative := strings.CutPrefix(strings.ToLower(number), "-")
	mantissa, power, _ := strings.Cut(rest, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	n, err := strconv.Atoi(power)
	switch {
	case digits == "":
		return decimal{}
	case err != nil && power != "":
		return decimal{digits: number}
	}
	return decimal{negative, digits, n + len(all) - len(digits) - len(fraction)}
}

// carries reports whether a value of the answer is the one that was sent, however it
// is written: 1.50 is 1.5, but 7 is not "7".
func carries(have jsontext.Value, f *mapping.Field) bool {
	if len(have) == 0 {
		return false
	}
	if f.Kind == mapping.String {
		text, err := jsontext.AppendUnquote(nil, have)
		return err == nil && have.Kind() == '"' && string(text) == f.Value
	}
	if f.Kind == mapping.Number && have.Kind() == '0' {
		return decimalOf(f.Value) == decimalOf(string(have))
	}
	sent, got := jsontext.Value(f.Value).Clone(), have.Clone()
	return sent.Canonicalize() == nil && got.Canonicalize() == nil && bytes.Equal(sent, got)
}
