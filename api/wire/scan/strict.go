package scan

import (
	"strconv"
	"strings"
	"unicode"
)

// MaxKeys bounds the keys of one object of a request: no request needs more.
const MaxKeys = 64

// Why is what is wrong with a body.
type Why uint8

// What can be wrong.
const (
	Malformed Why = iota + 1 // no JSON, too deep, or of a kind that was not asked for
	Doubled                  // two keys of one object fold alike, or name one member
	TooMany                  // more than MaxKeys keys in one object
)

// Fault says why a body is refused, and at which key. A Malformed one has the innermost member that
// was asked for and met it; its key is empty if no such member did.
type Fault struct {
	Key string
	Why Why
}

// faultBytes bounds how much of a key an answer repeats.
const faultBytes = 80

// Error words the fault for the client. Keys that look alike are written with their escapes.
func (f *Fault) Error() string {
	key := f.Key[:min(len(f.Key), faultBytes)]
	switch f.Why {
	case Doubled:
		return "the key " + strconv.QuoteToASCII(key) +
			" names a member that its object has already: write each key once, in one spelling"
	case TooMany:
		return "the key " + strconv.QuoteToASCII(key) + " is one too many: an object may have " +
			strconv.Itoa(MaxKeys)
	}
	return f.Key + " is malformed or of a wrong kind"
}

// Keys finds an object of a body that no reader could read in one way only. The fault is nil or not
// Malformed: a body that is no JSON holds no such object.
func Keys(body string) *Fault {
	c := scanner{s: body}
	c.space()
	if c.value(Slot{}) || c.fault.Why < Doubled {
		return nil
	}
	return &Fault{strings.Clone(c.fault.Key), c.fault.Why}
}

// object is what the scanner knows of the object that it reads.
type object struct {
	members *Shape
	keys    int
	others  int // how many of scanner.others belong to objects around it
}

// other is a key that nobody asked for.
type other struct {
	hash uint32
	key  string
}

// unique reports whether the object o may have one more key, and has not had it before.
func (c *scanner) unique(o *object, key string, p *Slot, asked bool) bool {
	if c.lax {
		return true
	}
	doubled := false
	switch {
	case !asked:
		doubled = c.repeats(o, key)
	case p.Members != nil:
		doubled, p.Members.seen = p.Members.seen, true
	default:
		doubled, p.Into.seen = p.Into.seen, true
	}
	switch o.keys++; {
	case doubled:
		c.fault = Fault{key, Doubled}
	case o.keys > MaxKeys:
		c.fault = Fault{key, TooMany}
	default:
		return true
	}
	return false
}

// repeats notes a key that nobody asked for. It reports whether the object has had it before.
func (c *scanner) repeats(o *object, key string) bool {
	hash := foldHash(key)
	for _, before := range c.others[o.others:] {
		if before.hash == hash && strings.EqualFold(before.key, key) {
			return true
		}
	}
	c.others = append(c.others, other{hash, key})
	return false
}

// foldHash is the same for all keys that fold alike.
func foldHash(key string) uint32 {
	h := uint32(2166136261) // FNV-1a
	for _, r := range key {
		h = (h ^ uint32(fold(r))) * 16777619
	}
	return h
}

// fold is the least of all runes that fold like r.
func fold(r rune) rune {
	if r < unicode.MaxASCII {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
