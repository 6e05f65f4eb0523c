package scan

import (
	"strings"

	"github.com/goccy/go-json"
)

// MaxNested bounds how deep the values of a request may nest: no order needs more.
const MaxNested = 32

// Kinds is a set of JSON value kinds.
type Kinds uint8

// The kinds that a Slot may ask for.
const (
	AString Kinds = 1 << iota
	ANumber
	ABool
	anObject
	anArray
	aNull
)

// Field is a scalar member as it was written.
type Field struct {
	// Text is the text of a number or a bool, or the content of a string with its escapes resolved.
	Text string
	// Kind is 0 if the member is absent.
	Kind Kinds

	seen bool // its object has the member, which may be null
}

// Given reports whether the member is there and not the empty string.
func (f *Field) Given() bool { return f.Kind != 0 && f.Text != "" }

// Slot says where the value of one member goes: to Into, if its kind is one of Kinds; to Members,
// if the value is an object.
type Slot struct {
	Into    *Field
	Kinds   Kinds
	Members *Shape
}

// Shape is the set of members that an object is read for.
type Shape struct {
	Names []string
	// Exact is the slot of a name as it is usually written; false for any other name.
	Exact func(name string) (Slot, bool)

	seen bool // the body has the member
}

// find is the slot of a member. Names match in any letter case, as they do in encoding/json.
func (s *Shape) find(name string) (Slot, bool) {
	if p, ok := s.Exact(name); ok {
		return p, true
	}
	for _, known := range s.Names {
		if len(name) >= len(known) && strings.EqualFold(known, name) {
			return s.Exact(known)
		}
	}
	return Slot{}, false
}

// Document reads a body that holds one object, or null, for the members of root. The fault is nil
// unless the body is refused.
func Document(body string, root *Shape) *Fault {
	c := scanner{s: body}
	c.space()
	ok := c.value(Slot{Members: root})
	c.space()
	if ok && c.i == len(body) {
		return nil
	}
	return &Fault{strings.Clone(c.fault.Key), max(c.fault.Why, Malformed)}
}

// Array splits a body that holds one array: it appends the text of the first values to values, at
// most so many, and returns how many there are. ok is false if the body is no JSON array. The keys
// of objects are left to whoever reads the values.
func Array(values []string, body string, most int) (_ []string, count int, ok bool) {
	c := scanner{s: body, depth: 1, lax: true}
	c.space()
	ok = c.next('[') && c.list(']', func() bool {
		from := c.i
		if !c.value(Slot{}) {
			return false
		}
		if count++; count <= most {
			values = append(values, body[from:c.i])
		}
		return true
	})
	if !ok {
		return values, 0, false
	}
	c.space()
	return values, count, c.i == len(body)
}

// Unquote is the content of a string that begins with its quote and ends text.
func Unquote(text string) (content string, ok bool) {
	c := scanner{s: text}
	content, ok = c.text()
	return content, ok && c.i == len(text)
}

// scanner reads JSON in one pass, without a tree. After the first error every method is false.
type scanner struct {
	s     string
	i     int
	depth int
	lax   bool // keys are not judged
	fault Fault
	// others are the keys that nobody asked for, of the present object and those around it.
	others []other
}

func (c *scanner) space() { c.i = Space(c.s, c.i) }

func (c *scanner) next(b byte) bool {
	if c.i < len(c.s) && c.s[c.i] == b {
		c.i++
		return true
	}
	return false
}

func (c *scanner) value(p Slot) bool {
	if c.i >= len(c.s) {
		return false
	}
	switch b := c.s[c.i]; b {
	case '"':
		text, ok := c.text()
		return ok && p.take(text, AString)
	case '{':
		o := object{members: p.Members, others: len(c.others)}
		if !p.fits(anObject) || !c.nested('}', func() bool { return c.member(&o) }) {
			return false
		}
		c.others = c.others[:o.others]
		return true
	case '[':
		return p.fits(anArray) && c.nested(']', func() bool { return c.value(Slot{}) })
	case 't':
		return c.to(wordEnd(c.s, c.i, "true")) && p.take("true", ABool)
	case 'f':
		return c.to(wordEnd(c.s, c.i, "false")) && p.take("false", ABool)
	case 'n':
		return c.to(wordEnd(c.s, c.i, "null"))
	default:
		from := c.i
		return c.to(numberEnd(c.s, c.i)) && p.take(c.s[from:c.i], ANumber)
	}
}

// fits reports whether a value of this kind may stand here. Any kind may if nothing is asked for.
func (p *Slot) fits(kind Kinds) bool {
	if p.Members != nil {
		return kind == anObject
	}
	return p.Into == nil || p.Kinds&kind != 0
}

func (p *Slot) take(text string, kind Kinds) bool {
	if !p.fits(kind) {
		return false
	}
	if p.Into != nil {
		p.Into.Text, p.Into.Kind = text, kind
	}
	return true
}

// to moves on to end, the end of a value; it is false if end is -1: no value.
func (c *scanner) to(end int) bool {
	if end < 0 {
		return false
	}
	c.i = end
	return true
}

// nested reads an object or an array, one level further down.
func (c *scanner) nested(closing byte, item func() bool) bool {
	if c.depth == MaxNested {
		return false
	}
	c.depth++
	c.i++
	ok := c.list(closing, item)
	c.depth--
	return ok
}

// list reads what stands between an opening bracket and the closing one. item reads one of the
// values or members that commas separate.
func (c *scanner) list(closing byte, item func() bool) bool {
	c.space()
	if c.next(closing) {
		return true
	}
	for {
		c.space()
		if !item() {
			return false
		}
		c.space()
		if c.next(closing) {
			return true
		}
		if !c.next(',') {
			return false
		}
	}
}

// member reads one member of an object. A nil shape asks for nothing.
func (c *scanner) member(o *object) bool {
	if c.i >= len(c.s) || c.s[c.i] != '"' {
		return false
	}
	name, ok := c.text()
	c.space()
	if !ok || !c.next(':') {
		return false
	}
	c.space()
	p, asked := Slot{}, false
	if o.members != nil {
		p, asked = o.members.find(name)
	}
	if !c.unique(o, name, &p, asked) {
		return false
	}
	if c.value(p) {
		return true
	}
	if asked && c.fault.Why == 0 {
		c.fault = Fault{name, Malformed}
	}
	return false
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
