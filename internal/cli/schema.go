package cli

import (
	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/mapping"
)

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of the mapping file, for editors",
		Description: `An editor that knows the schema completes keys and marks mistakes while a mapping
is written. Put the path of the file into the mapping's first line.

Example:

   leadferry schema > mapping.schema.json
   # yaml-language-server: $schema=mapping.schema.json

Exit codes: 0 printed; 3 standard output is closed.`,
		Action: func(*cli.Context) error {
			if _, err := p.Out.Write(mapping.Schema()); err != nil {
				p.code = importer.CodeStopped
			}
			return nil
		},
	}
}
