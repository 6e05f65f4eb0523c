package search

import (
	"slices"
	"strings"
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

// wordSplitter splits texts into words. One goroutine may use it at a time.
type wordSplitter struct {
	folded []rune
	word   []byte
}

// words calls each with the words of a text in order, until each returns false. A word is letters
// and digits without case and accents, and valid only during the call.
//
//	Orbán's        orbans      apostrophes go
//	U.S. and J.D.  us and jd   dots of initials go
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

// end hands the word read so far, if any, to each.
func (s *wordSplitter) end(each func(word []byte) bool) bool {
	if len(s.word) == 0 {
		return true
	}
	s.word = zeros(s.word)
	more := each(s.word)
	s.word = s.word[:0]
	return more
}

// fold fills s.folded with the text without case and accents. Invalid UTF-8 becomes a rune that is
// no letter.
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
			if plain := unaccented[c]; plain != "" {
				s.folded = append(s.folded, []rune(plain)...)
				continue
			}
		}
		s.folded = append(s.folded, c)
	}
}

// unaccented says how people type letters that Unicode does not take apart: it counts their strokes
// and ligatures as part of the letter.
var unaccented = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'þ': "th", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h",
	'ı': "i", 'ŧ': "t", 'ŋ': "n", 'ς': "σ",
}

func isWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsNumber(c) || unicode.Is(unicode.Mc, c)
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// joins reports whether the character at i, between two word characters, joins them to one word,
// and whether the word keeps the character.
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
	shift := 3 * (strings.IndexByte("kmb", word[last]) + 1)
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

// oneEdit reports whether two words differ by at most one letter: one more, one less, another one,
// or two neighbours in the other order.
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
		return slices.Equal(a, b[1:])
	case len(a) == 0 || slices.Equal(a[1:], b[1:]):
		return true
	}
	return len(a) > 1 && a[0] == b[1] && a[1] == b[0] && slices.Equal(a[2:], b[2:])
}
