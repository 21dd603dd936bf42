package mapping

// expressionMistakes are those that people make in expressions, most of them as other languages
// have it.
var expressionMistakes = []struct{ file, want string }{
	{
		`version: 1
skip_if: 'vip = "x"'`,
		`m:2:15: skip_if: unexpected "="
hint: == compares: column == "yes"`,
	},
	{
		`version: 1
skip_if: Lead Status == "x"`,
		`m:2:15: skip_if: unexpected "Status"
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a || b'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: || (mismatched types string and string)
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a ?? b'}}}`,
		`m:2:31: lead.content.a.expr: ?? takes the left side always, since that is never missing
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'score * 10'}}}`,
		`m:2:35: lead.content.a.expr: invalid operation: * (mismatched types string and int)
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
lead: {content: {a: {expr: "a == 'x' && "}}}`,
		`m:2:40: lead.content.a.expr: the expression ends where more must follow
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'concat(a, b)'}}}`,
		`m:2:29: lead.content.a.expr: unknown function "concat"
hint: known here: abs, all, any, ceil, coalesce, count, filter, find, findIndex, findLast, findLastIndex, first, float, floor, get, hasPrefix, hasSuffix, int, join, last, len, lower, map, max, mean, median, min, none, one, repeat, replace, reverse, round, sort, split, string, sum, take, trim, trimPrefix, trimSuffix, upper`,
	},
	{
		`version: 1
skip_if: vip == yes`,
		`m:2:17: skip_if: in.csv has no column "yes"
hint: if the text is meant, it needs quotes: "yes"`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a + 1'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: + (mismatched types string and int)
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a > 10'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: > (mismatched types string and int)
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
skip_if: "{vip} == 'x'"`,
		`m:2:15: skip_if: unexpected "}"
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'E-mail + a'}}}`,
		`m:2:30: lead.content.a.expr: invalid operation: - (mismatched types string and string)
hint: a cell is a text and never missing: int(a) makes a number of it, a != "" asks whether it holds anything, coalesce(a, b) takes the first that does; $env["E-mail"] is a column that is no single word`,
	},
	{
		`version: 1
skip_if: vip == “x”`,
		`m:2:17: skip_if: unrecognized character: U+201C '“'
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
	{
		`version: 1
skip_if: vip == 'x`,
		`m:2:19: skip_if: literal not terminated
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
	{
		`version: 1
skip_if: vip == "x" AND a == "y"`,
		`m:2:21: skip_if: unexpected "AND"
hint: for example: stage == "Won" ? first + " " + last : coalesce(nick, $env["Nick name"])`,
	},
}
