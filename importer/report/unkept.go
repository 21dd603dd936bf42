package report

import (
	"io"
	"path/filepath"

	"github.com/gocarina/gocsv"
)

// Unkept is a lead that was made and whose ID the checkpoint could not keep, as `leadferry checkpoint resolve` reads it.
type Unkept struct {
	Key       string `csv:"key"`
	Namespace string `csv:"namespace"`
	LeadID    string `csv:"lead_id"`
	RunID     string `csv:"run_id"`
}

// keptInResults says whether the results hold the IDs that the checkpoint lacks, beside a witness that says of which run.
func (s *Summary) keptInResults() bool {
	return s.ResultsPath != "" && s.run != nil && s.ResultsPath == filepath.Join(s.run.files.Folder(), resultsFile) && s.Target.BaseURL != inSandbox
}

// WriteUnkept writes the lead IDs that stand nowhere else.
func (s *Summary) WriteUnkept(w io.Writer) error {
	if len(s.Unkept) == 0 || s.keptInResults() {
		return nil
	}
	for i := range s.Unkept {
		s.Unkept[i].Key, s.Unkept[i].LeadID = EscapeLine(s.Unkept[i].Key), EscapeLine(s.Unkept[i].LeadID)
	}
	return gocsv.Marshal(s.Unkept, w)
}
