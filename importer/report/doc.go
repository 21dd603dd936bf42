// Package report writes what became of the rows of a run: results, rejects, the
// summary for scripts, the text for people, and the progress while it goes on.
//
// It stands at the end of a row's way. The checkpoint holds the truth and these
// files repeat it: when they are lost, running again writes them anew.
//
// Promises: a file bears its name only once it is complete and synced, until then
// NAME.partial stands beside it; the folder of each is held open, no symbolic link is
// followed to write one, and no pipe of another user is written to; all are 0600 (but for
// metrics, which another program reads: 0644), the run's folder is 0700 and holds the
// files of one run. Texts from outside are cut, shown without control characters and, in
// CSV, without a leading formula character; keys, IDs and the row's own cells stay as they
// are. What cannot be written is an error.
package report
