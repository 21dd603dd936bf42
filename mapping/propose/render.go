package propose

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
	"leadferry/mapping"
)

//go:embed proposal.tmpl
var proposalText string

// proposal is parsed when it is first needed: few runs propose anything.
var proposal = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plural": english.Plural, "quoted": quoted, "scalar": scalar, "sayNames": sayNames, "headersOf": headersOf,
		"fileShown": fileShown, "statuses": func() string { return strings.Join(mapping.Statuses(), ", ") },
		"fewest": func() int { return fewestRows }, "slug": slug,
		"capital": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	}).Parse(proposalText))
})

// slug is words as a name for programs.
func slug(words string) string { return strings.ReplaceAll(words, " ", "-") }

// yaml makes comments of what is behind // and tabs in the template.
func (d *draft) yaml() string {
	text := proseForm().ReplaceAllString(d.execute("mapping"), "$1# ")
	text = strings.NewReplacer("\t\n", "\n", "\t", "  # ").Replace(text)
	return strings.TrimRight(text, "\n") + "\n"
}

func (d *draft) notes() []string {
	return strings.Split(strings.TrimSpace(d.execute("notes")), "\n")
}

func (d *draft) execute(name string) string {
	var b strings.Builder
	if err := proposal().ExecuteTemplate(&b, name, d); err != nil {
		panic(err) // the template does not fit the draft
	}
	return b.String()
}

// Source is what a reader would not find out by itself.
func (d *draft) Source() string { return d.execute("source") }

// Unread is how many rows could not be read.
func (d *draft) Unread() (n int) {
	for _, u := range d.In.Bad {
		n += u.Rows
	}
	return n
}

// Value is the field's value in YAML.
func (f field) Value() string {
	from := quoted(placeholders(f.columns, " "))
	if f.apply == "" && f.format == "" {
		return from
	}
	v := "{from: " + from
	if f.apply != "" {
		v += ", apply: [" + scalar(f.apply) + "]"
	}
	if f.format != "" {
		v += ", format: " + f.format
	}
	return v + "}"
}

// shown is a name for comments and notes: short, and on one line whatever it holds.
func shown(name string) string {
	const most = 40
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most-1]) + "…"
	}
	if clearForm().MatchString(name) {
		return "{" + name + "}"
	}
	return quoted(name)
}

// Shown is the column's name for comments and notes.
func (c *column) Shown() string { return shown(c.header) }

func fileShown(name string) string {
	if name == "" || name == "-" {
		return "standard input"
	}
	return strings.Trim(shown(baseName(name)), "{}")
}

var (
	proseForm = spelling.Form(`(?m)^( *)// `)

	// clearForm is of names made of letters, digits and harmless marks.
	clearForm = spelling.Form(`^[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+(?: +[\p{L}\p{Nd}\p{Mn}_\-./()&?#+…:']+)*$`)

	// plainForm is of words of letters, digits and a few marks, which begin with a letter.
	plainForm = spelling.Form(`^[A-Za-zÀ-ÖØ-öø-ſ](?: ?[A-Za-zÀ-ÖØ-öø-ſ0-9_\-./()])*$`)
	yamlWord  = spelling.Form(`(?i)^(y|n|yes|no|on|off|true|false|null|nan|inf)$`)
)

// scalar writes s as one YAML text on one line, in quotes where YAML or a person would take it for something else.
func scalar(s string) string {
	if len(s) <= 60 && plainForm().MatchString(s) && !yamlWord().MatchString(s) {
		return s
	}
	return quoted(s)
}

// quoted writes s in double quotes, which YAML reads as Go does.
func quoted(s string) string { return strconv.Quote(s) }

// Counts reports whether its cells are 1, 2, 3 … in the order of the rows.
func (c *column) Counts() bool { return c.profile.counting }

// Value is the column's cell in YAML.
func (c *column) Value() string { return quoted(c.placeholder()) }

// sayNames lists headers for a sentence, the first few of them.
func sayNames(headers []string, most int) string { return spelling.List(headers, most, shown) }

// guess begins the remark on what a person has to confirm: validate names such lines.
const guess = "? "

// and joins remarks that hold something. One of them that is a guess makes all of them one.
func and(remarks ...string) string {
	var said []string
	mark := ""
	for _, r := range remarks {
		text, isGuess := strings.CutPrefix(r, guess)
		if isGuess {
			mark = guess
		}
		if text != "" {
			said = append(said, text)
		}
	}
	return mark + strings.Join(said, "; ")
}

// Empties says in how many rows the columns hold nothing, or "".
func (t *table) Empties(columns ...*column) string {
	empty := len(t.In.Rows) - t.filledRows(columns)
	if empty == 0 {
		return ""
	}
	return "empty in " + humanize.Comma(int64(empty)) + " of " + english.Plural(len(t.In.Rows), "row", "")
}
