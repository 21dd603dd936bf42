package terminal

import (
	"testing"

	"leadferry/internal/shell"
)

func TestSettingsForEachShell(t *testing.T) {
	for program, want := range map[string]string{
		"bash.exe":       "export A=http://127.0.0.1:1\nexport B=" + shell.Word("it's") + "\nunset C D\n",
		"pwsh.exe":       "$env:A = 'http://127.0.0.1:1'\n$env:B = 'it''s'\n$env:C = $null\n$env:D = $null\n",
		"POWERSHELL.EXE": "$env:A = 'http://127.0.0.1:1'\n$env:B = 'it''s'\n$env:C = $null\n$env:D = $null\n",
		"cmd.exe":        "set \"A=http://127.0.0.1:1\"\nset \"B=it's\"\nset C=\nset D=\n",
		"explorer.exe":   "$env:A = 'http://127.0.0.1:1'\n$env:B = 'it''s'\n$env:C = $null\n$env:D = $null\n",
	} {
		s := shellOf(program)
		if got := s.Set("A", "http://127.0.0.1:1") + s.Set("B", "it's") + s.Unset([]string{"C", "D"}); got != want {
			t.Errorf("%s: %q", program, got)
		}
	}
}
