package search

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord bounds a word, in bytes; of a longer one the beginning counts.
	maxWord = 40
	// maxMantissa bounds the digits in front of a k, m or b that stands for zeros.
	maxMantissa = 9
)

// splitter of texts into the words that are searched for. It is used by one goroutine.
type wordSplitter struct {
	folded []rune
	word   []byte
}

// words calls each with the words of a text in order, until it says false. A word is letters and
// digits without case and accents; each sees it only during the call.
//
//	Orbán's        orbans      an apostrophe is not heard
//	U.S. and J.D.  us and jd   nor are the dots of initials
//	$1,234.50      1234.50     a number keeps its point
//	5.5% or -1.5   5.5 or 1.5
//	$100k, $2.5m   100000 2500000
func (s *wordSplitter) words(text string, each func(word []byte) bool) {
	s.fold(text)
	r := s.folded
	s.word = s.word[:0]
	for i := range r {
		switch {
		case isWord(r[i]):
			if len(s.word)+utf8.RuneLen(r[i]) <= maxWord {
				s.word = utf8.AppendRune(s.word, r[i])
			}
			continue
		case i > 0 && i+1 < len(r) && isWord(r[i-1]) && isWord(r[i+1]):
			if joined, kept := joins(r, i); joined {
				if kept && len(s.word) < maxWord {
					s.word = append(s.word, '.')
				}
				continue
			}
		}
		if !s.end(each) {
			return
		}
	}
	s.end(each)
}

// end hands on the word that was read, if any.
func (s *wordSplitter) end(each func(word []byte) bool) bool {
	if len(s.word) == 0 {
		return true
	}
	s.word = zeros(s.word)
	more := each(s.word)
	s.word = s.word[:0]
	return more
}

// fold fills s.folded with the text's letters without case and accents. What is no valid UTF-8
// becomes a rune that is no letter.
func (s *wordSplitter) fold(text string) {
	s.folded = s.folded[:0]
	ascii := true
	for i := range len(text) {
		ascii = ascii && text[i] < utf8.RuneSelf
	}
	if !ascii {
		text = norm.NFKD.String(text)
	}
	for _, c := range text {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c < utf8.RuneSelf:
		case unicode.Is(unicode.Mn, c):
			continue
		default:
			c = unicode.ToLower(c)
			if plain := unaccented(c); plain != "" {
				s.folded = append(s.folded, []rune(plain)...)
				continue
			}
		}
		s.folded = append(s.folded, c)
	}
}

// unaccented is how letters are typed that Unicode does not take apart: it calls their strokes and
// ligatures part of the letter. Empty: as they are.
func unaccented(c rune) string {
	switch c {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ø':
		return "o"
	case 'đ', 'ð':
		return "d"
	case 'þ':
		return "th"
	case 'ł':
		return "l"
	case 'ħ':
		return "h"
	case 'ı':
		return "i"
	case 'ŧ':
		return "t"
	case 'ŋ':
		return "n"
	case 'ς':
		return "σ"
	}
	return ""
}

func isWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsNumber(c) || unicode.Is(unicode.Mc, c)
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// joins says whether the character at i, which has word characters on both sides, is part of the
// word, and whether it is kept in it.
func joins(r []rune, i int) (joined, kept bool) {
	before, after := r[i-1], r[i+1]
	switch r[i] {
	case '\'', '’', 'ʼ', '`', '‘':
		return !isDigit(before) && !isDigit(after), false
	case '.':
		if isDigit(before) && isDigit(after) {
			return true, true
		}
		single := (i < 2 || !isWord(r[i-2])) && (i+2 == len(r) || !isWord(r[i+2]))
		return single && !isDigit(before) && !isDigit(after), false
	case ',':
		n := 0
		for j := i + 1; j < len(r) && isDigit(r[j]); j++ {
			n++
		}
		return n == 3 && isDigit(before), false
	}
	return false, false
}

// zeros writes 100k as 100000, 2.5m as 2500000, 1b as 1000000000; other words stay.
func zeros(word []byte) []byte {
	last := len(word) - 1
	shift := 0
	switch word[last] {
	case 'k':
		shift = 3
	case 'm':
		shift = 6
	case 'b':
		shift = 9
	}
	if shift == 0 || last == 0 || last > maxMantissa {
		return word
	}
	point := -1
	for i, c := range word[:last] {
		switch {
		case c == '.' && point < 0:
			point = i
		case c < '0' || c > '9':
			return word
		}
	}
	if point >= 0 {
		fraction := last - point - 1
		if fraction > shift {
			return word
		}
		copy(word[point:], word[point+1:last])
		shift -= fraction
		last--
	}
	word = word[:last]
	for range shift {
		word = append(word, '0')
	}
	return word
}

// oneEdit says whether two words differ by at most one letter: one more, one less, another one, or
// two neighbours in the other order.
func oneEdit(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case len(b)-len(a) > 1:
		return false
	case len(a) < len(b):
		return equal(a, b[1:])
	case len(a) == 0 || equal(a[1:], b[1:]):
		return true
	}
	return len(a) > 1 && a[0] == b[1] && a[1] == b[0] && equal(a[2:], b[2:])
}

func equal(a, b []rune) bool { return string(a) == string(b) }
