package ingress

import (
	"strings"

	"github.com/goccy/go-json"
)

// maxDepth bounds how deep the values of a body may nest: whoever needs more is not placing orders.
const maxDepth = 32

// kinds is a set of JSON value kinds.
type kinds uint8

const (
	aString kinds = 1 << iota
	aNumber
	aBool
	anObject
	anArray
	aNull
)

// field is a scalar member as it was written: the text of a number or a bool, the content of a
// string with its escapes resolved. kind is 0 if the member is absent.
type field struct {
	text string
	kind kinds
}

// given says whether the member is there and not the empty string.
func (f *field) given() bool { return f.kind != 0 && f.text != "" }

// place says where the value of one member belongs: into, if it is one of kinds; members, if it is
// an object.
type place struct {
	into    *field
	kinds   kinds
	members *shape
}

// shape is the set of members that an object is read for.
type shape struct {
	names []string
	// exact finds the place of a name as it is usually written, and is false for any other name.
	exact func(name string) (place, bool)
}

// find is the place of a member. Names match in any letter case, as they do in encoding/json.
func (s *shape) find(name string) (place, bool) {
	if p, ok := s.exact(name); ok {
		return p, true
	}
	for _, known := range s.names {
		if len(name) >= len(known) && strings.EqualFold(known, name) {
			return s.exact(known)
		}
	}
	return place{}, false
}

// scanner reads JSON in one pass, without a tree. It accepts and refuses what encoding/json does:
// the last of equal members wins, unknown members are skipped, null leaves a member as it was, a
// value of the wrong kind is an error. After the first error every method is false.
type scanner struct {
	s     string
	i     int
	depth int
	at    string // after an error: the innermost member that was asked for and met it
}

// document reads a whole body that holds one object, or null, and nothing behind it.
func (c *scanner) document(root *shape) bool {
	c.space()
	if !c.value(place{members: root}) {
		return false
	}
	c.space()
	return c.i == len(c.s)
}

// space skips white space.
func (c *scanner) space() {
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// next takes b if it comes next.
func (c *scanner) next(b byte) bool {
	if c.i < len(c.s) && c.s[c.i] == b {
		c.i++
		return true
	}
	return false
}

// value reads one value into its place.
func (c *scanner) value(p place) bool {
	if c.i >= len(c.s) {
		return false
	}
	switch b := c.s[c.i]; b {
	case '"':
		text, ok := c.text()
		return ok && p.take(text, aString)
	case '{':
		return p.fits(anObject) && c.nested(c.object, p.members)
	case '[':
		return p.fits(anArray) && c.nested(c.array, nil)
	case 't':
		return c.word("true") && p.take("true", aBool)
	case 'f':
		return c.word("false") && p.take("false", aBool)
	case 'n':
		return c.word("null")
	default:
		from := c.i
		return c.number() && p.take(c.s[from:c.i], aNumber)
	}
}

// fits says whether a value of this kind may stand here: any may where nothing is asked for.
func (p *place) fits(kind kinds) bool {
	if p.members != nil {
		return kind == anObject
	}
	return p.into == nil || p.kinds&kind != 0
}

// take keeps a scalar value.
func (p *place) take(text string, kind kinds) bool {
	if !p.fits(kind) {
		return false
	}
	if p.into != nil {
		*p.into = field{text, kind}
	}
	return true
}

// word takes a literal.
func (c *scanner) word(w string) bool {
	if !strings.HasPrefix(c.s[c.i:], w) {
		return false
	}
	c.i += len(w)
	return true
}

// nested reads an object or an array one level further down.
func (c *scanner) nested(read func(*shape) bool, s *shape) bool {
	if c.depth == maxDepth {
		return false
	}
	c.depth++
	c.i++
	ok := read(s)
	c.depth--
	return ok
}

// object reads the members behind the brace. A nil shape asks for nothing.
func (c *scanner) object(s *shape) bool {
	c.space()
	if c.next('}') {
		return true
	}
	for {
		c.space()
		if c.i >= len(c.s) || c.s[c.i] != '"' {
			return false
		}
		name, ok := c.text()
		if !ok {
			return false
		}
		c.space()
		if !c.next(':') {
			return false
		}
		c.space()
		p, asked := place{}, false
		if s != nil {
			p, asked = s.find(name)
		}
		if !c.value(p) {
			if asked && c.at == "" {
				c.at = name
			}
			return false
		}
		c.space()
		if c.next('}') {
			return true
		}
		if !c.next(',') {
			return false
		}
	}
}

// array skips the values behind the bracket.
func (c *scanner) array(*shape) bool {
	c.space()
	if c.next(']') {
		return true
	}
	for {
		c.space()
		if !c.value(place{}) {
			return false
		}
		c.space()
		if c.next(']') {
			return true
		}
		if !c.next(',') {
			return false
		}
	}
}

// text reads a string. Nearly all of them are plain ASCII and stay a part of the body; the rest
// goes through go-json, whose escapes and broken UTF-8 mean what they mean in encoding/json: the
// fuzz tests hold both against each other.
func (c *scanner) text() (string, bool) {
	from := c.i
	c.i++
	plain := true
	for c.i < len(c.s) {
		switch b := c.s[c.i]; {
		case b == '"':
			c.i++
			if plain {
				return c.s[from+1 : c.i-1], true
			}
			var resolved string
			err := json.Unmarshal([]byte(c.s[from:c.i]), &resolved)
			return resolved, err == nil
		case b == '\\':
			plain = false
			c.i += 2
		case b < 0x20:
			return "", false
		default:
			plain = plain && b < 0x80
			c.i++
		}
	}
	return "", false
}

// number reads a number by the letter of the grammar.
func (c *scanner) number() bool {
	c.next('-')
	if !c.next('0') && !c.digits() {
		return false
	}
	if c.next('.') && !c.digits() {
		return false
	}
	if c.next('e') || c.next('E') {
		if !c.next('+') {
			c.next('-')
		}
		return c.digits()
	}
	return true
}

// digits takes at least one digit.
func (c *scanner) digits() bool {
	from := c.i
	for c.i < len(c.s) && c.s[c.i]-'0' <= 9 {
		c.i++
	}
	return c.i > from
}
