package propose

import (
	"strings"
	"time"
	"unicode"
)

// looksLikeEmail is more lenient than format: email, which has the last word on
// whether the mapping may ask for it.
func looksLikeEmail(s string) bool {
	local, domain, found := strings.Cut(s, "@")
	dot := strings.LastIndexByte(domain, '.')
	return found && local != "" && dot > 0 && dot < len(domain)-1 &&
		!strings.ContainsFunc(s, unicode.IsSpace) && !strings.Contains(domain, "@")
}

// looksLikePhone takes 6 to 15 digits with the marks that people put between.
func looksLikePhone(s string) bool {
	s = strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "tel:"), "'"))
	s, _, _ = strings.Cut(s, "x") // an extension: x12, ext. 12
	s = strings.TrimSuffix(strings.TrimSpace(s), "e")
	digits := 0
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == '+' && (i == 0 || s[0] == '('):
		case strings.ContainsRune(" ()-./‑–\u00a0", r):
		default:
			return false
		}
	}
	return digits >= 6 && digits <= 15
}

// looksLikePostal takes what postal codes of the world have in common: at most
// ten characters in two groups, two digits or more.
func looksLikePostal(s string) bool {
	if len(s) < 3 || len(s) > 10 {
		return false
	}
	digits, gaps := 0, 0
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z':
		case (r == ' ' || r == '-') && i > 0 && i < len(s)-1:
			gaps++
		default:
			return false
		}
	}
	return digits >= 2 && gaps <= 1
}

func looksLikeURL(s string) bool {
	s = strings.ToLower(s)
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "www.")
}

func isUUID(s string) bool {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "{"), "}")
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}

// dates are ways to write one that can be read in one way only; orders are those
// in which day and month change places from country to country.
var (
	dates = []string{
		"2006-01-02", "2006/01/02", "2006.01.02", "20060102", "2 Jan 2006", "2 January 2006", "Jan 2, 2006",
		"January 2, 2006", "2-Jan-2006", "02-Jan-06", "2 Jan, 2006", "Mon, 2 Jan 2006", "Mon Jan 2 2006", "2.1.2006", "2.1.06",
	}
	orders = []string{"1/2/2006", "2/1/2006", "1/2/06", "2/1/06", "1-2-2006", "2-1-2006"}
)

// looksLikeDate reports whether s begins with a date that a time may follow, and
// whether its day and month could be taken for each other.
func looksLikeDate(s string) (date, unsure bool) {
	if len(s) < 6 || len(s) > 40 || !strings.ContainsAny(s[:1], "0123456789JFMASONDTW") {
		return false, false
	}
	day := s
	if i := strings.IndexByte(s, ':'); i > 0 { // a time: cut at the blank or T before it
		cut := strings.LastIndexAny(s[:i], " T")
		if cut < 0 {
			return false, false
		}
		day = strings.TrimRight(s[:cut], " ,")
	}
	for _, layout := range dates {
		if len(day) > len(layout)+8 {
			continue
		}
		if _, err := time.Parse(layout, day); err == nil {
			return layout != "20060102" || strings.HasPrefix(day, "19") || strings.HasPrefix(day, "20"), false
		}
	}
	for _, layout := range orders {
		if _, err := time.Parse(layout, day); err == nil {
			return true, true
		}
	}
	return false, false
}

// isQuantity takes a number with a sign, a fraction or groups of digits.
func isQuantity(s string) bool {
	s = strings.TrimLeft(s, "+-")
	digit := false
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' {
			digit = true
		} else if c != '.' && c != ',' {
			return false
		}
	}
	return digit && s[0] != ',' && s[len(s)-1] != ','
}

// isDamaged takes a number in the form in which spreadsheets save long ones.
func isDamaged(s string) bool {
	number, exponent, found := strings.Cut(strings.ToUpper(s), "E+")
	return found && number != "" && isQuantity(number) && len(exponent) <= 3 && exponent != "" && isNumber(exponent)
}
