package mapping

// expressionMistakes are those that people make in expressions, most of them as other languages
// have it.
var expressionMistakes = []struct{ file, want string }{
	{
		`version: 1
lead: {content: {a: {expr: '{first} + " " + {last}'}}}`,
		`m:2:35: lead.content.a.expr: unexpected "}"
hint: columns have no braces in an expression: first`,
	},
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
hint: write $env["Lead Status"] for a column whose name is no single word`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a || b'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: || (mismatched types string and string)
hint: a cell is a text and never missing: coalesce(a, b) takes the first that holds anything, a != "" asks whether it does`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a ?? b'}}}`,
		`m:2:31: lead.content.a.expr: ?? takes the left side always, since that is never missing
hint: a cell is a text and never missing: coalesce(a, b) takes the first that holds anything, a != "" asks whether it does`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a and b'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: and (mismatched types string and string)
hint: a cell is a text and never missing: coalesce(a, b) takes the first that holds anything, a != "" asks whether it does`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'score * 10'}}}`,
		`m:2:35: lead.content.a.expr: invalid operation: * (mismatched types string and int)
hint: a cell is a text: int(column) or float(column) makes a number of it`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a.upper()'}}}`,
		`m:2:31: lead.content.a.expr: there are no methods, only functions
hint: upper(column)`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'if a == "x" then b'}}}`,
		`m:2:41: lead.content.a.expr: unexpected "then"
hint: write: stage == "Won" ? "yes" : "no"`,
	},
	{
		`version: 1
lead: {content: {a: {expr: "a == 'x' && "}}}`,
		`m:2:40: lead.content.a.expr: the expression ends where more must follow
hint: write what follows, or take the last operator out`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'concat(a, b)'}}}`,
		`m:2:29: lead.content.a.expr: unknown function "concat"
hint: + puts texts together: first + " " + last`,
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
hint: a cell is a text: int(column) or float(column) makes a number of it`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a == null ? "x" : a'}}}`,
		`m:2:34: lead.content.a: in.csv has no column "null"
hint: a cell is a text and never missing: null is written ""`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a > 10'}}}`,
		`m:2:31: lead.content.a.expr: invalid operation: > (mismatched types string and int)
hint: a cell is a text: int(column) or float(column) makes a number of it`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'not a'}}}`,
		`m:2:29: lead.content.a.expr: invalid operation: not (mismatched type string)
hint: a cell is a text and never missing: coalesce(a, b) takes the first that holds anything, a != "" asks whether it does`,
	},
	{
		`version: 1
skip_if: "{vip} == 'x'"`,
		`m:2:15: skip_if: unexpected "}"
hint: columns have no braces in an expression: vip`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a <> b'}}}`,
		`m:2:32: lead.content.a.expr: unexpected ">"
hint: != asks whether two differ`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'a & b'}}}`,
		`m:2:31: lead.content.a.expr: unexpected "&"
hint: and asks whether both are so; + puts texts together: first + " " + last`,
	},
	{
		`version: 1
lead: {content: {a: {expr: 'E-mail + a'}}}`,
		`m:2:30: lead.content.a.expr: invalid operation: - (mismatched types string and string)
hint: write $env["E-mail"] for the column, or int(a) - int(b) for a difference`,
	},
	{
		`version: 1
skip_if: vip == “x”`,
		`m:2:17: skip_if: unrecognized character: U+201C '“'
hint: write straight quotes: "text"`,
	},
	{
		`version: 1
skip_if: vip == 'x`,
		`m:2:19: skip_if: literal not terminated
hint: close the quote: "text"`,
	},
	{
		`version: 1
skip_if: vip is "x"`,
		`m:2:14: skip_if: unexpected "is"
hint: == compares: column == "yes"`,
	},
	{
		`version: 1
skip_if: vip == "x" AND a == "y"`,
		`m:2:21: skip_if: unexpected "AND"
hint: write and in small letters`,
	},
	{
		`version: 1
skip_if: vip =~ "^x"`,
		`m:2:14: skip_if: unexpected "="
hint: write: column matches "^[0-9]+$"`,
	},
	{
		`version: 1
skip_if: ISBLANK(vip)`,
		`m:2:10: skip_if: unknown function "ISBLANK"
hint: write: column == ""`,
	},
}
