package jsonrows

import (
	"fmt"
	"strings"
	"testing"
)

func TestShapesAreRightAndBounded(t *testing.T) { // faults 94
	s := shapes{known: map[string]*shape{}}
	pad := strings.Repeat("k", 1000)
	for i := range 5000 {
		name := fmt.Sprint(pad, i)
		if h := s.shapeOf([]byte(`"` + name + `" `)).header; h.Names[0] != name {
			t.Fatalf("shape %d is that of another", i)
		}
		size := 0
		for key := range s.known {
			size += len(key)
		}
		if size > maxShapeBytes {
			t.Fatalf("%d bytes of names are remembered after %d shapes", size, i+1)
		}
	}
}
