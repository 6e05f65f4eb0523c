package catalog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A record of a catalog carries a hundred fields, of which a dozen matter here. The functions below
// find those dozen in one pass and leave the rest alone; what they pass over is checked for its
// brackets and quotes only.

// maxDepth bounds the nesting of one record.
const maxDepth = 64

// maxShift bounds the exponent of a number.
const maxShift = 20

// fields finds the values of the given keys in the object that text holds, as written; absent ones
// are nil, and of a repeated key the last one counts. It is false if text is no JSON object.
func fields(text []byte, keys []string, out [][]byte) bool {
	clear(out)
	i := space(text, 0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	if i = space(text, i+1); i < len(text) && text[i] == '}' {
		return space(text, i+1) == len(text)
	}
	for {
		from := i
		if i >= len(text) || text[i] != '"' {
			return false
		}
		if i = stringEnd(text, i); i < 0 {
			return false
		}
		key := text[from+1 : i-1]
		if i = space(text, i); i >= len(text) || text[i] != ':' {
			return false
		}
		from = space(text, i+1)
		if i = valueEnd(text, from); i < 0 {
			return false
		}
		for k := range keys {
			if string(key) == keys[k] {
				out[k] = text[from:i]
			}
		}
		more, next := comma(text, i, '}')
		if next < 0 || !more {
			return next >= 0 && space(text, next) == len(text)
		}
		i = next
	}
}

// elements calls each with every element of the array that text holds, as written. It is false if
// text is no JSON array.
func elements(text []byte, each func(element []byte)) bool {
	i := space(text, 0)
	if i >= len(text) || text[i] != '[' {
		return false
	}
	if i = space(text, i+1); i < len(text) && text[i] == ']' {
		return space(text, i+1) == len(text)
	}
	for {
		end := valueEnd(text, i)
		if end < 0 {
			return false
		}
		each(text[i:end])
		more, next := comma(text, end, ']')
		if next < 0 || !more {
			return next >= 0 && space(text, next) == len(text)
		}
		i = next
	}
}

// comma reads what stands between two members: a comma (more, and where the next begins) or the
// closing bracket (where the text goes on). next is -1 if it is neither.
func comma(text []byte, i int, closing byte) (more bool, next int) {
	if i = space(text, i); i >= len(text) {
		return false, -1
	}
	switch text[i] {
	case ',':
		return true, space(text, i+1)
	case closing:
		return false, i + 1
	}
	return false, -1
}

// space is the place of the first byte from i on that is not white space.
func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the place behind the string that begins with the quote at i, -1 if it has no end.
func stringEnd(text []byte, i int) int {
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

// valueEnd is the place behind the value that begins at i, -1 if there is none.
func valueEnd(text []byte, i int) int {
	var closing [maxDepth]byte
	depth := 0
	for i < len(text) {
		switch c := text[i]; c {
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
			i--
		case '{', '[':
			if depth == maxDepth {
				return -1
			}
			closing[depth] = c + 2 // in ASCII both pairs of brackets are two apart
			depth++
		case '}', ']':
			if depth == 0 || closing[depth-1] != c {
				return -1
			}
			depth--
		case ' ', '\n', '\t', '\r', ',', ':':
			if depth == 0 {
				return -1
			}
		default:
			i = wordEnd(text, i) - 1
		}
		if i++; depth == 0 {
			return i
		}
	}
	return -1
}

// wordEnd is the place behind a number, true, false or null.
func wordEnd(text []byte, i int) int {
	for i < len(text) {
		switch text[i] {
		case ' ', '\n', '\t', '\r', ',', ':', '"', '{', '}', '[', ']':
			return i
		}
		i++
	}
	return i
}

// absent says whether a value is missing or null.
func absent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// asText reads a string, or a number as it is written. Absent is "".
func asText(raw []byte) (string, bool) {
	switch {
	case absent(raw):
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

// asBool reads true or false. Absent is the default.
func asBool(raw []byte, byDefault bool) (value, ok bool) {
	switch {
	case absent(raw):
		return byDefault, true
	case string(raw) == "true":
		return true, true
	}
	return false, string(raw) == "false"
}

// asList reads an array of strings (or numbers), or a string that holds the JSON text of one.
// Absent is nil.
func asList(raw []byte) ([]string, bool) {
	if !absent(raw) && raw[0] == '"' {
		inner, ok := asText(raw)
		if !ok {
			return nil, false
		}
		raw = []byte(inner)
	}
	if absent(raw) {
		return nil, true
	}
	var list []string
	good := true
	array := elements(raw, func(element []byte) {
		s, ok := asText(element)
		good = good && ok && !absent(element)
		list = append(list, s)
	})
	return list, array && good
}

// asDecimal reads a number, or a string that holds one, in units of 10^-digits. It is false if the
// number is negative, not exact in those units, or beyond 10^15 of them. Absent is the default.
func asDecimal(raw []byte, digits int, byDefault int64) (int64, bool) {
	if absent(raw) {
		return byDefault, true
	}
	text, ok := asText(raw)
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
