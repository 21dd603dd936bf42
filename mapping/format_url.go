package mapping

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode"
)

// maxURL is the longest web address, in bytes.
const maxURL = 2048

// isURL reports whether s is a whole web address, http or https: the host is a
// name with a dot, localhost or an IP address, and nothing in it is white space.
func isURL(s string) bool {
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return false
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return strings.Contains(host, ".") && isDotted(host, isHostLabel)
}

// isHostLabel is isLabel and an underscore, which names of machines have.
func isHostLabel(s string) bool {
	return isLabel(strings.ReplaceAll(s, "_", "x"))
}
