package mapping

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var header = Columns{Names: []string{"first", "last", "Lead Status", "vip", "a", "b", "score", "Stage"}, Own: 8}

// mistakes are such as people make, with all that is said to each: by the mapping file
// alone, or beside the header above.
var mistakes = []struct{ file, want string }{
	{
		"version: 1\nlead:\n\ttype_key: a",
		`m:3:1: the mapping file is not YAML: found character that cannot start any token while scanning for the next token
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  content:
    *: rest`,
		`m:4:6: the mapping file is not YAML: did not find expected alphabetic or numeric character while scanning an alias
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  content:
    zip: {from: "{a}", format: /^[0-9]{5}$/}`,
		`m:4:34: the mapping file is not YAML: did not find expected ',' or '}' while parsing a flow mapping
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  content:
    zip:
      from: "{a}"
      format: ^[0-9]{5}$`,
		`m:6:15: unknown format "^[0-9]{5}$"
hint: known here: email, phone, uuid, url, date, integer, number, /regular expression/`,
	},
	{
		`version: 1
lead:
  type_key: a
  type_label: Form: contact`,
		`m:4:19: the mapping file is not YAML: mapping values are not allowed in this context
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  status: {from: Stage, map: {Won: closedWon}}`,
		`m:3:11: lead.status looks up the constant "Stage" in its map, which lacks it
hint: write from: "{Stage}" for what the column holds`,
	},
	{
		`version: 1
lead:
  content:
    name: {first} {last}`,
		`m:4:19: the mapping file is not YAML: did not find expected key while parsing a block mapping
hint: a text that begins with a placeholder needs quotes: "{column}"`,
	},
	{
		`version: 1
lead:
  content:
    name: {first}`,
		`m:4:11: lead.content.name is read as an object, not as a text
hint: a text that begins with a placeholder needs quotes: "{column}"`,
	},
	{
		`version: 1
  key: "{a}"`,
		`m:2:6: the mapping file is not YAML: mapping values are not allowed in this context
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
key: "{a}
lead: {}`,
		`m:2:6: the mapping file is not YAML: a quote opens here that is not closed, or a backslash stands in it that means nothing
hint: close the quote; in 'single quotes' a backslash is itself`,
	},
	{
		`version: 1
lead:
  content:
    a: "{a}"
    b: {from "{b}"}`,
		`m:5:18: the mapping file is not YAML: a quote opens here that is not closed, or a backslash stands in it that means nothing
hint: close the quote; in 'single quotes' a backslash is itself`,
	},
	{
		`version: 1
lead:
  content:
    a: @key`,
		`m:4:8: the mapping file is not YAML: found character that cannot start any token while scanning for the next token
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  content:
    a: {from: "{a}", apply: lower}`,
		`m:4:29: lead.content.a.apply must be a list
hint: begin each line with a dash, or write [a, b]`,
	},
	{
		`version: 1
lead:
  content:
    a: {from: "{a}", apply: ["date:dd/mm/yyyy hh:mm"]}`,
		`m:4:30: step date: hours up to 12 go with AM or PM, hours up to 23 go without: write hh:mm A or HH:mm
hint: write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in "date:02.01.2006"`,
	},
	{
		`version: 1
lead:
  content:
    a: {from: "{a}", format: date:DD.MM.YYYY}`,
		`m:4:30: unknown format "date:DD.MM.YYYY"
hint: known here: email, phone, uuid, url, date, integer, number, /regular expression/`,
	},
	{
		`version: 1
lead:
  content:
    a: {{a}}`,
		`m:4:9: a key must be a text
hint: a text that begins with a placeholder needs quotes: "{column}"`,
	},
	{
		`version: 1
lead:
  content:
    - a: "{a}"`,
		`m:4:5: lead.content must hold keys and values
hint: write name: value, with a blank behind the colon and no dash before it`,
	},
	{
		`version: 1
content:
  a: "{a}"`,
		`m:2:1: unknown key "content"
hint: known here: version, tables, source, namespace, key, lead_id, skip_if, assign, lead, tests`,
	},
	{
		`version: 1
lead:
  status: "{Stage}"
  map: {Won: closedWon}`,
		`m:4:3: unknown key "map" in lead
hint: known here: type_key, type_label, status, external_id, content`,
	},
	{
		`version: 1
lead:
  status:
    Won: closedWon
    Lost: closedNotInterested`,
		`m:4:5: unknown key "Won" in lead.status
hint: known here: from, join, sep, apply, format, expr, first, object, list, map, else, default, on_invalid, required, as, empty, pull, conflict
m:5:5: unknown key "Lost" in lead.status
hint: did you mean "list"?`,
	},
	{
		`version: 1
lead:
  content:
    a: {from: "{a}", map: {x: }}`,
		`m:4:31: lead.content.a.map.x has no value
hint: write "" for an empty text`,
	},
	{
		`version: 1
assign: {organization: "{a}"}`,
		`m:2:9: assign must be a list
hint: begin each line with a dash, or write [a, b]`,
	},
	{
		`version: 1
key: a`,
		`m:2:6: key names no column, so that all rows would be one
hint: write "{a}" for what the column holds`,
	},
	{
		`version: 1
key: "{A}"`,
		`m:2:6: key: in.csv has no column "A"
hint: did you mean "a"?`,
	},
	{
		`version: 1
lead: {content: {a: "{frist} {last}"}}`,
		`m:2:21: lead.content.a: in.csv has no column "frist"
hint: did you mean "first"?`,
	},
	{
		`version: 1
source: {delimiter: '\t'}`,
		`m:2:21: source.delimiter must be one character, and no quote or line break
hint: for example ";" or tab`,
	},
	{
		`version: 1
source: {encoding: ansi}`,
		`m:2:20: source.encoding "ansi" is not an encoding
hint: for example utf-8, windows-1252, iso-8859-2, utf-16le or shift_jis`,
	},
	{
		`version: 1.0
key: "{a}"`,
		`m:1:10: version "1.0" of the mapping language is not known
hint: write version: 1`,
	},
	{
		`version: "1"
tables: {d: {file: sub/d.csv, key: a, value: b}}`,
		`m:2:20: tables.d.file takes the bare name of a file
hint: put it beside the mapping file and name it without a folder: dealers.csv`,
	},
	{
		`version: 1
tables: {dealers: {x: y}}
assign: [{organization: {from: "{a}", map: dealer}}]`,
		`m:3:44: assign[1].organization.map: there is no table "dealer"
hint: did you mean "dealers"?`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", on_invalid: skip, format: email}}}`,
		`m:2:47: unknown way with invalid values "skip"
hint: known here: row, drop`,
	},
	{
		`version: 1
lead: {content: {a: {first: "{a}"}}}`,
		`m:2:29: lead.content.a.first must be a list
hint: begin each line with a dash, or write [a, b]`,
	},
	{
		`version: 1
lead: {content: {a: {first: []}}}`,
		`m:2:29: lead.content.a.first is an empty list
hint: write what belongs into it, as [a, b], or leave the key out`,
	},
	{
		`version: 1
tables: {dealers: dealers.csv, stages: [a, b], others: {file: o.csv, column: a, value: b}}`,
		`m:2:19: tables.dealers must hold keys and values
hint: {file: dealers.csv, key: Name, value: Organization ID}, or the words themselves: {Working: inProgress}
m:2:40: tables.stages must hold keys and values
hint: {file: dealers.csv, key: Name, value: Organization ID}, or the words themselves: {Working: inProgress}
m:2:70: unknown key "column" in tables.others
hint: known here: file, key, value, fold`,
	},
	{
		`version: 1
lead: {content: {a: "{@now}", b: [x], c: {join: ["{a}"], sep: [x]}}}`,
		`m:2:21: lead.content.a: unknown placeholder "@now"
hint: known here: @key, @file, @line, @run; a column whose name begins with @ has to be renamed
m:2:34: lead.content.b must be a text
hint: write one text, which may hold several columns: "{first} {last}"; a JSON list is {list: […]}
m:2:63: lead.content.c.sep must be a text
hint: write one text, which may hold several columns: "{first} {last}"; a JSON list is {list: […]}`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["replace:/a/b"]}}}`,
		`m:2:43: step replace is written replace:/RE/TEXT/
hint: for example 'replace:/[^0-9]+//', in single quotes, with \/ for a slash`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["date:DD/MM/YYYY|MM/DD/YYYY"]}}}`,
		`m:2:43: step date: a text can fit "DD/MM/YYYY" and "MM/DD/YYYY", which take it for different days
hint: keep the one that the file is written in; where two columns differ, give each its own`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["date:D. MMMM YYYY@ger"]}}}`,
		`m:2:43: step date: no names of months are known in the language "ger"
hint: known here: ar, cs, da, de, es, fr, it, ja, ko, nb, nl, pl, pt, ru, sv, tr, zh`,
	},
	{
		`version: 1
source: {skip_rows: three}`,
		`m:2:21: source.skip_rows takes a number of lines, at most 1000
hint: count the lines before the header, or behind the last row, blank ones too`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", required: yes}}}`,
		`m:2:45: lead.content.a.required must be true or false
hint: write true or false, without quotes`,
	},
	{
		`version: 1
lead: {type_key: a, type_lable: b}`,
		`m:2:21: unknown key "type_lable" in lead
hint: did you mean "type_label"?`,
	},
	{
		`version: 1
lead: {status: {from: "{Stage}", map: {Won: Won}}}`,
		`m:2:45: lead.status.map.Won: "Won" is not a status of the service
hint: the statuses are open, contacted, inProgress, onHold, closedWon, closedNotInterested, closedBoughtUsed, closedBoughtOtherBrand`,
	},
	{
		`version: 1
lead: {content: {a: {from: '{"name": "{first}"}', as: json}}}`,
		`m:2:21: lead.content.a is not a JSON value around its placeholders
hint: for example '{{"name": "{name}", "seats": {seats}}': in quotes a cell is a text, else a JSON value`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["e164:+49"]}}}`,
		`m:2:43: step e164 needs a country, and "+49" is none
hint: did you mean "e164:DE"?`,
	},
	{
		`version: 1
lead: {content: {fax: null}}`,
		`m:2:23: lead.content.fax is null, which is no text
hint: leave the key out where there is nothing, or "null" in quotes for the word itself`,
	},
	{
		`version: 1
lead: {content: {fax: {from: "{a}", default: ~}}}`,
		`m:2:46: lead.content.fax.default is ~, which is no text
hint: leave the key out where there is nothing, or "~" in quotes for the word itself`,
	},
	{
		`version: 1
lead: {status: {from: "{Stage}", map: {Won: closedWon, Lost: NULL}}}`,
		`m:2:62: lead.status.map.Lost is NULL, which is no text
hint: write "" for an empty text, or "NULL" in quotes for the word itself`,
	},
	{
		`version: 1
lead: {status: {from: "{Stage}", map: {Won: closedWon, null: open}}}`,
		`m:2:56: lead.status.map is not asked for empty texts
hint: use default for empty cells, or write "null" in quotes for the word itself`,
	},
	{
		`version: 1
namespace: ~`,
		`m:2:12: namespace is ~, which is no text
hint: leave the key out where there is nothing, or "~" in quotes for the word itself`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["lower|trim", upper(x)]}}}`,
		`m:2:43: unknown step "lower|trim"
hint: known here: trim, lower, upper, title, squeeze, digits, e164:CC, date:LAYOUT, truncate:N, split:SEP:N, replace:/RE/TEXT/, extract:/RE/
m:2:57: unknown step "upper(x)"
hint: known here: trim, lower, upper, title, squeeze, digits, e164:CC, date:LAYOUT, truncate:N, split:SEP:N, replace:/RE/TEXT/, extract:/RE/`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", apply: ["date:ISO8601"]}}}`,
		`m:2:43: step date: the layout has no year
hint: write YYYY, MM, DD, HH, mm and ss as in "date:DD.MM.YYYY", or Go's reference date as in "date:02.01.2006"`,
	},
	{
		`version: 1
lead: {type_key: ""}`,
		`m:2:18: lead.type_key is empty
hint: write "{column}" for what a column holds, or a text that is the same in every row`,
	},
	{
		`version: 1
lead:
  content:
    name: "{first}
    last: "{last}"`,
		`m:5:12: the mapping file is not YAML: did not find expected key while parsing a block mapping that begins on line 4
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead:
  content:
    name: "{first}" "{last}"`,
		`m:4:21: the mapping file is not YAML: did not find expected key while parsing a block mapping
hint: look at this line and the one above: put texts with signs into quotes, a blank behind each colon, and spaces, no tabs, before lines`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", map: dealers.csv}}}`,
		`m:2:40: lead.content.a.map: there is no table "dealers.csv"
hint: tables has none; or write the words out: map: {"Working": inProgress}`,
	},
	{
		`version: 1
lead: {content: {a: {from: "{a}", map: {file: dealers.csv, key: Name, value: ID}}}}`,
		`m:2:40: lead.content.a.map is a table in a file of its own
hint: move it into the section tables: {dealers: {file: …}}, and write map: dealers`,
	},
	{
		`version: 1
source: {footer: Total (all)}`,
		`m:2:18: a regular expression stands between slashes
hint: for example footer: '/^Total \(all\)/', with the quotes`,
	},
	{
		`version: 1
key: "{{ a }}"`,
		`m:2:6: key names no column, so that all rows would be one
hint: write "{a}" for what the column holds`,
	},
	{
		`version: 1
key: $a`,
		`m:2:6: key names no column, so that all rows would be one
hint: write "{a}" for what the column holds`,
	},
}

// faults 105, 108
func TestMistakesAreToldWithTheEditThatMendsThem(t *testing.T) {
	for _, mistake := range mistakes {
		m, err := Parse("m", []byte(mistake.file+"\n"), nil)
		if err == nil {
			_, err = m.Bind("in.csv", header)
		}
		if err == nil {
			t.Errorf("%s\nwas taken", mistake.file)
			continue
		}
		if diff := cmp.Diff(mistake.want, err.Error()); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", mistake.file, diff)
		}
		if places, hints := strings.Count("\n"+err.Error(), "\nm:"), strings.Count(err.Error(), "\nhint: "); places != hints {
			t.Errorf("%s\n%d places and %d hints: %v", mistake.file, places, hints, err)
		}
	}
}
