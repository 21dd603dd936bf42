package report

import (
	"encoding/csv"
	"strings"

	"github.com/gocarina/gocsv"
)

// Pulled is one line of the pull file: a lead whose status the CRM should take over, in the CRM's
// own word, as its import reads it.
type Pulled struct {
	ExternalID     string `csv:"external_id"`
	Status         string `csv:"status"`
	LeadID         string `csv:"lead_id"`
	UpdatedAt      string `csv:"updated_at"`
	OrganizationID string `csv:"organization_id"`
}

func (r *Run) openPull() (err error) {
	if r.files.Pull == "" || r.files.Pull == None {
		return nil
	}
	r.pull, err = r.create(r.files.Pull)
	return err
}

// Pull writes the pull file as a whole. A run that does not call it, since it stopped before its
// end, leaves the file of an earlier one as it is.
func (r *Run) Pull(lines []Pulled) error {
	if r.err != nil || r.pull == nil {
		return r.err
	}
	each(lines, func(l *Pulled) {
		for _, text := range []*string{&l.ExternalID, &l.Status, &l.LeadID, &l.OrganizationID} {
			*text = visible(*text)
		}
	})
	r.pull.lines = csv.NewWriter(r.pull)
	header, err := gocsv.MarshalString([]Pulled{})
	if err == nil {
		err = r.pull.lines.Write(strings.Split(strings.TrimSpace(header), ","))
	}
	if err == nil && len(lines) > 0 {
		err = gocsv.MarshalCSVWithoutHeaders(lines, gocsv.NewSafeCSVWriter(r.pull.lines))
	}
	r.err = err
	return err
}

// commitPull completes the file, or leaves nothing of one that was not written.
func (r *Run) commitPull() error {
	if r.pull.lines == nil {
		return r.pull.discard()
	}
	return r.pull.commit()
}
