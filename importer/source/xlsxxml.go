package source

import (
	"archive/zip"
	"compress/flate"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

const (
	maxToken = 12 << 20 // bytes of one tag or one text; Excel's cells hold 32,767 characters
	maxNest  = 64       // levels of elements
)

var (
	errMissing   = &damage{"the workbook is damaged: a part is missing"}
	errDoctype   = &damage{"a part of the workbook declares a document type, as no workbook does"}
	errNest      = &damage{"the workbook is damaged: elements are nested too deep"}
	errHugeToken = &damage{fmt.Sprintf("the workbook holds a text of more than %d bytes; Excel allows 32767 characters a cell", maxToken)}
)

// guard hands out the tokens of a workbook's part as long as each is of a
// sensible length and depth. A document type, and with it every entity of its
// own, is refused.
type guard struct {
	tokens *xml.Decoder
	in     io.Reader
	left   int // bytes until the token is too long
	depth  int
}

func newXMLDecoder(in io.Reader) *xml.Decoder {
	g := &guard{in: in}
	g.tokens = xml.NewDecoder(g)
	return xml.NewTokenDecoder(g)
}

// Read lets the decoder below have the bytes of one token.
func (g *guard) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errHugeToken
	}
	n, err := g.in.Read(p)
	g.left -= n
	return n, err
}

// Token gives the next token; the decoder above matches start and end tags.
func (g *guard) Token() (xml.Token, error) {
	g.left = maxToken
	t, err := g.tokens.RawToken()
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case xml.Directive:
		return nil, errDoctype
	case xml.StartElement:
		if g.depth++; g.depth > maxNest {
			return nil, errNest
		}
	case xml.EndElement:
		g.depth--
	}
	return t, nil
}

// damage says why a workbook cannot be read. It keeps no cause: the texts of an
// XML decoder quote the file.
type damage struct{ text string }

func (d *damage) Error() string { return d.text }

// damaged makes of an error of the libraries one that can be shown.
func damaged(err error) error {
	var shown *damage
	var disk *fs.PathError
	var packed flate.CorruptInputError
	text := "its XML is broken, cut or not that of a workbook"
	switch {
	case errors.As(err, &shown), errors.As(err, &disk):
		return err
	case errors.Is(err, zip.ErrChecksum):
		text = "a checksum is wrong"
	case errors.Is(err, zip.ErrFormat), errors.As(err, &packed), errors.Is(err, io.ErrUnexpectedEOF):
		text = "the archive is broken or cut"
	case errors.Is(err, zip.ErrAlgorithm):
		text = "a part is packed in an unknown way"
	}
	return &damage{"the workbook is damaged: " + text}
}
