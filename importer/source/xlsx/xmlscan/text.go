package xmlscan

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// place is where text stands, which decides what it may hold as it is.
type place uint8

const (
	inText place = iota
	inQuotes
	inCDATA
)

// What bytes of a text have to be looked at; 0 are those that stand for themselves.
const (
	foreign   = 1 << iota // no ASCII
	control               // no character of XML
	ampersand             // begins an entity
	ending                // carriage return: a line end is written as a line feed
	angle
	bracket
)

// classes are those of all bytes.
var classes = func() (c [256]uint8) {
	for i := range c {
		switch b := byte(i); {
		case b >= utf8.RuneSelf:
			c[i] = foreign
		case b == '\r':
			c[i] = ending
		case b < ' ' && b != '\t' && b != '\n':
			c[i] = control
		}
	}
	c['&'], c['<'], c[']'] = ampersand, angle, bracket
	return c
}()

// decode makes the text of what is written: characters of XML only, with entities and line ends for what they mean.
// Where nothing means anything else it is what is written itself.
func (s *Scanner) decode(raw []byte, where place) ([]byte, error) {
	var seen uint8
	for _, b := range raw {
		seen |= classes[b]
	}
	switch {
	case seen == 0:
		return raw, nil
	case seen&control != 0,
		seen&angle != 0 && where == inQuotes,
		seen&bracket != 0 && where == inText && bytes.Contains(raw, []byte("]]>")),
		seen&foreign != 0 && !valid(raw):
		return nil, ErrSyntax
	case where == inCDATA && seen&ending == 0, seen&(ampersand|ending) == 0:
		return raw, nil
	}
	start := len(s.decoded)
	for len(raw) > 0 {
		switch b := raw[0]; {
		case b == '\r':
			s.decoded = append(s.decoded, '\n')
			if raw = raw[1:]; len(raw) > 0 && raw[0] == '\n' {
				raw = raw[1:]
			}
		case b == '&' && where != inCDATA:
			r, rest, ok := entity(raw[1:])
			if !ok {
				return nil, ErrSyntax
			}
			s.decoded, raw = utf8.AppendRune(s.decoded, r), rest
		default:
			s.decoded, raw = append(s.decoded, b), raw[1:]
		}
	}
	return s.decoded[start:], nil
}

// valid says that a text is UTF-8 and holds none of its two numbers that are no characters.
func valid(text []byte) bool {
	return utf8.Valid(text) && !bytes.Contains(text, []byte("\uFFFE")) && !bytes.Contains(text, []byte("\uFFFF"))
}

// entities are those that need no document type.
var entities = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "apos": '\'', "quot": '"'}

// entity reads one behind its ampersand: the character, and what follows.
func entity(text []byte) (r rune, rest []byte, ok bool) {
	name, rest, ended := bytes.Cut(text, []byte(";"))
	number, numbered := bytes.CutPrefix(name, []byte("#"))
	if !ended || !numbered {
		r, ok = entities[string(name)]
		return r, rest, ok && ended
	}
	base := 10
	if hex, is := bytes.CutPrefix(number, []byte("x")); is {
		number, base = hex, 16
	}
	n, err := strconv.ParseUint(string(number), base, 32)
	if err != nil || n > unicode.MaxRune {
		return 0, nil, false
	}
	if r = rune(n); !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return r, rest, r >= ' ' && r != 0xFFFE && r != 0xFFFF || r == '\t' || r == '\n' || r == '\r'
}

// cutTagName takes the name of an element or attribute, which has one prefix at most, off the beginning of a tag.
func cutTagName(tag []byte) (name, rest []byte, ok bool) {
	name, rest, ok = cutName(tag)
	return name, rest, ok && bytes.Count(name, []byte(":")) < 2
}

// cutName takes a name off the beginning of a tag or an instruction.
func cutName(tag []byte) (name, rest []byte, ok bool) {
	n := 0
	for n < len(tag) && isNameByte(tag[n]) {
		n++
	}
	name = tag[:n]
	ok = n > 0 && !('0' <= name[0] && name[0] <= '9' || name[0] == '-' || name[0] == '.') && utf8.Valid(name)
	return name, tag[n:], ok
}

func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == ':' || b == '_' || b == '-' || b == '.' || b >= utf8.RuneSelf
}

func local(name []byte) []byte {
	if i := bytes.IndexByte(name, ':'); i > 0 && i < len(name)-1 {
		return name[i+1:]
	}
	return name
}

func skipSpace(tag []byte) []byte {
	for len(tag) > 0 && (tag[0] == ' ' || tag[0] == '\t' || tag[0] == '\n' || tag[0] == '\r') {
		tag = tag[1:]
	}
	return tag
}

// declared is a value of the declaration at a document's beginning.
func declared(name string, declaration []byte) string {
	for {
		_, rest, found := bytes.Cut(declaration, []byte(name+"="))
		if !found || len(rest) == 0 {
			return ""
		}
		if declaration = rest[1:]; rest[0] == '"' || rest[0] == '\'' {
			value, _, ended := bytes.Cut(declaration, rest[:1])
			if !ended {
				return ""
			}
			return string(value)
		}
	}
}

// instruction passes over a processing instruction. That of XML itself may name no other version or encoding than
// what is read here.
func (s *Scanner) instruction() error {
	end, err := s.find("?>", 2)
	if err != nil {
		return err
	}
	name, rest, ok := cutName(s.window[2:end])
	s.pass(end + 2)
	version, encoding := declared("version", rest), declared("encoding", rest)
	if !ok || string(name) == "xml" && (version != "" && version != "1.0" || encoding != "" && !bytes.EqualFold([]byte(encoding), []byte("utf-8"))) {
		return ErrSyntax
	}
	return nil
}
