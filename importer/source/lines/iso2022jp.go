package lines

import "golang.org/x/text/transform"

// iso2022jp turns ISO-2022-JP into EUC-JP, which has the same characters with the high bits set: the decoder of x/text for
// ISO-2022-JP does not check the second byte of a character, and could take a line's end for half of one. What has no
// meaning becomes invalid, one byte for each. It follows the WHATWG Encoding Standard but for this: a line's end within
// characters of two bytes ends them, and the yen sign and the overline of JIS X 0201 are invalid, which EUC-JP lacks.
type iso2022jp struct{ mode byte }

// The character sets, as the last byte of the escape sequence names them.
const (
	jisASCII    = 'B'
	jisRoman    = 'J'
	jisKatakana = 'I'
	jisKanji    = '$'
)

const escape, notEUC = 0x1B, 0xFF

// Reset begins a new text.
func (j *iso2022jp) Reset() { j.mode = jisASCII }

// Transform turns what it can of src.
func (j *iso2022jp) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		if rest[0] == escape {
			if len(rest) < 3 && !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			if mode := escaped(rest); mode != 0 {
				j.mode = mode
				nSrc += 3
				continue
			}
		}
		if j.mode == jisKanji && isJIS(rest[0]) && len(rest) < 2 && !atEOF {
			return nDst, nSrc, transform.ErrShortSrc
		}
		if len(dst)-nDst < 2 {
			return nDst, nSrc, transform.ErrShortDst
		}
		b, size := rest[0], 1
		switch {
		case b == '\n' || b == '\r':
			if j.mode == jisKanji || j.mode == jisKatakana {
				j.mode = jisASCII
			}
		case j.mode == jisKanji && isJIS(b) && len(rest) > 1 && isJIS(rest[1]):
			dst[nDst] = b | 0x80
			nDst, b, size = nDst+1, rest[1]|0x80, 2
		case j.mode == jisKatakana && 0x21 <= b && b <= 0x5F:
			dst[nDst] = 0x8E
			nDst, b = nDst+1, b|0x80
		case j.mode == jisKanji, j.mode == jisKatakana, b >= 0x80, b == escape, j.mode == jisRoman && (b == 0x5C || b == 0x7E):
			b = notEUC
		}
		dst[nDst] = b
		nDst, nSrc = nDst+1, nSrc+size
	}
	return nDst, nSrc, nil
}

func isJIS(b byte) bool { return 0x21 <= b && b <= 0x7E }

// escaped is the character set that an escape sequence names; 0 where it is none.
func escaped(text []byte) byte {
	if len(text) < 3 {
		return 0
	}
	switch set := text[2]; {
	case text[1] == '(' && (set == jisASCII || set == jisRoman || set == jisKatakana):
		return set
	case text[1] == '$' && (set == '@' || set == 'B'):
		return jisKanji
	}
	return 0
}
