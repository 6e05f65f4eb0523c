package pages

import "time"

// Version tells how new the facts behind a page are. Whoever makes a page reads the Version first,
// so the page is at least as new as its Version says.
type Version struct {
	// Source is any comparable value that names the records. Another Source makes other pages.
	Source any
	// Hour is the hour in which windows of time end.
	Hour int64
	// States counts changes of states and rules, Books those of books, Index those of sums of trades.
	States, Books, Index uint64
}

const (
	// large is the size from which a page is not made for every change of a price.
	large = 32 << 10
	// patience is how old the prices of a large page may be. A market that trades a thousand times a
	// second would have the page made a thousand times a second.
	patience = 250 * time.Millisecond
)

// page is a finished answer. But for weight it does not change.
type page struct {
	key     string
	hash    uint64 // of the key
	version Version
	begun   time.Time // when its making began
	body    []byte
	tag     []byte // entity tag of the body
	zipTag  []byte // of the body in gzip
	zipped  *zipped
	weight  int // bytes that the Cache counts for the page
}

// answers reports whether a page is new enough for a request that comes now, when the facts have
// this version.
func (p *page) answers(v *Version, now time.Time) bool {
	if p.version.Source != v.Source || p.version.Hour != v.Hour || p.version.States < v.States {
		return false
	}
	if p.version.Books >= v.Books && p.version.Index >= v.Index {
		return true
	}
	return len(p.body) >= large && now.Sub(p.begun) < patience
}
