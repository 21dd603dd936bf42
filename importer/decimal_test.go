package importer

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"leadferry/mapping"
)

// A number is confirmed when it comes back to its last digit, however it is written. fault 68
func TestNumbersAreComparedToTheLastDigit(t *testing.T) {
	for _, test := range []struct {
		sent, have string
		same       bool
	}{
		{"1.50", "1.5", true},
		{"150", "1.5e2", true},
		{"150", "1.5E+2", true},
		{"0.015", "15e-3", true},
		{"-0", "0.000", true},
		{"0e99", "0", true},
		{"12345678901234567891", "12345678901234567890", false},
		{"12345678901234567891", "12345678901234567891.0", true},
		{"0.1", "0.10000000000000001", false},
		{"1", "-1", false},
		{"1e400", "1e401", false},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"1e99999999999999999999", "10e99999999999999999998", false}, // nobody writes such
		{"7", `"7"`, false},
		{"7", "", false},
	} {
		if got := carries(jsontext.Value(test.have), &mapping.Field{Kind: mapping.Number, Value: test.sent}); got != test.same {
			t.Errorf("%s sent, %s came back: %v", test.sent, test.have, got)
		}
	}
}
