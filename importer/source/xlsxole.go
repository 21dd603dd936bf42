package source

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
)

const compoundMagic = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"

// refuseOther knows by their first bytes the files that are no archives.
func refuseOther(in io.ReaderAt, size int64) *OpenError {
	head := make([]byte, len(compoundMagic))
	n, _ := in.ReadAt(head, 0)
	switch head = head[:n]; {
	case n == 0:
		return &OpenError{Text: "is empty", Hint: xlsxHint}
	case isCompound(head):
		return refuseCompound(in, size)
	case !isArchive(head):
		return &OpenError{Text: "is not an Excel workbook", Hint: "if it is text, name its format: --format csv, tsv or jsonl"}
	}
	return nil
}

func isCompound(head []byte) bool { return bytes.HasPrefix(head, []byte(compoundMagic)) }

// refuseCompound tells apart the files in Microsoft's older container: encrypted
// workbooks and those of Excel before 2007. Which of them it is, the names in
// the container's directory say, which stand in UTF-16 somewhere in it.
func refuseCompound(in io.ReaderAt, size int64) *OpenError {
	secret, old := utf16le("EncryptedPackage"), utf16le("Workbook")
	buf := make([]byte, block+64) // with so much of the next block that no name is cut
	isOld := false
	for offset := int64(0); offset < size; offset += block {
		n, err := in.ReadAt(buf, offset)
		if bytes.Contains(buf[:n], secret) {
			return &OpenError{Text: "is encrypted with a password", Hint: secretHint}
		}
		isOld = isOld || bytes.Contains(buf[:n], old)
		if err != nil {
			break
		}
	}
	if isOld {
		return &OpenError{Text: "is an old Excel workbook (.xls), which cannot be read", Hint: xlsxHint}
	}
	return &OpenError{Text: "is an old Office document or an e-mail, which cannot be read", Hint: xlsxHint}
}

func utf16le(text string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}
