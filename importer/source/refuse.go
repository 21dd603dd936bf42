package source

import "bytes"

const (
	byteOrderMark = "\xEF\xBB\xBF"

	packedHint   = "unpack it first, or send the unpacked text through standard input"
	workbookHint = "save the sheet as CSV in UTF-8"
	encodingHint = "save the file as UTF-8"
)

// refuseContent knows by their first bytes the files that are no plain text in
// UTF-8, and those whose lines end with a lone CR.
func refuseContent(line []byte) *OpenError {
	for _, magic := range []struct{ bytes, text, hint string }{
		{"\x1F\x8B", "is packed with gzip, which cannot be read yet", packedHint},
		{"\x28\xB5\x2F\xFD", "is packed with zstd, which cannot be read yet", packedHint},
		{"BZh91AY&SY", "is packed with bzip2, which cannot be read", packedHint},
		{"\xFD7zXZ\x00", "is packed with xz, which cannot be read", packedHint},
		{"PK\x03\x04", "is an Excel workbook or a ZIP archive, which cannot be read yet", workbookHint},
		{"\xD0\xCF\x11\xE0", "is an old Excel workbook, which cannot be read", workbookHint},
		{"\xFF\xFE", "is text in UTF-16 or UTF-32, which cannot be read yet", encodingHint},
		{"\xFE\xFF", "is text in UTF-16, which cannot be read yet", encodingHint},
	} {
		if bytes.HasPrefix(line, []byte(magic.bytes)) {
			return &OpenError{Text: magic.text, Hint: magic.hint}
		}
	}
	if bytes.IndexByte(line, '\r') >= 0 && bytes.IndexByte(line, '\n') < 0 {
		return &OpenError{Line: 1, Text: "the lines end with CR alone, as on old Macintosh systems", Hint: "save the file with line ends LF or CR LF"}
	}
	return nil
}
