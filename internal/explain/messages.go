package explain

import (
	_ "embed"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"unicode"

	"leadferry/internal/spelling"
)

// Messages that have no entry of their own are explained by that of their area: the mapping file, the command line and so on.
// messages.bin knows them by three words at a time, or two where a text has no more between its names, hashed, each with its
// area; a test writes it from the sources. So a message is found however its paths, names and numbers differ, where its lines
// break, and where it was cut off.
//
//go:embed messages.bin
var messages []byte

// areas are the entries of areas, by the folder whose messages they explain; the first one that fits counts.
var areas = []struct{ folder, entry string }{
	{"mapping", "mapping_file"},
	{"importer/source", "input_file"},
	{"internal/cli/inputs", "input_file"},
	{"internal/fetch", "input_file"},
	{"internal/config", "connection"},
	{"internal/cli/connection", "connection"},
	{"leadapi", "connection"},
	{"internal/cli/checkpointcmd", "checkpoint_command"},
	{"checkpoint", "checkpoint_use"},
	{"internal/cli/ledger", "checkpoint_use"},
	{"internal/disk", "disk"},
	{"importer", "run"},
	{"", "command_line"},
}

// areaOf is the place among areas of a file of the program, by its path from the project's folder.
func areaOf(file string) int {
	return slices.IndexFunc(areas, func(a struct{ folder, entry string }) bool {
		return a.folder == "" || strings.HasPrefix(file, a.folder+"/")
	})
}

// window is how many words are known together, few how many of a short text; record is the bytes of one in messages.bin.
const window, few, record = 3, 2, 5

// inMapping tells a place in a mapping file: its messages are put together of pieces too short to be known.
var inMapping = spelling.Form(`\.ya?ml:\d+:\d+: `)

// plainWords are the words of a text without what stands around them.
func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '\'' })
}

func windowHash(words []string) uint32 {
	h := fnv.New32a()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	return h.Sum32()
}

// areaEntry is the entry of the area that most of a message's words are from, or "".
func areaEntry(message string) string {
	for _, together := range []int{window, few} {
		if together == few && inMapping().MatchString(message) {
			return "mapping_file"
		}
		hits := make([]int, len(areas))
		for words := plainWords(message); len(words) >= together; words = words[1:] {
			hash := windowHash(words[:together])
			from := sort.Search(len(messages)/record, func(i int) bool {
				return binary.BigEndian.Uint32(messages[i*record:]) >= hash
			})
			for i := from * record; i < len(messages) && binary.BigEndian.Uint32(messages[i:]) == hash; i += record {
				hits[messages[i+record-1]]++
			}
		}
		if best := slices.Max(hits); best > 0 {
			return areas[slices.Index(hits, best)].entry
		}
	}
	return ""
}
