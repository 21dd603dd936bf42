package source

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"

	"leadferry/importer/source/xlsx"
	"leadferry/internal/lazyregexp"
)

const (
	packedHint = "unpack it first, or send the unpacked text through standard input"
	exportHint = "export the rows as CSV in UTF-8, or as an Excel workbook (.xlsx)"
	readable   = "CSV, TSV, JSON and Excel workbooks (.xlsx) can be read, also packed with gzip or zstd"
)

// magic is what files of a kind begin with.
type magic struct{ bytes, text, hint string }

// refuseContent knows by their first bytes the files that hold no rows.
func refuseContent(head []byte) error {
	if xlsx.IsCompound(head) {
		return &OpenError{Text: "is an old Excel workbook (.xls), or one with a password, which cannot be read", Hint: xlsx.Hint}
	}
	const tar, tarAt = "ustar", 257
	if len(head) > tarAt && bytes.HasPrefix(head[tarAt:], []byte(tar)) {
		return &OpenError{Text: "is a tar archive", Hint: packedHint}
	}
	return refuseMagic(head, []magic{
		{"BZh91AY&SY", "is packed with bzip2, which cannot be read", packedHint},
		{"\xFD7zXZ\x00", "is packed with xz, which cannot be read", packedHint},
		{"\x04\x22\x4D\x18", "is packed with lz4, which cannot be read", packedHint},
		{"\x1F\x9D", "is packed with compress, which cannot be read", packedHint},
		{"\x1F\x8B", "is packed with gzip in a way that is not known", packedHint},
		{"7z\xBC\xAF\x27\x1C", "is a 7-Zip archive, which cannot be read", packedHint},
		{"Rar!\x1A\x07", "is a RAR archive, which cannot be read", packedHint},
		{"PK\x03\x04", "is an Excel workbook or another ZIP archive", "if it is a workbook, name its format: --format xlsx; else unpack it first"},
		{"PK\x05\x06", "is an empty ZIP archive", readable},
		{"PK\x07\x08", "is a part of a ZIP archive", packedHint},
		{"%PDF-", "is a PDF document", exportHint},
		{`{\rtf`, "is a text document (RTF)", exportHint},
		{"\x89PNG\r\n", "is an image", readable},
		{"\xFF\xD8\xFF", "is an image", readable},
		{"GIF87a", "is an image", readable},
		{"GIF89a", "is an image", readable},
		{"II*\x00", "is an image", readable},
		{"\x7FELF", "is a program", readable},
		{"MZ\x90\x00", "is a program", readable},
		{"SQLite format 3\x00", "is an SQLite database", exportHint},
		{"PAR1\x15", "is a Parquet file", exportHint},
		{"Obj\x01", "is an Avro file", exportHint},
		{"\xFF\xFE\x00\x00", "is text in UTF-32, which cannot be read", "save it as UTF-8"},
		{"\x00\x00\xFE\xFF", "is text in UTF-32, which cannot be read", "save it as UTF-8"},
	})
}

// refuseText knows pages and other markup by their text, which begins so, and the files whose lines end with a lone
// CR by the first line, which then is the whole file or longer than a record may be.
func refuseText(line []byte) error {
	if bytes.IndexByte(line, '\r') >= 0 && bytes.IndexByte(line, '\n') < 0 {
		return &OpenError{Line: 1, Text: "the lines end with CR alone, as on old Macintosh systems", Hint: "save the file with line ends LF or CR LF"}
	}
	text := bytes.ToLower(bytes.TrimLeft(line[:min(len(line), sniffBytes)], " \t\r\n"))
	return refuseMagic(text, []magic{
		{"<!doctype html", "is an HTML page, perhaps one that asks to sign in", "download the file itself, or export the rows anew"},
		{"<html", "is an HTML page, perhaps one that asks to sign in", "download the file itself, or export the rows anew"},
		{"<table", "is an HTML table, as some programs write under the name .xls", "open it in Excel and save it as .xlsx or as CSV in UTF-8"},
		{"<?xml", "is an XML document", exportHint},
		{"<?mso", "is an XML document", exportHint},
	})
}

func refuseMagic(text []byte, kinds []magic) error {
	for _, m := range kinds {
		if bytes.HasPrefix(text, []byte(m.bytes)) {
			return &OpenError{Text: m.text, Hint: m.hint}
		}
	}
	return nil
}

const ownHint = "name the file that holds the rows; the mapping goes behind -m, a checkpoint behind --checkpoint"

// checkpointMagic stands in the first page of checkpoints, and of what a sandbox holds.
const checkpointMagic, checkpointMagicAt = "\xED\xDA\x0C\xED", 16

var (
	mappingHead = lazyregexp.New(`^\x{FEFF}?(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*\r?\n)*version:[ \t]`)
	summaryHead = lazyregexp.New(`^\{\s*"run_id":`)
)

// refuseOwn knows the files that stand beside an input in a command, and are easily named in its place.
func refuseOwn(name string, head []byte) error {
	text := ""
	switch extension := strings.ToLower(filepath.Ext(name)); {
	case len(head) > checkpointMagicAt && bytes.HasPrefix(head[checkpointMagicAt:], []byte(checkpointMagic)):
		text = "is " + KindCheckpoint + ", or what a sandbox holds, and no table"
	case mappingHead().Match(head), extension == ".yaml", extension == ".yml":
		text = "is " + KindMapping + ", and no table"
	case summaryHead().Match(head):
		text = "is the summary of a run, and no table"
	default:
		return nil
	}
	return &OpenError{Text: text, Hint: ownHint}
}

// Kinds that KindOf gives of files which stand beside the inputs in a command.
const (
	KindMapping    = "a mapping or another YAML file"
	KindCheckpoint = "a checkpoint"
)

// KindBytes is how many of a file's first bytes KindOf wants to see.
const KindBytes = 512

// KindOf says what kind of file one is, by its name and its first bytes, where that is known: it may be named in the
// place of another. "" stands for a text of which nothing is known.
func KindOf(name string, head []byte) string {
	if packingOf(head) != "" {
		return "a packed file"
	}
	err := refuseContent(head)
	if err == nil {
		err = refuseText(bytes.ReplaceAll(head, []byte("\r"), nil))
	}
	if err == nil {
		err = refuseOwn(name, head)
	}
	if known := (*OpenError)(nil); errors.As(err, &known) {
		text, _, _ := strings.Cut(strings.TrimPrefix(known.Text, "is "), ", ")
		return text
	}
	if namedFormat(name) == "" || strings.EqualFold(filepath.Ext(name), ".json") {
		return ""
	}
	return "a table by its name"
}
