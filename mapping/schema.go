package mapping

import _ "embed" // for the schema

//go:embed schema.json
var schema string

// Schema is the JSON Schema (draft 2020-12) of the mapping file, for editors. It
// knows every key and word of the language; what hangs on an input, on more than
// one place of the file or on the insides of a text only Parse tells. It is stricter
// in one thing: an unquoted null, which Parse reads as the word null, is hardly ever
// meant as that.
func Schema() []byte { return []byte(schema) }
