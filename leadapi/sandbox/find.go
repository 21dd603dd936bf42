package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.etcd.io/bbolt"
)

// shortestID is how much of an ID finds what it names, in bytes.
const shortestID = 6

// mostLooked is how many leads one Find looks at: half a second's work at most.
const mostLooked = 50_000

// Found is what Find found.
type Found struct {
	Leads []Lead
	Older string // where to go on, before this lead; "" where there is nothing older
	Short bool   // it went on too long: what is older has not been looked at
}

// Made returns how many leads were ever made, those forgotten since too.
func (s *Server) Made() (n int, err error) {
	err = s.store.View(func(tx *bbolt.Tx) error { n = int(tx.Bucket(leadBucket).Sequence()); return nil })
	return n, err
}

// Leads returns every lead in the order of creation: what a test holds against what a run says it did.
func (s *Server) Leads() (leads []Lead, err error) {
	err = s.store.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(leadBucket).ForEach(func(_, v []byte) error {
			leads = append(leads, Lead{})
			return json.Unmarshal(v, &leads[len(leads)-1], exactNumbers)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: read the leads: %w", err)
	}
	return leads, nil
}

// Find returns leads, the newest first: those made before the one of an ID, or from the newest on for "". Each holds
// every word of the query, of whatever case, in its status, ExternalID, type, content, location, or in the name of its
// organization; has it, of six bytes at least, in its ID or its organization's; or was made in the minute after it, where it is a time of RFC 3339. It looks at limit of them, and at 50,000 altogether, at most.
func (s *Server) Find(query, before string, limit int) (f Found, err error) {
	words := s.words(query)
	err = s.store.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(leadBucket).Cursor()
		looked := 0
		for k, v := from(c, before); k != nil; k, v = c.Prev() {
			if f.Short = looked == mostLooked; f.Short || len(f.Leads) == limit {
				return nil
			}
			looked++
			f.Older = string(k)
			l, matches, err := match(v, words)
			if err != nil {
				return err
			}
			if matches {
				f.Leads = append(f.Leads, l)
			}
		}
		f.Older = ""
		return nil
	})
	if err != nil {
		err = fmt.Errorf("sandbox: read the leads: %w", err)
	}
	return f, err
}

// from goes to the last key before one, or to the last of all for "".
func from(c *bbolt.Cursor, before string) (k, v []byte) {
	if before == "" {
		return c.Last()
	}
	if k, _ := c.Seek([]byte(before)); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// word is one of a query, in small letters.
type word struct {
	text   string
	stored []byte          // as it stands in JSON
	owners map[string]bool // organizations whose names hold it
	sent   time.Time       // what it is as a time
}

func (s *Server) words(query string) (words []word) {
	for text := range strings.FieldsSeq(strings.ToLower(strings.ToValidUTF8(query, ""))) {
		stored, _ := jsontext.AppendQuote(nil, text)
		w := word{text: text, stored: stored[1 : len(stored)-1], owners: map[string]bool{}}
		w.sent, _ = time.Parse(time.RFC3339, strings.ToUpper(text))
		for id, name := range s.directory.names {
			if strings.Contains(strings.ToLower(name), text) {
				w.owners[id] = true
			}
		}
		words = append(words, w)
	}
	return words
}

// match decodes a lead if it holds all words. Most are ruled out by their bytes, which is cheaper.
func match(stored []byte, words []word) (l Lead, matches bool, err error) {
	if len(words) > 0 {
		small := bytes.ToLower(stored)
		for _, w := range words {
			if len(w.owners) == 0 && w.sent.IsZero() && !bytes.Contains(small, w.stored) {
				return l, false, nil
			}
		}
	}
	if err := json.Unmarshal(stored, &l, exactNumbers); err != nil {
		return l, false, err
	}
	for _, w := range words {
		if !w.in(&l) {
			return l, false, nil
		}
	}
	return l, true, nil
}

// in reports whether a lead holds the word in one of its values.
func (w word) in(l *Lead) bool {
	if w.owners[l.OwnerID] {
		return true
	}
	if made, err := time.Parse(timeLayout, l.CreatedAt); err == nil && !w.sent.IsZero() && made.Sub(w.sent).Abs() <= time.Minute && made.After(w.sent.Add(-time.Second)) {
		return true
	}
	// A short word stands in any ID, by chance.
	if len(w.text) >= shortestID && (strings.Contains(l.ID, w.text) || strings.Contains(strings.ToLower(l.OwnerID), w.text)) {
		return true
	}
	texts := []string{l.ExternalID, l.Status, l.TypeKey, l.TypeLabel, l.Location.Name, l.Location.Address}
	for _, value := range l.Content {
		texts = append(texts, TextOf(value))
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), w.text) })
}

// History returns a lead and how it changed; nil for a lead that is not known.
func (s *Server) History(id string) (h *History, err error) {
	err = s.store.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(leadBucket).Get([]byte(id))
		if v == nil {
			return nil
		}
		h = &History{}
		return json.Unmarshal(v, h, exactNumbers)
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: read a lead: %w", err)
	}
	return h, nil
}
