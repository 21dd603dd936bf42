package main

// member is the value of a name in the outermost object of a JSON text, as it is
// written, or nil. The text is taken to be well-formed and the name to be written
// without escapes: it comes from programs that are measured, not from strangers.
func member(text []byte, name string) []byte {
	i := blank(text, 0)
	if i == len(text) || text[i] != '{' {
		return nil
	}
	for i++; ; i++ {
		i = blank(text, i)
		key := i
		i = past(text, i)
		found := i-key == len(name)+2 && string(text[key+1:i-1]) == name
		i = blank(text, i)
		if i == len(text) || text[i] != ':' {
			return nil
		}
		i = blank(text, i+1)
		value := i
		i = past(text, i)
		if found {
			return text[value:i]
		}
		if i = blank(text, i); i == len(text) || text[i] != ',' {
			return nil
		}
	}
}

// blank is the index of the first byte from i on that is no white space.
func blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// past is the index behind the value that begins at i.
func past(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = quote(text, i); depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// quote is the index of the quote that ends the text that begins at i.
func quote(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
