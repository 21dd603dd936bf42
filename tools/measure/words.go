package main

// words is what rows are made of. Names and places are invented.
type words struct {
	first, mailbox, last, city, stage, model, opening, wish []string
}

func lists() *words {
	return &words{
		first:   []string{"Anton", "Berta", "Clara", "Dieter", "Emil", "Frida", "Günther", "Heidi", "Ilse", "Jürgen", "Karl", "Lotte", "Marie", "Nora", "Otto", "Paula"},
		mailbox: []string{"anton", "berta", "clara", "dieter", "emil", "frida", "guenther", "heidi", "ilse", "juergen", "karl", "lotte", "marie", "nora", "otto", "paula"},
		last:    []string{"Achterberg", "Bergmann", "Cordes", "Dahl", "Engel", "Fuchs", "Gärtner", "Hofer", "Imhof", "Jansen", "Kessler", "Lindner", "Mohr", "Nagel", "Oster", "Petersen"},
		city:    []string{"Altenau", "Birkenfeld", "Dornbach", "Eichwald", "Felsenheim", "Grünau", "Hohenstein", "Lindental"},
		stage:   []string{"New", "Contacted", "Working", "Waiting", "Won", "Lost"},
		model:   []string{"Compact", "Estate", "Roadster", "Transporter", "Electric"},
		opening: []string{"Please arrange a test drive", "Please send an offer", "Please call me about prices", "I have seen your sign"},
		wish:    []string{"before Friday", "next week", "for this model", "with delivery"},
	}
}

// stageKeys is the table of the mapping: the words of the column and the service's keys.
func stageKeys() map[string]string {
	return map[string]string{
		"New": "open", "Contacted": "contacted", "Working": "inProgress",
		"Waiting": "onHold", "Won": "closedWon", "Lost": "closedNotInterested",
	}
}

// mappingFile maps ten content fields with one table, one format and one template.
const mappingFile = `version: 1
key: "{crm_id}"
assign:
  - organization: "{dealer_id}"
lead:
  type_key: contact-form
  type_label: Contact form
  status: {from: "{stage}", map: {New: open, Contacted: contacted, Working: inProgress, Waiting: onHold, Won: closedWon, Lost: closedNotInterested}}
  content:
    name: "{first_name} {last_name}"
    email: {from: "{email}", format: email, required: true}
    phone: "{phone}"
    postalCode: "{zip}"
    city: "{city}"
    country: DE
    model: "{model}"
    message: "{message}"
    requestedAt: "{requested_at}"
    source: website
`

// linkLine, added to the mapping, has every lead linked, which takes a second request.
const linkLine = `  external_id: "{crm_id}"
`
