package source

import "fmt"

// OpenError says why a file cannot be an input, before any of its rows is read.
type OpenError struct {
	File string
	Line int // 0: the file as a whole
	Text string
	Hint string // what the user can do, or ""
	Err  error  // the cause, or nil
}

// Error gives the place and the text, and the hint on a line of its own.
func (e *OpenError) Error() string {
	text := place(e.File, e.Line) + e.Text
	if e.Hint != "" {
		text += "\nhint: " + e.Hint
	}
	return text
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// LostError says that a file's structure is lost from a line on: the rows
// after it cannot be known, and the run must stop.
type LostError struct {
	File string
	Line int
	Text string
	Hint string // what the user can do, or ""
	Err  error  // the cause, or nil
}

// Error gives the place and the text.
func (e *LostError) Error() string { return place(e.File, e.Line) + e.Text }

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

func place(file string, line int) string {
	if line == 0 {
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}
