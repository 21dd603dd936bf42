package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// uuid is the 16 bytes of a UUID.
type uuid [16]byte

// randomID returns a UUID of version 4.
func randomID() (u uuid) {
	_, _ = rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// after returns a UUID of version 7 that is greater than u, so that the order of lead IDs is that of
// creation, whatever the clock does. More than 4,096 a millisecond run ahead of the clock.
func (u uuid) after(now time.Time) uuid {
	tick := u.tick()
	if n := uint64(now.UnixMilli()) << 12; n > tick {
		tick = n
	} else {
		tick++
	}
	v := randomID()
	binary.BigEndian.PutUint64(v[:], tick>>12<<16|0x7000|tick&0xfff)
	return v
}

// tick is the millisecond and the number within it, 12 bits.
func (u uuid) tick() uint64 {
	h := binary.BigEndian.Uint64(u[:])
	return h>>16<<12 | h&0xfff
}

func (u uuid) String() string {
	b := make([]byte, 0, 36)
	from := 0
	for _, to := range [...]int{4, 6, 8, 10, 16} {
		if from > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, u[from:to])
		from = to
	}
	return string(b)
}

// parseID reads a UUID as String writes it; ok is false for anything else.
func parseID(s string) (u uuid, ok bool) {
	if len(s) != 36 {
		return u, false
	}
	if _, err := hex.Decode(u[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])); err != nil {
		return u, false
	}
	return u, u.String() == s
}
