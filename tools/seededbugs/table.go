package main

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// The table, and files that some mistakes add. The names of these files keep them out of the build of the tools.
//
//go:embed bugs.yaml seeds
var table embed.FS

// bug is a mistake that is easy to make; bugs.yaml explains the fields.
type bug struct {
	Number   int
	Name     string
	Imitates string // the known trap or fault, and what would happen
	Edits    []edit
	Add      map[string]string   // new files by path; their texts are in the folder seeds
	Caught   map[string][]string // tests by the folder of their package
}

type edit struct{ In, File, First, Old, New string }

// bugs returns the table, in the order of its numbers.
func bugs() (all []bug, err error) {
	text, err := table.ReadFile("bugs.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &all)
	}
	return all, err
}

// chosen returns the bugs with these numbers; "": all bugs.
func chosen(all []bug, only string) ([]bug, error) {
	if only == "" {
		return all, nil
	}
	var some []bug
	for word := range strings.SplitSeq(only, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > len(all) {
			return nil, fmt.Errorf("-only %s: bugs have numbers from 1 to %d", word, len(all))
		}
		some = append(some, all[n-1])
	}
	return some, nil
}
