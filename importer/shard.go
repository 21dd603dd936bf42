package importer

import (
	"errors"

	"leadferry/internal/rowkey"
	"leadferry/mapping"
)

// Shard is the part of the input that a worker of a fleet takes: the rows whose lead falls to Index, from 0, of Of parts.
// The zero Shard is all of it.
type Shard struct{ Index, Of int }

// sharding says which rows a worker takes. All rows of a lead fall to one worker, and so do keys that look alike: rows are
// parted by what finds their lead. Those that have no such thing are parted by their place.
type sharding struct {
	Shard
	byLeadID bool // rows find their lead by its ID alone
}

var errManyIdentities = errors.New("the rows of this mapping may find their lead by several values, so that workers of a fleet could meet at one lead\n" +
	"hint: a mapping can be sharded that has lead_id alone, or key where external_id is the same text or not given")

// newSharding refuses a mapping by which rows of one lead could fall to two workers.
func newSharding(s Shard, m *mapping.Mapping) (sharding, error) {
	if s.Of > 1 && !m.OneIdentity() {
		return sharding{}, errManyIdentities
	}
	return sharding{s, m.HasLeadID()}, nil
}

// takes reports whether a row is this worker's.
func (s *sharding) takes(it *item) bool {
	if s.Of <= 1 {
		return true
	}
	h := uint64(offset64)
	switch {
	case it.fault != nil || it.rec.Skip:
		h = mixNumber(mixNumber(h, uint64(it.input)), uint64(it.row.Number))
	case s.byLeadID && it.rec.LeadID != "":
		h = mixText(h, it.rec.LeadID)
	default:
		h = mixText(h, rowkey.Fold(it.rec.Key))
	}
	return int(spread(h)%uint64(s.Of)) == s.Index
}

// FNV-1a, and the last steps of splitmix64 so that the lower bits are as good as the others. Workers of all releases must
// agree about it as long as fleets last.
const (
	offset64 = 0xcbf29ce484222325
	prime64  = 0x100000001b3
)

func mixText(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime64
	}
	return h
}

func mixNumber(h, n uint64) uint64 {
	for range 8 {
		h = (h ^ n&0xFF) * prime64
		n >>= 8
	}
	return h
}

func spread(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
