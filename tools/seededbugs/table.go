package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// bug is a mistake that is easily made, and what has to be changed to make it.
type bug struct {
	number   int
	name     string
	imitates string // the measured trap or the fault of the catalogue, and what would happen
	edits    []edit
	adds     []added
	checks   []check // the quickest that notice it
	hangs    bool    // tests that do not end notice it too
}

// edit replaces a text that stands exactly once in a file.
type edit struct{ file, old, new string }

// added is a new file, whose text stands in the folder seeds.
type added struct{ file, seed string }

// check is a package, by its folder, and tests in it; subtests are named where the others take long.
type check struct {
	folder string
	tests  []string
}

// bugs is the table, in the order of its numbers.
func bugs() []bug {
	all := slices.Concat(engineBugs(), clientBugs(), ledgerBugs(), lossBugs(), edgeBugs(), driftBugs(), fleetBugs(), serverBugs())
	slices.SortFunc(all, func(a, b bug) int { return a.number - b.number })
	return all
}

// chosen are the bugs that a list of numbers and names asks for; all for "".
func chosen(all []bug, only string) ([]bug, error) {
	if only == "" {
		return all, nil
	}
	var some []bug
	for _, word := range strings.Split(only, ",") {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(all, func(b bug) bool { return b.name == word || strconv.Itoa(b.number) == word })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no such bug", word)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// folders are the packages that a bug changes or that notice it.
func (b *bug) folders() []string {
	var all []string
	for _, e := range b.edits {
		all = append(all, folderOf(e.file))
	}
	for _, a := range b.adds {
		all = append(all, folderOf(a.file))
	}
	for _, c := range b.checks {
		all = append(all, c.folder)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func folderOf(file string) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		return file[:i]
	}
	return "."
}
