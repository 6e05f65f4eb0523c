package scan

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxRecordDepth = 64 // levels in one value of a record
	maxShift       = 20 // of a number's exponent
)

// Elements calls each with every element of the array that text holds, as written. It is false if
// text is no JSON array.
func Elements(text []byte, each func(element []byte)) bool {
	return group(text, '[', func(m Member) { each(m.Value) })
}

// Member is a key without its quotes and a value, both as written.
type Member struct {
	Key, Value []byte
}

// Object reads the members of the object that text holds into list. It is false if text is no
// object.
func Object(text []byte, list []Member) ([]Member, bool) {
	list = list[:0]
	ok := group(text, '{', func(m Member) { list = append(list, m) })
	return list, ok
}

// group reports whether text is one object or array, and calls each with its members.
func group(text []byte, opening byte, each func(Member)) bool {
	i := Space(text, 0)
	if i >= len(text) || text[i] != opening {
		return false
	}
	i = groupEnd(text, i, 0, each)
	return i >= 0 && Space(text, i) == len(text)
}

// comma reads the byte between two members: a comma (more, and where the next member begins) or the
// closing bracket (and the place behind the bracket). next is -1 for any other byte.
func comma(text []byte, i int, closing byte) (more bool, next int) {
	if i = Space(text, i); i >= len(text) {
		return false, -1
	}
	switch text[i] {
	case ',':
		return true, Space(text, i+1)
	case closing:
		return false, i + 1
	}
	return false, -1
}

// Space is the place of the first byte from i on that is not white space.
func Space[T string | []byte](text T, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the place behind the string that begins with the quote at i, -1 for a broken string.
func stringEnd(text []byte, i int) int {
	from := i + 1
	for i = from; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			if !utf8.Valid(text[from:i]) {
				return -1
			}
			return i + 1
		case c == '\\':
			if i = escapeEnd(text, i+1); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		}
	}
	return -1
}

// escapeEnd is the last byte of the escape that goes on at i, -1 if it is none.
func escapeEnd(text []byte, i int) int {
	if i >= len(text) {
		return -1
	}
	switch text[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i
	case 'u':
		for n := 1; n <= 4; n++ {
			if i+n >= len(text) {
				return -1
			}
			if _, ok := Nibble(text[i+n]); !ok {
				return -1
			}
		}
		return i + 4
	}
	return -1
}

// valueEnd is the place behind the value that begins at i, depth levels down; -1 if there is none.
func valueEnd(text []byte, i, depth int) int {
	if i >= len(text) || depth == maxRecordDepth {
		return -1
	}
	switch text[i] {
	case '"':
		return stringEnd(text, i)
	case '{', '[':
		return groupEnd(text, i, depth+1, nil)
	case 't':
		return wordEnd(text, i, "true")
	case 'f':
		return wordEnd(text, i, "false")
	case 'n':
		return wordEnd(text, i, "null")
	}
	return numberEnd(text, i)
}

// groupEnd is the place behind the object or array that begins at i, -1 if it has no end. Its
// values are depth levels down. If each is not nil, groupEnd calls it with every member.
func groupEnd(text []byte, i, depth int, each func(Member)) int {
	closing := text[i] + 2 // as in ASCII
	if i = Space(text, i+1); i < len(text) && text[i] == closing {
		return i + 1
	}
	for {
		var m Member
		if closing == '}' {
			if i >= len(text) || text[i] != '"' {
				return -1
			}
			end := stringEnd(text, i)
			if end < 0 {
				return -1
			}
			m.Key = text[i+1 : end-1]
			if i = Space(text, end); i >= len(text) || text[i] != ':' {
				return -1
			}
			i = Space(text, i+1)
		}
		end := valueEnd(text, i, depth)
		if end < 0 {
			return -1
		}
		if each != nil {
			m.Value = text[i:end]
			each(m)
		}
		more, next := comma(text, end, closing)
		if next < 0 || !more {
			return next
		}
		i = next
	}
}

func wordEnd[T string | []byte](text T, i int, word string) int {
	if len(text)-i < len(word) || string(text[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// numberEnd is the place behind the number that begins at i, -1 if there is none. Callers refuse a
// digit behind a leading zero.
func numberEnd[T string | []byte](text T, i int) int {
	if i < len(text) && text[i] == '-' {
		i++
	}
	from := i
	if i < len(text) && text[i] == '0' {
		i++
	} else if i = digitsEnd(text, i); i == from {
		return -1
	}
	if i < len(text) && text[i] == '.' {
		from = i + 1
		if i = digitsEnd(text, from); i == from {
			return -1
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		from = i
		if i = digitsEnd(text, from); i == from {
			return -1
		}
	}
	return i
}

func digitsEnd[T string | []byte](text T, i int) int {
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return i
}

// skipString is stringEnd for text that was checked before.
func skipString(text []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		slashes := 0
		for n-slashes > 0 && text[i+n-slashes-1] == '\\' {
			slashes++
		}
		if i += n; slashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue is valueEnd for text that was checked before.
func skipValue(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			if i = skipString(text, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			end := wordSkip(text, i)
			if end == i {
				return -1
			}
			i = end
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// wordSkip is the place behind a number, true, false or null.
func wordSkip(text []byte, i int) int {
	for i < len(text) && text[i] > ' ' && text[i] != ',' && text[i] != ']' && text[i] != '}' {
		i++
	}
	return i
}

// Skim is Elements for an array that was checked before.
func Skim(text []byte, each func(element []byte)) {
	for i := Space(text, 1); i < len(text) && text[i] != ']'; {
		end := skipValue(text, i)
		if end < 0 {
			return
		}
		each(text[i:end])
		if i = Space(text, end); i < len(text) && text[i] == ',' {
			i = Space(text, i+1)
		}
	}
}

// Absent reports whether a value is missing or null.
func Absent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// Text reads a string, or a number as it is written. Absent is "".
func Text(raw []byte) (string, bool) {
	switch {
	case Absent(raw):
		return "", true
	case raw[0] == '"':
		inner := raw[1 : len(raw)-1]
		if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
			return string(inner), true
		}
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), json.Valid(raw)
	}
	return "", false
}

// Bool reads true or false. Absent is the default.
func Bool(raw []byte, byDefault bool) (value, ok bool) {
	switch {
	case Absent(raw):
		return byDefault, true
	case string(raw) == "true":
		return true, true
	}
	return false, string(raw) == "false"
}

// List reads an array of strings (or numbers), or a string that holds the JSON text of one.
// Absent is nil.
func List(raw []byte) ([]string, bool) {
	if !Absent(raw) && raw[0] == '"' {
		inner, ok := Text(raw)
		if !ok {
			return nil, false
		}
		raw = []byte(inner)
	}
	if Absent(raw) {
		return nil, true
	}
	var list []string
	good := true
	array := Elements(raw, func(element []byte) {
		s, ok := Text(element)
		good = good && ok && !Absent(element)
		list = append(list, s)
	})
	return list, array && good
}

// Decimal reads a number, or a string that holds one, in units of 10^-digits. It is false if the
// number is negative, not exact in those units, or beyond 10^15 of them. Absent is the default.
func Decimal(raw []byte, digits int, byDefault int64) (int64, bool) {
	if Absent(raw) {
		return byDefault, true
	}
	text, ok := Text(raw)
	if !ok {
		return 0, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	shift := digits
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -maxShift || e > maxShift {
			return 0, false
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" || len(fraction) > shift || shift > maxShift {
		return 0, false
	}
	v := int64(0)
	for _, c := range []byte(whole + fraction + strings.Repeat("0", shift-len(fraction))) {
		if c < '0' || c > '9' || v > 1e14 {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// Each walks through members that were checked before, as in "key":value,… without braces: keys
// without their quotes and values, both as written.
func Each(list []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := 0; i < len(list); {
			key := skipString(list, i)
			if key < 0 {
				return
			}
			end := skipValue(list, key+1) // behind the colon
			if end < 0 || !yield(list[i+1:key-1], list[key+1:end]) {
				return
			}
			i = end + 1 // behind the comma
		}
	}
}

// Nibble is the value of a hex digit of either letter case; false if c is none.
func Nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
