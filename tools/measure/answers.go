package main

import (
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// nobody's leads are those of creates that name no organization, in JSON.
const nobody = `"3d0f8a52-7c41-4e19-9b06-58a1c2d7e4f3"`

const tokenAnswer = `{"access_token":"access-to-the-sink","expires_in":10800,"refresh_token":"refresh-of-the-sink","token_type":"Bearer"}`

// statuses are the keys of the specification (section "States and transitions").
func statuses() [8]string {
	return [8]string{
		"open", "contacted", "inProgress", "onHold",
		"closedWon", "closedNotInterested", "closedBoughtUsed", "closedBoughtOtherBrand",
	}
}

// leadIDs gives UUIDs that differ from those of every earlier sink. The last four
// digits tell organization and status of the create: so the sink, which keeps no lead,
// says them again when the lead is linked.
type leadIDs struct {
	random  bool
	begun   uint64
	counter atomic.Uint64
	mu      sync.RWMutex
	index   map[string]uint64 // organizations as they stand in JSON, with their numbers
	owners  []string          // the same by number
}

// maxOwners is how many organizations three hexadecimal digits can tell.
const maxOwners = 1 << 12

func newLeadIDs(random bool) *leadIDs {
	return &leadIDs{
		random: random, begun: uint64(time.Now().UnixNano()),
		index: map[string]uint64{nobody: 0}, owners: []string{nobody},
	}
}

// appendCreated appends the answer to a create.
func (ids *leadIDs) appendCreated(b, create []byte) []byte {
	asked, status := member(create, "status"), 0
	for i, known := range statuses() {
		if len(asked) == len(known)+2 && string(asked[1:len(asked)-1]) == known {
			status = i
		}
	}
	owner := ids.number(member(create, "organizationID"))
	b = append(b, `{"leadID":"`...)
	b = ids.appendNext(b, owner<<4|uint64(status))
	b = append(b, `","assignedOrganizationID":`...)
	b = append(b, ids.owner(owner)...)
	return append(b, `,"assignedLocationName":""}`...)
}

// number is that of an organization, which gets one when it is seen first. What is left
// over belongs to nobody.
func (ids *leadIDs) number(organization []byte) uint64 {
	ids.mu.RLock()
	n, known := ids.index[string(organization)]
	ids.mu.RUnlock()
	if known || organization == nil {
		return n
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if n, known = ids.index[string(organization)]; known || len(ids.owners) == maxOwners {
		return n
	}
	n = uint64(len(ids.owners))
	ids.index[string(organization)] = n
	ids.owners = append(ids.owners, string(organization))
	return n
}

func (ids *leadIDs) owner(number uint64) string {
	ids.mu.RLock()
	defer ids.mu.RUnlock()
	if number < uint64(len(ids.owners)) {
		return ids.owners[number]
	}
	return nobody
}

// made reads what an ID tells; that of a stranger tells of a new lead of nobody's.
func (ids *leadIDs) made(id []byte) (owner, status string) {
	all := statuses()
	if len(id) != 36 {
		return nobody, all[0]
	}
	told, err := strconv.ParseUint(string(id[32:]), 16, 64)
	if err != nil || told&15 >= uint64(len(all)) {
		return nobody, all[0]
	}
	return ids.owner(told >> 4), all[told&15]
}

func (ids *leadIDs) appendNext(b []byte, tells uint64) []byte {
	n := ids.counter.Add(1)
	high, low := ids.begun, n
	if ids.random {
		high, low = scrambled(ids.begun+n), scrambled(ids.begun^n)
	}
	return appendUUID(b, high&^0xf000|0x4000, low<<16&^(3<<62)|2<<62|tells)
}

// scrambled is the finalizer of splitmix64: it gives every number another one.
func scrambled(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func appendUUID(b []byte, high, low uint64) []byte {
	var raw [16]byte
	for i := range 8 {
		raw[i], raw[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
	}
	for i, from := range [...]int{0, 4, 6, 8, 10} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, raw[from:[...]int{4, 6, 8, 10, 16}[i]])
	}
	return b
}

// plainID tells whether an ID can stand in JSON as it is.
func plainID(id []byte) bool {
	for _, c := range id {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '/' || c == '%' {
			return false
		}
	}
	return len(id) > 0
}

// appendLead appends the Lead that an update is answered with: what the update brings,
// and else what a lead has that was just made.
func (ids *leadIDs) appendLead(b, id, update []byte) []byte {
	owner, status := ids.made(id)
	b = append(b, `{"ID":"`...)
	b = append(b, id...)
	b = append(b, `","ReadOnly":false,"CreatedAt":"2026-03-01T08:00:00.000000Z","UpdatedAt":"2026-03-01T08:00:01.000000Z","OwnerID":`...)
	b = append(b, owner...)
	b = append(b, `,"Content":`...)
	b = appendOr(b, member(update, "Content"), `{}`)
	b = append(b, `,"Impressions":0,"IsTestLead":false,"Location":{"Name":"","Address":""},"RequestMeta":{"ContentType":"application/json",`+
		`"Host":"","IP":"","Locale":"","URL":"","UserAgent":""},"Source":"lead-collector","Status":`...)
	if sent := member(update, "Status"); sent != nil {
		b = append(b, sent...)
	} else {
		b = append(append(append(b, '"'), status...), '"')
	}
	b = append(b, `,"Stage":"lead","TypeKey":"contact-form","TypeLabel":"Contact form","Views":0,"ExternalID":`...)
	b = appendOr(b, member(update, "ExternalID"), `""`)
	return append(b, `,"DisplayName":""}`...)
}

func appendOr(b, value []byte, otherwise string) []byte {
	if value == nil {
		return append(b, otherwise...)
	}
	return append(b, value...)
}
