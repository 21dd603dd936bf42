package mapping

import (
	"strings"
	"testing"
)

// mistakes are files such as people write, and the place of the first mistake: alone, or beside the header below.
var mistakes = map[string]string{
	"version: 1\nlead:\n\ttype_key: a":                                                          "3:1",
	"version: 1\nlead:\n  content:\n    *: rest":                                                "4:6",
	"version: 1\nlead:\n  content:\n    zip: {from: \"{a}\", format: /^[0-9]{5}$/}":             "4:34",
	"version: 1\nlead:\n  content:\n    zip:\n      from: \"{a}\"\n      format: ^[0-9]{5}$":    "6:15",
	"version: 1\nlead:\n  type_key: a\n  type_label: Form: contact":                             "4:19",
	"version: 1\nlead:\n  status: {from: Stage, map: {Won: closedWon}}":                         "3:11",
	"version: 1\nlead:\n  content:\n    name: {first} {last}":                                   "4:19",
	"version: 1\nlead:\n  content:\n    name: {first}":                                          "4:11",
	"version: 1\n  key: \"{a}\"":                                                                "2:6",
	"version: 1\nkey: \"{a}\nlead: {}":                                                          "2:6",
	"version: 1\nlead:\n  content:\n    a: \"{a}\"\n    b: {from \"{b}\"}":                      "5:18",
	"version: 1\nlead:\n  content:\n    a: @key":                                                "4:8",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", apply: lower}":                       "4:29",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", apply: [\"date:dd/mm/yyyy hh:mm\"]}": "4:30",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", format: date:DD.MM.YYYY}":            "4:30",
	"version: 1\nlead:\n  content:\n    a: {{a}}":                                               "4:9",
	"version: 1\nlead:\n  content:\n    - a: \"{a}\"":                                           "4:5",
	"version: 1\ncontent:\n  a: \"{a}\"":                                                        "2:1",
	"version: 1\nlead:\n  status: \"{Stage}\"\n  map: {Won: closedWon}":                         "4:3",
	"version: 1\nlead:\n  status:\n    Won: closedWon\n    Lost: closedNotInterested":           "4:5",
	"version: 1\nlead:\n  content:\n    a: {from: \"{a}\", map: {x: }}":                         "4:31",
	"version: 1\nassign: {organization: \"{a}\"}":                                               "2:9",
	"version: 1\nkey: a":                                               "2:6",
	"version: 1\nkey: \"{A}\"":                                         "2:6",
	"version: 1\nlead: {content: {a: \"{frist} {last}\"}}":             "2:21",
	"version: 1\nsource: {delimiter: '\\t'}":                           "2:21",
	"version: 1\nsource: {encoding: ansi}":                             "2:20",
	"version: 1.0\nkey: \"{a}\"":                                       "1:10",
	"version: \"1\"\ntables: {d: {file: sub/d.csv, key: a, value: b}}": "2:20",
	"version: 1\ntables: {dealers: {x: y}}\nassign: [{organization: {from: \"{a}\", map: dealer}}]":          "3:44",
	"version: 1\nlead: {content: {a: {from: \"{a}\", on_invalid: skip, format: email}}}":                     "2:47",
	"version: 1\nlead: {content: {a: {first: \"{a}\"}}}":                                                     "2:29",
	"version: 1\nlead: {content: {a: {first: []}}}":                                                          "2:29",
	"version: 1\ntables: {dealers: dealers.csv, stages: [a, b], others: {file: o.csv, column: a, value: b}}": "2:19",
	"version: 1\nlead: {content: {a: \"{@now}\", b: [x], c: {join: [\"{a}\"], sep: [x]}}}":                   "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"replace:/a/b\"]}}}":                           "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:DD/MM/YYYY|MM/DD/YYYY\"]}}}":             "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:D. MMMM YYYY@ger\"]}}}":                  "2:43",
	"version: 1\nsource: {skip_rows: three}":                                                                 "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", required: yes}}}":                                       "2:45",
	"version: 1\nlead: {type_key: a, type_lable: b}":                                                         "2:21",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: Won}}}":                                       "2:45",
	"version: 1\nlead: {content: {a: {from: '{\"name\": \"{first}\"}', as: json}}}":                          "2:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"e164:+49\"]}}}":                               "2:43",
	"version: 1\nlead: {content: {fax: null}}":                                                               "2:23",
	"version: 1\nlead: {content: {fax: {from: \"{a}\", default: ~}}}":                                        "2:46",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: closedWon, Lost: NULL}}}":                     "2:62",
	"version: 1\nlead: {status: {from: \"{Stage}\", map: {Won: closedWon, null: open}}}":                     "2:56",
	"version: 1\nnamespace: ~": "2:12",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"lower|trim\", upper(x)]}}}":              "2:43",
	"version: 1\nlead: {content: {a: {from: \"{a}\", apply: [\"date:ISO8601\"]}}}":                      "2:43",
	"version: 1\nlead: {type_key: \"\"}":                                                                "2:18",
	"version: 1\nlead:\n  content:\n    name: \"{first}\n    last: \"{last}\"":                          "5:12",
	"version: 1\nlead:\n  content:\n    name: \"{first}\" \"{last}\"":                                   "4:21",
	"version: 1\nlead: {content: {a: {from: \"{a}\", map: dealers.csv}}}":                               "2:40",
	"version: 1\nlead: {content: {a: {from: \"{a}\", map: {file: dealers.csv, key: Name, value: ID}}}}": "2:40",
	"version: 1\nsource: {footer: Total (all)}":                                                         "2:18",
	"version: 1\nkey: \"{{ a }}\"":                                                                      "2:6",
	"version: 1\nkey: $a":                                                                               "2:6",
}

// Every mistake has its place, and a hint at the edit that mends it. faults 105, 108
func TestMistakesAreToldWithTheEditThatMendsThem(t *testing.T) {
	header := Columns{Names: []string{"first", "last", "Lead Status", "vip", "a", "b", "score", "Stage"}, Own: 8}
	for file, place := range mistakes {
		m, err := Parse("m", []byte(file+"\n"), nil)
		if err == nil {
			_, err = m.Bind("in.csv", header)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "m:"+place+": ") {
			t.Errorf("%s\n%v, want it at %s", file, err, place)
			continue
		}
		if places, hints := strings.Count("\n"+err.Error(), "\nm:"), strings.Count(err.Error(), "\nhint: "); places != hints {
			t.Errorf("%s\n%d places and %d hints: %v", file, places, hints, err)
		}
	}
}
