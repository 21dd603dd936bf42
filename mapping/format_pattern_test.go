package mapping

import "regexp/syntax"

// checkProgram fails when the program of a pattern is much larger than counted.
func checkProgram(t interface {
	Fatalf(string, ...any)
}, pattern string,
) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return
	}
	counted := instructions(tree)
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	if counted <= maxProgram && len(program.Inst) > 3*counted+10 {
		t.Fatalf("%s: %d instructions, counted %d", pattern, len(program.Inst), counted)
	}
}
