package source

// A jsonScan finds where a JSON value ends, piece by piece and without keeping
// it. It looks at brackets and strings only: what it finds to be one value need
// not be valid, but where it gives up, no end can be known.
type jsonScan struct {
	open    []byte // brackets that are not closed
	started bool
	plain   bool // a number or a word, which ends where something else begins
	quoted  bool // inside a string
	escaped bool // behind a backslash
}

// maxOpen bounds the brackets of a value that is passed over.
const maxOpen = 10_000

// scanState is what a piece of text has said.
type scanState uint8

const (
	scanMore scanState = iota // the value goes on
	scanEnd                   // it ends before the count of bytes given
	scanLost                  // brackets that do not fit, or a string that its line ends in
)

func (s *jsonScan) reset() { *s = jsonScan{open: s.open[:0]} }

// feed takes the next piece of the value and tells how many bytes of it belong
// to the value, or lie before what makes no sense.
func (s *jsonScan) feed(text []byte) (int, scanState) {
	for i, c := range text {
		switch {
		case s.quoted:
			if c == '\n' {
				return i, scanLost
			}
			if s.inString(c); s.quoted || len(s.open) > 0 {
				continue
			}
			return i + 1, scanEnd
		case s.plain:
			if isBetween(c) || c == '"' || c == '{' || c == '[' {
				return i, scanEnd
			}
		default:
			if state := s.structure(c); state != scanMore {
				return i + 1, state
			}
		}
	}
	return len(text), scanMore
}

// inString takes a byte of a string.
func (s *jsonScan) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted = false
	}
}

// structure takes a byte outside strings.
func (s *jsonScan) structure(c byte) scanState {
	first := !s.started
	s.started = true
	switch c {
	case '"':
		s.quoted = true
	case '{', '[':
		if s.open = append(s.open, c); len(s.open) > maxOpen {
			return scanLost
		}
	case '}', ']':
		last := len(s.open) - 1
		if last < 0 || s.open[last] != c-2 { // the codes of both pairs are two apart
			return scanLost
		}
		if s.open = s.open[:last]; last == 0 {
			return scanEnd
		}
	default:
		if first && isBetween(c) {
			return scanLost
		}
		s.plain = first
	}
	return scanMore
}

// isBetween says that a byte stands between values, not in them.
func isBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', ']', '}':
		return true
	}
	return false
}
