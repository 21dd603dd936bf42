// Package lazyregexp compiles regular expressions when they are first needed. Those of the whole program take
// milliseconds, and most runs need few of them: a package variable that is compiled at once is paid for by every
// start, --version and shell completion included.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function for the regular expression, which is compiled by its first call; any number of goroutines
// may call it. A form that is none panics then, as with regexp.MustCompile.
func New(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}
