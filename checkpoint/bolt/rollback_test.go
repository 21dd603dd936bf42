package bolt

import (
	"testing"

	"leadferry/checkpoint"
)

// faults 21, 23, m18: a copy from before, put back, is older than the book says, as is a file whose last commit a damaged page
// hides. Taken for good it is incomplete, and another checkpoint than the newer one.
func TestOlderCopyIsOlderThanItsWitness(t *testing.T) {
	for name, older := range map[string]func(t *testing.T, before, now []byte) []byte{
		"a copy put back": func(_ *testing.T, before, _ []byte) []byte { return before },
		"a damaged page": func(t *testing.T, _, now []byte) []byte {
			m := metaOf(t, now)
			now[m.commit%2*m.page+headSize+20] ^= 1
			return now
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, restored := newPath(t), newPath(t)
			d := seeded(t, path, 5)
			if err := checkpoint.PutRun(t.Context(), d, checkpoint.RunInfo{ID: "r"}); err != nil {
				t.Fatal(err)
			}
			ws := attested(t, d).Witnesses
			before := read(t, path)
			if err := claim(d, intentOf("later", 1)); err != nil {
				t.Fatal(err)
			}
			now := read(t, path)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			content(string(older(t, before, now)))(t, restored)
			d = opened(t, restored, Options{AnyPlace: true})
			id := d.Info().ID
			v, err := checkpoint.Judge(t.Context(), d, ws, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, v.Refuse(""), checkpoint.ErrRolledBack)
			if took, err := checkpoint.TakeOlder(t.Context(), d, ws, id, ""); !took || err != nil {
				t.Fatalf("took %v, %v", took, err)
			}
			d.Close()
			d = opened(t, restored, Options{AnyPlace: true})
			if v, err = checkpoint.Judge(t.Context(), d, ws, true, nil); err != nil || v.Refuse("") != nil {
				t.Errorf("taken: %v, %v", v.Refuse(""), err)
			}
			if e := lookup(t, d, "later"); e.State != checkpoint.Unknown || !mayLack(d, &e) || d.Info().ID == id {
				t.Errorf("later %+v, ID %s", e, d.Info().ID)
			}
			if e := lookup(t, d, "key-00000"); mayLack(d, &e) {
				t.Errorf("%+v may be missing", e)
			}
		})
	}
}
