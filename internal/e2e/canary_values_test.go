package e2e

import (
	"fmt"
	"math/rand/v2"
)

// plantedRows is how many people are planted; each has a value for each of
// plantedColumns, and another name and note later.
const plantedRows = 80

// plantedColumns hold what nobody but the service may learn. Nothing sends the last.
var plantedColumns = []string{"full name", "mail", "phone", "note", "street", "town", "memo"}

// person is one row's planted values.
type person struct {
	cells   []string // by plantedColumns
	renamed string
	noted   string
}

// plantedPersons are the same in every run, and so random that none of their values
// comes about by chance.
func plantedPersons() []person {
	r := rand.New(rand.NewPCG(117, 121))
	text := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	word := func(n int) string { return text("bcdfghjklmnpqrstvwxz", n) }
	digits := func(n int) string { return text("0123456789", n) }
	name := func() string { return "Ö" + word(8) + " O'" + word(7) }
	note := func() string { return `=HYPERLINK("http://` + word(10) + ".example\"), a\x1b[31m\nb\t" + word(5) }
	people := make([]person, plantedRows)
	for i := range people {
		mail := word(10) + "@" + word(8) + ".example"
		if i%10 == 4 {
			mail = word(10) + " at " + word(8) + ".example"
		}
		people[i] = person{
			cells: []string{
				name(), mail, "+49 15" + digits(2) + " " + digits(9), note(),
				word(9) + "straße " + digits(5) + "/ß&", "東京" + word(9) + "市%+", "<" + word(14) + `\>`,
			},
			renamed: name(), noted: note(),
		}
	}
	return people
}

func plantedPeople() (canaries []canary) {
	for _, p := range plantedPersons() {
		for _, value := range append([]string{p.renamed, p.noted}, p.cells...) {
			canaries = append(canaries, canary{value: value})
		}
	}
	return canaries
}

// What the account of the planted tests has; tokens get a number behind them.
const (
	canaryPassword  = `pQ7"kW v3ö+/%&-Zp9tLm2Rb5Yc<`
	canaryTemporary = "hJ4.nVe8sXo1UqTg6.Dw0~Fy-Kz2"
	canarySecret    = `sK5"+/=&%<rM8zCi3EjPu7Hv>Bd4`
	canaryAccess    = "aB2.lSx6GnQd9.OwTk4+IyVh5-Jr"
	canaryRefresh   = "rR1/cFv7+ZaJm=3Nh&8XpLs6~Wq"
)

func plantedSecrets() (canaries []canary) {
	for _, s := range []string{canaryPassword, canaryTemporary, canarySecret, canaryAccess, canaryRefresh} {
		canaries = append(canaries, canary{s, true})
	}
	return canaries
}

// common is what is looked for behind every test of a world: the secrets, and the names
// of w.leads and w.export where these were used.
func (w *world) common(secrets ...string) (canaries []canary) {
	if w.given["leads.csv"] || w.given["crm.csv"] {
		for i := range 10 {
			canaries = append(canaries, canary{value: fmt.Sprintf("Person %d", i)})
		}
	}
	for _, s := range secrets {
		canaries = append(canaries, canary{s, true})
	}
	return canaries
}
