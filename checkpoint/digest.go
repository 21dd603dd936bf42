package checkpoint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/dchest/siphash"
)

// Digester makes digests that are keyed with a random key: a plain hash of an e-mail address or a phone number can be
// found by trying them all. The key is in the same file, so whoever has the file can still do that. A checkpoint is
// therefore pseudonymous personal data: keep, copy and erase it as such. Digests protect what leaves the file.
//
// Requests and keys go through HMAC-SHA-256. The content keys and values of a row, about ten of each, go through
// SipHash, which takes a tenth of the time; four bytes of each digest are kept. SipHash's key is made by the HMAC.
type Digester struct {
	pool  sync.Pool
	short [2]uint64 // SipHash's key
}

// hasher copies texts into its own buffer: a text that is passed to a hash.Hash directly would be allocated each time.
type hasher struct {
	hash.Hash
	room []byte
}

// Domains: the same text has another digest as a request, as SipHash's key, as a forgotten key and as a column.
const (
	ofRequest = iota
	ofShort
	ofBlocked
	ofColumn
)

// NewID returns a random name that no other ledger has.
func NewID() string { return hex.EncodeToString(NewSecret()[:8]) }

// NewSecret returns a random key for digests.
func NewSecret() []byte {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return secret
}

// NewDigester returns a Digester with this key. It is safe for concurrent use.
func NewDigester(key []byte) *Digester {
	d := &Digester{pool: sync.Pool{New: func() any { return &hasher{hmac.New(sha256.New, key), nil} }}}
	var sum [16]byte
	d.keyed(sum[:], ofShort, nil)
	d.short = [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	return d
}

// keyed fills out with the beginning of the HMAC of a text in its domain, and returns it.
func (d *Digester) keyed(out []byte, domain byte, text []byte) []byte {
	h := d.pool.Get().(*hasher)
	defer d.pool.Put(h)
	h.room = append(append(h.room[:0], domain), text...)
	h.Reset()
	h.Write(h.room)
	copy(out, h.Sum(h.room[:0]))
	return out
}

// Blocked returns the keyed digest that is kept of a forgotten key.
func (d *Digester) Blocked(key string) []byte {
	return d.keyed(make([]byte, len(Digest{})), ofBlocked, []byte(key))
}

// Sum returns the keyed digest (HMAC-SHA256, cut to 16 bytes) of b.
func (d *Digester) Sum(b []byte) (out Digest) {
	d.keyed(out[:], ofRequest, b)
	return out
}

// SumName returns the keyed digest of a content key.
func (d *Digester) SumName(name string) [4]byte { return d.sumShort([]byte(name)) }

// SumValue returns the keyed digest of the value of a content key.
func (d *Digester) SumValue(name, value string) [4]byte {
	var room [256]byte
	in := append(binary.AppendUvarint(room[:0], uint64(len(name))), name...)
	return d.sumShort(append(in, value...))
}

func (d *Digester) sumShort(text []byte) (out [4]byte) {
	binary.LittleEndian.PutUint32(out[:], uint32(siphash.Hash(d.short[0], d.short[1], text)))
	return out
}
