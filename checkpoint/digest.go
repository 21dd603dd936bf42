package checkpoint

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"sync"

	"github.com/dchest/siphash"
)

// Digester makes digests that are keyed with a random key: a plain hash of an e-mail address or a phone number can be
// found by trying them all. The key is in the same file, so anyone who has the file can still try them all: a
// checkpoint is pseudonymous personal data, and must be kept, copied and erased like personal data. Digests protect
// only what leaves the file without the key.
//
// Requests, names and keys go through HMAC-SHA-256. Values go through SipHash, a keyed function for short texts that
// takes a tenth of the time: a row has ten values, and four bytes of each digest are kept. HMAC makes SipHash's key.
type Digester struct {
	pool   sync.Pool
	values [2]uint64 // SipHash's key
}

// Domains keep digests of requests, names and values apart.
const (
	ofRequest = iota
	ofName
	ofValue
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
	d := &Digester{pool: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
	var sum [16]byte
	d.keyed(sum[:], ofValue, nil)
	d.values = [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	return d
}

// keyed fills out with the beginning of the HMAC of a text in its domain, and returns it.
func (d *Digester) keyed(out []byte, domain byte, text []byte) []byte {
	mac := d.pool.Get().(hash.Hash)
	defer d.pool.Put(mac)
	mac.Reset()
	mac.Write([]byte{domain})
	mac.Write(text)
	copy(out, mac.Sum(nil))
	return out
}

// Blocked returns the keyed digest that stands for a forgotten key.
func (d *Digester) Blocked(key string) []byte {
	return d.keyed(make([]byte, len(Digest{})), ofBlocked, []byte(key))
}

// Column returns the keyed digest of the name of a file's column.
func (d *Digester) Column(name string) string {
	return hex.EncodeToString(d.keyed(make([]byte, 8), ofColumn, []byte(name)))
}

// Sum returns the keyed digest (HMAC-SHA256, cut to 16 bytes) of b.
func (d *Digester) Sum(b []byte) (out Digest) {
	d.keyed(out[:], ofRequest, b)
	return out
}

// SumName returns the keyed digest of a content key.
func (d *Digester) SumName(name string) (out [4]byte) {
	d.keyed(out[:], ofName, []byte(name))
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

// Shape describes the files that leads were made of: their columns in any order, the namespace, and the key as the
// mapping says it ("" for the row's own data).
type Shape struct {
	Columns        []string
	Key, Namespace string
}

// noted returns a shape as a ledger notes it: key and namespace as they are, columns only as keyed digests.
func (d *Digester) noted(s *Shape) Kind {
	return Kind{Key: s.Key, Namespace: s.Namespace, Columns: hashed(s.Columns, d.Column)}
}

// Noted reports whether leads were made by this very Shape. If not, kin are the kinds of earlier imports that share at
// least half of the columns of either file: a renamed column does not hide them.
func Noted(ctx context.Context, s Store, shape Shape) (known bool, kin []Kind, err error) {
	all, err := valuesOf[Kind](ctx, s, shapeNote)
	own := s.Digests().noted(&shape)
	for _, other := range all {
		switch {
		case own.equals(&other):
			return true, nil, nil
		case own.isAkin(&other):
			kin = append(kin, other)
		}
	}
	return false, kin, err
}

// OnlyOf reports whether all files that leads were made of, in the namespace of these shapes, had one of these shapes.
func OnlyOf(ctx context.Context, s Store, shapes []Shape) (bool, error) {
	all, err := valuesOf[Kind](ctx, s, shapeNote)
	for _, noted := range all {
		same := func(of Shape) bool {
			own := s.Digests().noted(&of)
			return own.Namespace != noted.Namespace || own.equals(&noted)
		}
		if !slices.ContainsFunc(shapes, same) {
			return false, err
		}
	}
	return true, err
}
