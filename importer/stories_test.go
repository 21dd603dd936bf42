package importer

import (
	"fmt"
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/mapping"
)

// stories say what happens to one lead over several runs, one step a line:
//
//	import|sync|reconcile OPTIONS: ROWS = OUTCOMES    a run, its rows parted by |
//	sends BODIES              what arrived for the lead since the last "sends", parted by |; a read is "read"
//	says TEXT, omits TEXT     what the results of the last run say of its first row, or do not say
//	knows WORDS               what the checkpoint knows of the lead, see knownAs
//	pulls ID STATUS           what the pull file of the last run holds; STATUS may be left out
//	moved FROM TO             the change of status that the last run confirmed
//	console FIELD VALUE       a person changes the lead; shows FIELD VALUE: what the service holds
//	fate LIST                 how the next requests end; the last word is for all later ones; no words: well
var stories = map[string]string{
	"a status that was seen is treated by the conflict rule": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync all: a,,x-a,open,Ann,1 = conflict 1
		knows status=open seen=closedWon
		sends {"ExternalID":"x-a"} | read
		sync: a,,x-a,contacted,Ann,1 = conflict 1
		says open was confirmed
		sync file hold: a,,x-a,contacted,Ann,1 = conflict 1
		import update: a,,x-a,contacted,Ann,1 = conflict 1
		sends
		sync service: a,,x-a,contacted,Ann,1 = unchanged 1
		sends
		knows status=open seen=closedWon kept=contacted
		sync service: a,,x-a,contacted,Ann,1 = unchanged 1
		says the service's value is kept: Status closedWon
		sync service: a,,x-a,contacted,Anna,1 = updated 1
		says ; the service's value is kept: Status closedWon
		sends {"Content":{"name":"Anna"}}
		knows status=open seen=closedWon kept=contacted
		sync service: a,,x-a,open,Anna,1 = updated 1
		sends {"Status":"open"}
		knows status=open seen= kept=`,
	"a status that won counts as confirmed once it is gone": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service all: a,,x-a,open,Ann,1 = unchanged 1
		console Status open
		sync all: a,,x-a,closedWon,Ann,1 = conflict 1
		sync: a,,x-a,closedWon,Ann,1 = conflict 1
		sync service: a,,x-a,closedWon,Anna,1 = updated 1
		shows Status open`,
	"a row that keeps the value that lost did not change": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service all: a,,x-a,open,Ann,1 = unchanged 1
		console Status contacted
		sync all: a,,x-a,open,Ann,1 = conflict 1
		knows status=open seen=contacted`,
	"what is seen after an update without an answer is held": `
		import: a,,x-a,open,Ann,1 = created 1
		fate 500
		sync: a,,x-a,contacted,Ann,1 = failed 1
		fate
		console Status closedWon
		sync all: a,,x-a,contacted,Ann,1 = conflict 1
		sync: a,,x-a,contacted,Ann,1 = conflict 1`,
	"an update without a status is repeated without it": `
		import: a,,x-a,open,Ann,1 = created 1
		fate lost good
		sync: a,,x-a,open,Anna,1 = failed 1
		console Status closedWon
		sync file: a,,x-a,,Anna,1 = updated 1
		says now it is closedWon
		sends {"ExternalID":"x-a"} | {"Content":{"name":"Anna"}} | {"Content":{"name":"Anna"}}`,
	"a row without a status leaves what is kept": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service all: a,,x-a,,Ann,1 = unchanged 1
		sync service: a,,x-a,open,Ann,1 = unchanged 1
		sync service all: a,,x-a,,Ann,1 = unchanged 1
		sync service: a,,x-a,,Ann,1 = unchanged 1
		sync service all: a,,x-a,open,Ann,1 = unchanged 1
		shows Status closedWon
		sync service: a,,x-a,onHold,Ann,1 = updated 1`,
	"what an answer shows, by report": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync: a,,x-a,open,Anna,1 = updated 1
		says now it is closedWon
		sends {"ExternalID":"x-a"} | {"Content":{"name":"Anna"}}
		pulls
		sync: a,,x-a,open,Anna,1 = conflict 1
		sends`,
	"what an answer shows, by service": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service: a,,x-a,open,Anna,1 = updated 1
		pulls x-a 
		sync service: a,,x-a,open,Anna,1 = unchanged 1
		pulls x-a 
		sends {"ExternalID":"x-a"} | {"Content":{"name":"Anna"}}`,
	"what an answer shows, by file": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync file: a,,x-a,open,Anna,1 = updated 1
		says now it is closedWon)
		moved closedWon open
		pulls
		sends {"ExternalID":"x-a"} | {"Content":{"name":"Anna"}} | {"Status":"open"}
		sync file: a,,x-a,open,Anna,1 = unchanged 1`,
	"what an answer shows, by file, if reopening is held": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync file hold: a,,x-a,open,Anna,1 = conflict 1
		says a part of the row was not sent
		sync file hold: a,,x-a,open,Anna,1 = conflict 1
		shows Status closedWon`,
	"a status that was put back holds the row": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		reconcile: a,,x-a,open,Ann,1 = conflict 1
		console Status open
		console ExternalID typed
		sync: a,,x-a,closedWon,Anna,1 = conflict 1
		says ExternalID; a part of the row was not sent`,
	"a status that is sent over a newer one may be refused": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		fate good 422
		sync file: a,,x-a,open,Anna,1 = rejected 1
		fate
		sync file retry: a,,x-a,open,Anna,1 = updated 1
		sync file: a,,x-a,open,Anna,1 = unchanged 1
		knows status=open
		shows Status open`,
	"a status that is sent over a newer one may not be confirmed": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		fate good lost
		sync file: a,,x-a,open,Anna,1 = failed 1
		fate
		sync file: a,,x-a,open,Anna,1 = updated 1
		console Status closedWon
		fate good other-status
		sync file: a,,x-a,open,Ann,1 = failed 1
		fate
		sync file: a,,x-a,open,Ann,1 = updated 1
		sync file: a,,x-a,open,Ann,1 = unchanged 1
		shows Status open`,
	"the rule of the status that the service shows counts": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status onHold
		reconcile: a,,x-a,contacted,Ann,1 = conflict 1
		console Status closedWon
		reconcile won-by-file: a,,x-a,contacted,Ann,1 = conflict 1
		pulls
		sync service won-by-file: a,,x-a,contacted,Anna,1 = updated 1
		pulls
		shows Status contacted
		console Status inProgress
		sync service won-by-file: a,,x-a,contacted,Ann,1 = updated 1
		pulls x-a 
		sync service won-by-file: a,,x-a,contacted,Ann,1 = unchanged 1
		pulls x-a 
		shows Status inProgress`,
	"a kept status is pulled although other content is refused": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service all: a,,x-a,open,Ann,1 = unchanged 1
		fate 422
		sync service: a,,x-a,open,Anna,1 = rejected 1
		pulls x-a
		sync service: a,,x-a,open,Anna,1 = rejected 1
		pulls x-a
		sync: a,,x-a,open,Anna,1 = rejected 1
		pulls`,
	"a status that a read shows is pulled although the update is refused": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status onHold
		fate good 422
		sync service all: a,,x-a,open,Anna,1 = rejected 1
		pulls x-a onHold`,
	"a kept status is pulled although an update of other content gets no answer": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		reconcile service: a,,x-a,open,Ann,1 = conflict 1
		fate lost
		sync service: a,,x-a,open,Anna,1 = failed 1
		pulls x-a
		sync service: a,,x-a,open,Anna,1 = failed 1
		pulls x-a`,
	"overwriting a status that an earlier run saw is reported": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		reconcile: a,,x-a,open,Ann,1 = conflict 1
		sync file: a,,x-a,contacted,Ann,1 = updated 1
		says now it is closedWon)
		moved closedWon contacted
		sync file: a,,x-a,open,Ann,1 = updated 1
		omits changed on the service`,
	"overwriting a status that this run read is reported": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync file changed: a,,x-a,contacted,Ann,1 = updated 1
		says now it is closedWon)
		moved closedWon contacted
		console Status open
		console ExternalID typed
		sync file changed: a,,x-a,contacted,Ann,2 = updated 1
		says now it is open)`,
	"a file that takes over a status that was seen is in step": `
		import: a,,x-a,open,Ann,1 = created 1
		console Status closedWon
		sync service all: a,,x-a,open,Ann,1 = unchanged 1
		sends {"ExternalID":"x-a"} | read
		sync: a,,x-a,closedWon,Ann,1 = unchanged 1
		knows status=closedWon seen= kept=
		sync: a,,x-a,onHold,Ann,1 = updated 1
		sends {"Status":"onHold"}`,
	"a lead is read before it is changed": `
		import: a,,x-a,open,Ann,1 = created 1
		sends {"ExternalID":"x-a"}
		sync changed: a,,x-a,contacted,Ann,1 = updated 1
		sends read | {"Status":"contacted"}
		sync changed: a,,x-a,contacted,Ann,1 = unchanged 1
		sends
		console Status closedWon
		sync changed: a,,x-a,inProgress,Ann,1 = conflict 1
		sync changed: a,,x-a,inProgress,Ann,1 = conflict 1
		says contacted was confirmed on 2000-01-01
		knows status=contacted unsettled=
		console Status
		sync changed: a,,x-a,inProgress,Ann,1 = conflict 1
		says now it is not readable
		sends read | read | read
		console Status closedWon
		sync changed: a,,x-a,closedWon,Ann,1 = unchanged 1
		sync changed: a,,x-a,closedWon,Ann,1 = unchanged 1
		sends read
		console Status onHold
		sync changed: a,,x-a,onHold,Anna,1 = updated 1
		says closedWon was confirmed on
		sends read | {"Content":{"name":"Anna"}}`,
	"all leads are read if that is asked for": `
		import: a,,x-a,open,Ann,1 = created 1
		sends {"ExternalID":"x-a"}
		console Status onHold
		sync changed: a,,x-a,open,Ann,1 = unchanged 1
		sends
		sync all: a,,x-a,open,Ann,1 = conflict 1
		sync all file: a,,x-a,open,Ann,1 = updated 1
		sends read | read | {"Status":"open"}
		sync all: a,,x-a,open,Ann,1 = unchanged 1
		knows unsettled= seen=open`,
	"a status that only a read showed does not count against a newer answer": `
		import: a,,x-a,open,Ann,1 = created 1
		sends {"ExternalID":"x-a"}
		fate other-status good
		sync changed service: a,,x-a,contacted,Anna,1 = updated 1
		sends read | {"Content":{"name":"Anna"}} | {"Status":"contacted"}`,
	"a lead that is closed meanwhile is not reopened, and the row says so": `
		fate good other-status
		import: a,,x-a,open,Ann,1 = created 1
		fate good other-status
		sync changed service hold: a,,x-a,contacted,Anna,1 = conflict 1
		says would reopen it as contacted; a part of the row was not sent`,
	"a read decides whether a lead would be reopened": `
		import: a,,x-a,closedWon,Ann,1 = created 1
		sync changed hold: a,,x-a,contacted,Ann,1 = conflict 1
		console Status contacted
		sync changed hold: a,,x-a,contacted,Ann,1 = unchanged 1
		sync: a,,x-a,contacted,Ann,1 = unchanged 1
		console Status closedWon
		sync all hold: a,,x-a,onHold,Ann,1 = conflict 1
		says closedWon`,
	"a lead that only its row knows is read before it might be reopened": `
		console Status closedWon
		sync hold: a,lead-0001,x-a,contacted,Ann,1 = conflict 1
		says closedWon
		knows state=created unsettled= seen=closedWon
		console Status onHold
		sync hold changed: a,lead-0001,x-a,contacted,Ann,1 = updated 1
		sends read | read | {"Status":"contacted","ExternalID":"x-a","Content":{"name":"Ann","phone":"1","ref":"a"}}`,
	"a lead is not reopened if nobody knows whether an update has closed it": `
		import: a,,x-a,open,Ann,1 = created 1
		fate lost
		sync: a,,x-a,closedWon,Ann,1 = failed 1
		fate
		console Status closedWon
		sync hold: a,,x-a,contacted,Ann,1 = conflict 1
		says closedWon
		console Status open
		sync hold: a,,x-a,contacted,Ann,1 = updated 1`,
	"an ExternalID that a person typed is not overwritten": `
		import: a,,x-a,open,Ann,1 = created 1
		console ExternalID console
		reconcile: a,,x-a,open,Ann,1 = conflict 1
		knows ext=console want=x-a state=created
		sync: a,,x-a,open,Ann,1 = conflict 1
		import: b,,console,open,Bob,1 = conflict 1
		import: b,,x-a,open,Bob,1 = conflict 1
		sync service: a,,x-a,open,Ann,1 = unchanged 1
		shows ExternalID console
		sync: a,,console,open,Ann,1 = unchanged 1
		knows ext=console want=
		import: b,,x-a,open,Bob,1 = created 1`,
	"a lead whose ExternalID was changed elsewhere is found again": `
		import: a,,x-a,open,Ann,1 = created 1
		console ExternalID typed
		sync create: renamed,,x-a,open,Anna,1 = updated 1
		says changed on the service: ExternalID
		fate 404
		sync create: renamed,,x-a,open,Anne,1 = failed 1
		fate lost
		sync create: renamed,,x-a,open,Anne,1 = failed 1
		fate
		sync create: renamed,,x-a,open,Hanna,1 = conflict 1
		sync create file: renamed,,x-a,open,Hanna,1 = updated 1
		sync create file: renamed,,x-a,open,Hanna,1 = unchanged 1
		knows ext=x-a want= state=created
		shows ExternalID x-a`,
	"keeping a value of the service confirms nothing": `
		import: a,,x-a,open,Ann,1 = created 1
		console phone "9"
		sync service all: a,,x-a,contacted,Ann,2 = updated 1
		reconcile: a,,x-a,contacted,Ann,2 = conflict 1
		pulls
		says changed on the service: phone`,
	"a link that a person made is not overwritten": `
		fate good 500
		import: a,,x-a,open,Ann,1 = partial 1
		fate
		console ExternalID console
		import: a,,x-a,open,Ann,1 = conflict 1
		shows ExternalID console
		console ExternalID x-a
		import: a,,x-a,open,Ann,1 = created 1`,
	"a first ExternalID that was not applied is not wanted any more": `
		console Status open
		fate 429
		sync: a,lead-0001,x-a,onHold,Ann,1 = failed 1
		knows ext= want=
		fate
		sync: a,lead-0001,x-a,onHold,Ann,1 = updated 1
		knows ext=x-a want=`,
	"a link that is not confirmed leaves the row partial": `
		fate good 404
		import: a,,x-a,open,Ann,1 = partial 1
		says created but not linked
		fate other-id
		import file: a,,x-a,open,Ann,1 = partial 1
		fate other-external
		import file: a,,x-a,open,Ann,1 = partial 1
		says linking was answered but not confirmed
		knows state=partial want=x-a
		fate
		import file: a,,x-a,open,Ann,1 = created 1`,
	"a refused update is remembered": `
		import: a,,x-a,open,Ann,1 = created 1
		sends {"ExternalID":"x-a"}
		fate 422
		sync: a,,x-a,onHold,Ann,1 = rejected 1
		says HTTP 422 (refused), see the rejects
		sends {"Status":"onHold"}
		fate
		sync: a,,x-a,onHold,Ann,1 = rejected 1
		says refused with HTTP 422 in an earlier run
		sends
		knows status=open unsettled= refused=yes
		sync: a,,x-a,open,Ann,1 = unchanged 1
		sync retry: a,,x-a,onHold,Ann,1 = updated 1
		knows refused=
		sync: a,,x-a,onHold,Ann,1 = unchanged 1`,
	"a refusal after silence settles nothing": `
		import: a,,x-a,open,Ann,1 = created 1
		fate lost 422
		sync again: a,,x-a,contacted,Ann,1 = rejected 1
		knows status=open unsettled=run-2 refused=yes
		fate
		sends {"ExternalID":"x-a"} | {"Status":"contacted"} | {"Status":"contacted"}
		sync: a,,x-a,contacted,Ann,1 = rejected 1
		sends
		sync: a,,x-a,open,Ann,1 = updated 1
		sends {"Status":"open"}`,
	"an update without an answer forgets only what it carried": `
		import: a,,x-a,open,Ann,1 = created 1
		fate lost
		sync: a,,x-a,open,Ann,2 = failed 1
		fate
		console name Bea
		sync service all: a,,x-a,open,Ann,2 = unchanged 1
		says the service's value is kept: name
		sends {"ExternalID":"x-a"} | {"Content":{"phone":"2"}} | read`,
	"an ExternalID counts only if the answer shows it": `
		import: a,,x-a,open,Ann,1 = created 1
		sends {"ExternalID":"x-a"}
		fate other-external
		sync file: a,,y-a,open,Ann,1 = failed 1
		says the lead came back with another ExternalID
		fate
		sync file: a,,y-a,open,Ann,1 = updated 1
		sends {"ExternalID":"y-a"} | {"ExternalID":"y-a"}`,
	"an import sends what changed": `
		import: a,,x-a,open,Ann,1 = created 1
		import: b,,x-b,open,Bob,1 = created 1
		sends {"ExternalID":"x-a"}
		import: a,,x-a,open,Anna,1 = changed 1
		import update: a,,x-a,open,Anna,1 | b,,x-b,open,Bob,1 = updated 1 unchanged 1
		sends {"Content":{"name":"Anna"}}
		import: a,,x-a,open,Anna,1 = unchanged 1
		sync: a,,x-a,open,Annie,1 = updated 1
		import: a,,x-a,open,Annie,1 = unchanged 1
		import: a,,x-a,open,Nan,1 = changed 1`,
}

// INTERFACE says what has to happen in these stories. faults 68, 69, 79
func TestStories(t *testing.T) {
	for name, text := range stories {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				var last *trial
				for line := range strings.Lines(text) {
					if step := strings.TrimSpace(line); step != "" {
						last = p.playStep(step, last)
					}
				}
			})
		})
	}
}

const storyLead = "lead-0001"

// playStep carries out a step of a story after the run last, and returns the last run.
func (p *pair) playStep(step string, last *trial) *trial {
	p.t.Helper()
	verb, rest, _ := strings.Cut(step, " ")
	fail := func(got any) { p.t.Errorf("%s: got %v", step, got) }
	switch verb {
	case "console":
		field, value, _ := strings.Cut(rest, " ")
		p.service.typed(storyLead, field, value)
	case "shows":
		field, value, _ := strings.Cut(rest, " ")
		lead := p.service.lead(storyLead)
		if got := map[string]string{"Status": lead.Status, "ExternalID": lead.ExternalID}[field]; got != value {
			fail(got)
		}
	case "fate":
		fates, asked := strings.Fields(rest), 0
		p.service.fate = func(op, _ string) string {
			if len(fates) == 0 {
				return ""
			}
			asked++
			return strings.TrimPrefix(fates[min(asked, len(fates))-1], "good")
		}
	case "sends":
		var got []string
		for line := range strings.Lines(p.service.sent()) {
			if body, is := strings.CutPrefix(strings.TrimSpace(line), storyLead+" "); is {
				got = append(got, body)
			}
		}
		if got := strings.Join(got, " | "); got != rest {
			fail(got)
		}
	case "says", "omits":
		if text := last.lines[0].text; strings.Contains(text, rest) != (verb == "says") {
			fail(text)
		}
	case "knows":
		known := knownAs(p.known("a"))
		for _, word := range strings.Fields(rest) {
			if !strings.Contains(known, " "+word+" ") {
				fail(known)
			}
		}
	case "pulls":
		id, status, told := strings.Cut(rest, " ")
		shown, order := last.pulledBy()
		if strings.TrimSpace(order) != id || told && shown[id] != status {
			fail(shown)
		}
	case "moved":
		from, to, _ := strings.Cut(rest, " ")
		if last.tally.moves[report.Transition{From: from, To: to}] != 1 {
			fail(last.tally.moves)
		}
	default:
		return p.playRun(step)
	}
	return last
}

// playRun carries out a run of a story.
func (p *pair) playRun(step string) *trial {
	p.t.Helper()
	how, rest, _ := strings.Cut(step, ": ")
	rows, want, _ := strings.Cut(rest, " = ")
	words := strings.Fields(how)
	o := Options{Keeping: Keeping{Files: report.Files{Pull: "pull.csv"}}}
	for _, word := range words[1:] {
		switch word {
		case "file", "service":
			o.Conflict = mapping.Rule(word)
		case "all":
			o.CheckRemote = ReadAll
		case "changed":
			o.CheckRemote = ReadChanged
		case "hold":
			o.HoldReopen = true
		case "update":
			o.Changed = UpdateChanged
		case "create":
			o.Missing = MissingCreate
		case "retry":
			o.RetryRejected = true
		case "again":
			o.Retries = 1
		case "won-by-file":
			m := parsed(p.t, strings.ReplaceAll(pairMapping, `"{status}"`, `{from: "{status}", conflict: {closedWon: file}}`))
			o.Mapping = m
		default:
			p.t.Fatalf("no such option: %s", word)
		}
	}
	r := p.run(words[0], o, strings.Split(rows, " | ")...)
	if got := r.outcomes(); got != want {
		p.t.Errorf("%s: got %s: %s", step, got, r.lines[0].text)
	}
	return r
}

// knownAs describes what the checkpoint knows of a lead.
func knownAs(e checkpoint.Entry) string {
	refused := ""
	if e.Refused != (checkpoint.Digest{}) {
		refused = "yes"
	}
	return fmt.Sprintf(" state=%v status=%s ext=%s want=%s unsettled=%s refused=%s seen=%s kept=%s ", e.State, e.Status, e.ExternalID, e.WantLink, e.Unsettled, refused, e.Seen.Status, e.Seen.Against)
}
