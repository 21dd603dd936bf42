package postgres

import (
	"time"

	"leadferry/checkpoint"
)

// aside is a record but for what has columns, and what stands below a doubt.
type aside struct {
	checkpoint.Kept
	Below *checkpoint.Kept
}

// keyed is a record, and what it came in place of, under a key; "": as it is kept, where the key stands beside it.
func keyed(k *checkpoint.Kept, key string) *checkpoint.Kept {
	if k == nil {
		return nil
	}
	under := *k
	under.Key, under.Prior = key, keyed(k.Prior, key)
	return &under
}

// texts are the parts of a record that have columns from lead_id to run.
func texts(k *checkpoint.Kept) [10]*string {
	return [...]*string{
		&k.LeadID, &k.Organization, &k.Location, &k.Status, &k.ExternalID, &k.WantLink, &k.Locator, &k.File, &k.Reason, &k.Run,
	}
}

// extra is what has no column: of what look-ups show, and what stands below it.
func (r *row) extra() string {
	a := aside{Kept: *keyed(r.visible(), "")}
	for _, text := range texts(&a.Kept) {
		*text = ""
	}
	a.State, a.Code, a.Line, a.Updated, a.Digest, a.Content = 0, 0, 0, time.Time{}, checkpoint.Digest{}, nil
	if r.Intent != nil {
		a.Below = keyed(r.Entry, "")
	}
	return string(checkpoint.Encode(&a))
}

// contentBytes are the digests of a content as they stand in their column.
func contentBytes(content []checkpoint.ContentDigest) []byte {
	b := make([]byte, 0, 8*len(content))
	for i := range content {
		b = append(append(b, content[i].Name[:]...), content[i].Value[:]...)
	}
	return b
}
