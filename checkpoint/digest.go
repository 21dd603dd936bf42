package checkpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/dchest/siphash"
)

// Digester makes digests that are keyed with a random key: a plain hash of an e-mail address or a phone number
// can be found by trying them all. The key lies in the same file, so anyone who has the file
// can try them anyway: a checkpoint is pseudonymous personal data, to be kept, copied
// and erased as such. What digests keep safe is what leaves the file without the key.
//
// Requests, names and keys go through HMAC-SHA-256. Values, of which each row has ten and four bytes
// of each digest are kept, go through SipHash, a keyed function made for short texts that takes a
// tenth of the time; its key comes of the other one by HMAC.
type Digester struct {
	pool   sync.Pool
	values [2]uint64 // SipHash's key
}

// hasher is one keyed hash with the room that it works in.
type hasher struct {
	mac hash.Hash
	in  []byte
	out [sha256.Size]byte
}

// Domains keep digests of requests, names and values apart.
const (
	ofRequest = iota
	ofName
	ofValue
	ofBlocked
	ofColumn
)

// ColumnSize is the length of the digest of a column in bytes.
const ColumnSize = 8

// NewDigester returns one of a key. It is safe for concurrent use.
func NewDigester(key []byte) *Digester {
	d := &Digester{pool: sync.Pool{New: func() any { return &hasher{mac: hmac.New(sha256.New, key)} }}}
	var sum [16]byte
	keyed(d, sum[:], ofValue, "")
	d.values = [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	return d
}

// keyed fills out with the beginning of the HMAC of a text in its domain, and returns it.
func keyed[T string | []byte](d *Digester, out []byte, domain byte, text T) []byte {
	h := d.pool.Get().(*hasher)
	h.in = append(append(h.in[:0], domain), text...)
	h.mac.Reset()
	h.mac.Write(h.in)
	copy(out, h.mac.Sum(h.out[:0]))
	d.pool.Put(h)
	return out
}

// Blocked returns the keyed digest that stands for a forgotten key.
func (d *Digester) Blocked(key string) []byte {
	return keyed(d, make([]byte, len(Digest{})), ofBlocked, key)
}

// Column returns the keyed digest of the name of a file's column.
func (d *Digester) Column(name string) []byte {
	return keyed(d, make([]byte, ColumnSize), ofColumn, name)
}

// Sum returns the keyed digest (HMAC-SHA256, cut to 16 bytes) of b.
func (d *Digester) Sum(b []byte) (out Digest) {
	keyed(d, out[:], ofRequest, b)
	return out
}

// SumName returns the keyed digest of a content key.
func (d *Digester) SumName(name string) (out [4]byte) {
	keyed(d, out[:], ofName, name)
	return out
}

// SumValue returns the keyed digest of the value of a content key.
func (d *Digester) SumValue(name, value string) (out [4]byte) {
	var room [256]byte
	in := append(binary.AppendUvarint(room[:0], uint64(len(name))), name...)
	in = append(in, value...)
	binary.LittleEndian.PutUint32(out[:], uint32(siphash.Hash(d.values[0], d.values[1], in)))
	return out
}
