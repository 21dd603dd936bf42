package server

import "testing"

// A server on another machine is verified in full, also where nobody has said so.
func TestOtherMachinesAreVerified(t *testing.T) {
	a, err := Parse("postgres://db.example.com/leads")
	if err != nil || a.config.TLSConfig == nil || a.config.TLSConfig.ServerName != "db.example.com" || len(a.config.Fallbacks) > 0 {
		t.Errorf("not verified in full by default: %v", err)
	}
}
