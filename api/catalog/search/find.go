package search

import (
	"math/bits"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	// maxQuery bounds the text of a query, in bytes; of a longer one the beginning counts.
	maxQuery = 512
	// maxAsked bounds the words of a query; further ones are not searched.
	maxAsked = 32
	// few is how many documents are so few that what was typed may be mistyped.
	few = 10
	// maxWeighed and maxWeighedLong bound the documents of a level whose titles are compared with
	// the query; the latter if it has manyWords, which few documents match.
	maxWeighed     = 1 << 10
	maxWeighedLong = 1 << 12
	manyWords      = 4
	// minTypo is the shortest word that may be mistyped, in letters.
	minTypo = 3
)

// Query asks an Index.
type Query struct {
	// Text holds the words to search for: the first 32 of its first 512 bytes.
	Text string
	// Marks are required of a document, all of them.
	Marks []string
	// Offset and Limit say which part of what is found is wanted. Negative ones are zero.
	Offset, Limit int
}

// Found is what an Index found.
type Found struct {
	// IDs are the wanted part of the documents, the best first.
	IDs []int32
	// Total is how many documents match.
	Total int
}

// grade is how well a document matches: all words of the query do as well as this, or better.
type grade uint8

const (
	inTitle  grade = iota // as a word of the title
	anywhere              // as a word; here and above its singular or plural will do
	begins                // as the beginning of a word
	within                // as a part of a word
	mistyped              // as a word with a typo, or two words typed as one
	levels
)

// Find finds the documents that match all words of the query: each as a word (its singular or
// plural is as good), as the beginning or a part of one. If these are fewer than ten, words that
// stand in no document may be mistyped by one letter; if there are none, all may. If still none
// matches all of three words or more, those that match the most of them as they are typed are
// found, rare words counting more, if that is half of the query.
//
// They are ordered by how well their worst word matches, then by the title (the same words, the
// same words among others, other), active ones first, by volume and by id. Of more than a thousand
// that match equally well the titles of the first thousand are looked at (four thousand if the
// query has four words or more). A text without a word finds nothing.
func (s *Index) Find(q Query) Found {
	if s == nil {
		return Found{}
	}
	k := s.seekers.Get().(*seeker)
	defer s.seekers.Put(k)
	if !k.ask(q.Text) {
		return Found{}
	}
	k.looks = slices.Grow(k.looks[:0], len(s.parts))[:len(s.parts)]
	for i := range k.looks {
		k.looks[i].begin(&s.parts[i], q.Marks)
	}
	total := k.look(within)
	if total < few && k.doubt(false) {
		total = k.look(mistyped)
	}
	if total == 0 && k.doubt(true) {
		total = k.look(mistyped)
	}
	if total == 0 {
		total = k.most()
	}
	found := Found{Total: total}
	if from, limit := max(q.Offset, 0), max(q.Limit, 0); from < total && limit > 0 {
		found.IDs = k.pick(from, min(limit, total-from))
	}
	for i := range k.looks {
		k.looks[i].part, k.looks[i].allowed = nil, nil
	}
	return found
}

// seeker is the memory of one query after the other.
type seeker struct {
	split wordSplitter
	asked []string // the words of the query in order
	kinds []kind   // its different words
	looks []look   // by part
	top   grade    // the level up to which was searched
	some  bool     // whether some documents match some words only

	set, other []uint64 // bitmaps of the documents that match a word
	sums       [10][]uint64
	meant      []uint32 // by word of a segment: which of asked it matches, as bits
	touched    []uint32 // the words with bits in meant
	forms      [2]uint32
	hits       []uint64
}

// kind is a word of the query, and where it stands in it.
type kind struct {
	word, plural string // plural: or singular, if word is that; empty: there is none
	places       uint32
	doubtful     bool // may be mistyped
}

// look is what a query finds in one part.
type look struct {
	part    *searchPart
	allowed []uint64 // nil: all
	found   [levels][]uint64
	hits    []uint64
}

// ask takes the words of a text. It is false if there are none.
func (k *seeker) ask(text string) bool {
	k.asked, k.kinds, k.some = k.asked[:0], k.kinds[:0], false
	k.split.words(text[:min(len(text), maxQuery)], func(word []byte) bool {
		place := uint32(1) << len(k.asked)
		k.asked = append(k.asked, string(word))
		for i := range k.kinds {
			if k.kinds[i].word == string(word) {
				k.kinds[i].places |= place
				return len(k.asked) < maxAsked
			}
		}
		k.kinds = append(k.kinds, kind{word: string(word), plural: plural(string(word)), places: place})
		return len(k.asked) < maxAsked
	})
	return len(k.asked) > 0
}

// plural is the other number of a word, as far as an s makes it; empty for short words and others.
func plural(word string) string {
	const short = 3
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return ""
		}
	}
	singular, is := strings.CutSuffix(word, "s")
	switch {
	case len(singular) < short || strings.HasSuffix(singular, "s"):
		return ""
	case is:
		return singular
	}
	return word + "s"
}

// doubt makes words doubtful: those that stand in no document, or all. It says whether others are
// than before.
func (k *seeker) doubt(all bool) (others bool) {
	for i := range k.kinds {
		kind := &k.kinds[i]
		known := !all && slices.ContainsFunc(k.looks, func(l look) bool {
			return l.part.has(kind.word) || l.part.has(kind.plural)
		})
		doubtful := !known && mayBeTypo(kind.word)
		others = others || doubtful != kind.doubtful
		kind.doubtful = doubtful
	}
	return others
}

// has reports whether a document that counts has a word.
func (p *searchPart) has(word string) bool {
	at, ok := slices.BinarySearch(p.words, word)
	if !ok || p.living == nil {
		return ok
	}
	set := make([]uint64, p.width())
	p.add(set, uint32(at), uint32(at)+1)
	return and(set, p.living)
}

// begin makes l the look at a part, and finds the documents that have all marks.
func (l *look) begin(part *searchPart, marks []string) {
	l.part, l.allowed = part, slices.Clone(part.living)
	for _, mark := range marks {
		wide := part.wideMarks[mark]
		if wide == nil {
			wide = part.bitmap(part.marks[mark])
		}
		if l.allowed == nil {
			l.allowed = slices.Clone(wide)
		} else {
			and(l.allowed, wide)
		}
	}
}

// look finds the documents of each level up to top, and counts them.
func (k *seeker) look(top grade) (total int) {
	k.top = top
	for i := range k.looks {
		l := &k.looks[i]
		for at := range l.found {
			l.found[at] = sized(l.found[at], l.part.width())
		}
		k.lookAt(l)
		for at := range top + 1 {
			if l.allowed != nil {
				and(l.found[at], l.allowed)
			}
		}
		total += count(l.found[top])
	}
	return total
}

// lookAt fills l.found up to the top.
func (k *seeker) lookAt(l *look) {
	var empty [levels]bool
	for i := range k.kinds {
		k.match(l.part.segment, &k.kinds[i], func(at grade) {
			switch {
			case i == 0:
				copy(l.found[at], k.set)
			case !empty[at]:
				empty[at] = !and(l.found[at], k.set)
			}
		})
		if empty[k.top] {
			return
		}
	}
}

// match puts the documents that match a word into k.set, level by level up to the top, and calls
// each when it has got all of one.
func (k *seeker) match(s *segment, kind *kind, each func(at grade)) {
	word := kind.word
	k.set = sized(k.set, s.width())
	clear(k.set)
	low, high := s.beginning(word)
	forms := k.forms[:0]
	if low < high && s.words[low] == word {
		forms = append(forms, low)
	}
	if other, ok := slices.BinarySearch(s.words, kind.plural); ok {
		forms = append(forms, uint32(other))
	}
	for _, w := range forms {
		s.addTitled(k.set, w)
	}
	each(inTitle)
	for _, w := range forms {
		s.add(k.set, w, w+1)
	}
	each(anywhere)
	if short := s.short[word]; short != nil {
		or(k.set, short)
	} else {
		s.add(k.set, low, high)
	}
	each(begins)
	s.containing(word, func(w uint32) {
		if w < low || w >= high {
			s.add(k.set, w, w+1)
		}
	})
	each(within)
	if k.top < mistyped {
		return
	}
	if kind.doubtful {
		k.guess(s, word)
	}
	each(mistyped)
}

// guess adds the documents that match what a word may have been meant to be.
func (k *seeker) guess(s *segment, word string) {
	s.meant(word, func(w uint32) { s.add(k.set, w, w+1) })
	k.other = sized(k.other, s.width())
	s.apart(word, func(first, second uint32) {
		clear(k.other)
		s.add(k.other, first, first+1)
		both := make([]uint64, s.width())
		s.add(both, second, second+1)
		and(both, k.other)
		or(k.set, both)
	})
}

// beginning is the range of the words that begin with a prefix; the first is the prefix itself, if
// that is a word.
func (s *segment) beginning(prefix string) (low, high uint32) {
	from := sort.SearchStrings(s.words, prefix)
	n := sort.Search(len(s.words)-from, func(i int) bool {
		return !strings.HasPrefix(s.words[from+i], prefix)
	})
	return uint32(from), uint32(from + n)
}

// containing calls each with the words that contain a part of three bytes or more.
func (s *segment) containing(part string, each func(w uint32)) {
	var rarest []uint32
	for i := 0; i+3 <= len(part); i++ {
		at, ok := slices.BinarySearch(s.grams, gram(part[i:]))
		if !ok {
			return
		}
		list := s.gramWords[s.gramStart[at]:s.gramStart[at+1]]
		if i == 0 || len(list) < len(rarest) {
			rarest = list
		}
	}
	for _, w := range rarest {
		if strings.Contains(s.words[w], part) {
			each(w)
		}
	}
}

// meant calls each with the words that one with a typo may mean, itself among them.
func (s *segment) meant(typed string, each func(w uint32)) {
	letters := []rune(typed)
	shorter(typed, func(h uint32) {
		at, _ := slices.BinarySearch(s.nears, uint64(h)<<32)
		for ; at < len(s.nears) && uint32(s.nears[at]>>32) == h; at++ {
			if w := uint32(s.nears[at]); oneEdit(letters, []rune(s.words[w])) {
				each(w)
			}
		}
	})
}

// mayBeTypo says whether a word may be mistyped: not what is too short, and no number.
func mayBeTypo(word string) bool {
	return edited(word) && utf8.RuneCountInString(word) >= minTypo
}

// apart calls each with the pairs of words that are typed as one.
func (s *segment) apart(typed string, each func(first, second uint32)) {
	for i := 1; i < len(typed); i++ {
		if lone(typed[:i]) || lone(typed[i:]) {
			continue
		}
		first, ok := slices.BinarySearch(s.words, typed[:i])
		if !ok {
			continue
		}
		if second, ok := slices.BinarySearch(s.words, typed[i:]); ok {
			each(uint32(first), uint32(second))
		}
	}
}

// lone says whether a word is a single letter: too little to be what is left of another.
func lone(word string) bool { return len(word) == 1 && !isDigit(rune(word[0])) }

// most finds, among the documents that match not all words, those whose words have the most weight
// together, and counts them. There must be three words, and half of the weight.
func (k *seeker) most() (total int) {
	const words = 3
	if len(k.kinds) < words {
		return 0
	}
	k.top = mistyped
	k.doubt(false)
	weights, sum := k.weigh()
	best := max((sum+1)/2, 1)
	for i := range k.looks {
		l := &k.looks[i]
		for at := range l.found {
			clear(l.found[at])
		}
		weight := k.heaviest(l, weights)
		switch {
		case weight < best:
			clear(l.found[k.top])
		case weight > best:
			for j := range i {
				clear(k.looks[j].found[k.top])
			}
			best = weight
		}
	}
	for i := range k.looks {
		total += count(k.looks[i].found[k.top])
	}
	k.some = true
	return total
}

// weigh gives each word a weight from 1 up: one more if it is twice as rare. What nothing matches
// is hardly what was meant, and weighs half of the most; what makes a question of the others,
// nothing.
func (k *seeker) weigh() (weights []int, sum int) {
	counts := make([]int, len(k.kinds))
	all := 0
	for i := range k.looks {
		l := &k.looks[i]
		all += l.part.alive
		for j := range k.kinds {
			k.match(l.part.segment, &k.kinds[j], func(grade) {})
			if l.part.living != nil {
				and(k.set, l.part.living)
			}
			counts[j] += count(k.set)
		}
	}
	for i, n := range counts {
		if counts[i] = 1 + bits.Len(uint(all/max(n, 1))); n == 0 {
			counts[i] = (counts[i] + 1) / 2
		}
		if asks(k.kinds[i].word) {
			counts[i] = 0
		}
		sum += counts[i]
	}
	return counts, sum
}

// asks says whether a word only makes a question of the words around it.
func asks(word string) bool {
	switch word {
	case "a", "an", "and", "any", "are", "at", "be", "by", "can", "do", "does", "for", "from", "has",
		"have", "how", "if", "in", "is", "it", "many", "much", "of", "on", "or", "that", "the",
		"there", "this", "to", "was", "what", "when", "where", "which", "who", "why", "will",
		"with", "would":
		return true
	}
	return false
}

// heaviest finds the allowed documents whose words have the most weight together, and says how
// much that is.
func (k *seeker) heaviest(l *look, weights []int) (weight int) {
	for b := range k.sums {
		k.sums[b] = sized(k.sums[b], l.part.width())
		clear(k.sums[b])
	}
	for i := range k.kinds {
		k.match(l.part.segment, &k.kinds[i], func(grade) {})
		for b := range bits.Len(uint(weights[i])) {
			if weights[i]>>b&1 == 1 {
				k.sum(b)
			}
		}
	}
	found := l.found[k.top]
	for i := range found {
		found[i] = ^uint64(0)
		if l.allowed != nil {
			found[i] = l.allowed[i]
		}
	}
	k.other = sized(k.other, len(found))
	for b := len(k.sums) - 1; b >= 0; b-- {
		copy(k.other, found)
		if and(k.other, k.sums[b]) {
			copy(found, k.other)
			weight |= 1 << b
		}
	}
	return weight
}

// sum adds 1<<b to the numbers of the documents in k.set; k.sums holds the bits of them all.
func (k *seeker) sum(b int) {
	for i, carry := range k.set {
		for at := b; carry != 0; at++ {
			k.sums[at][i], carry = k.sums[at][i]^carry, k.sums[at][i]&carry
		}
	}
}

// addTitled adds the documents with word w in the title to a set.
func (s *segment) addTitled(set []uint64, w uint32) {
	for _, p := range s.postings[s.starts[w]:s.starts[w+1]] {
		set[p>>7] |= uint64(p&1) << (p >> 1 & 63)
	}
	for i := s.crowd(w); i < len(s.crowded) && s.crowded[i].word == w; i++ {
		or(set, s.crowded[i].titled)
	}
}

// add adds the documents with a word from low on and below high to a set.
func (s *segment) add(set []uint64, low, high uint32) {
	for _, p := range s.postings[s.starts[low]:s.starts[high]] {
		set[p>>7] |= 1 << (p >> 1 & 63)
	}
	for i := s.crowd(low); i < len(s.crowded) && s.crowded[i].word < high; i++ {
		or(set, s.crowded[i].other)
	}
}

// crowd is the place of the first crowded word from w on.
func (s *segment) crowd(w uint32) int {
	return sort.Search(len(s.crowded), func(i int) bool { return s.crowded[i].word >= w })
}

// sized is a bitmap of the given width, with anything in it.
func sized(set []uint64, width int) []uint64 {
	return slices.Grow(set[:0], width)[:width]
}

// and keeps what is in both sets in the first, and says whether that is anything.
func and(set, other []uint64) bool {
	left := uint64(0)
	other = other[:len(set)]
	for i := range set {
		set[i] &= other[i]
		left |= set[i]
	}
	return left != 0
}

// or adds the second set to the first.
func or(set, other []uint64) {
	other = other[:len(set)]
	for i := range set {
		set[i] |= other[i]
	}
}

// count is how many are in a set.
func count(set []uint64) (n int) {
	for _, word := range set {
		n += bits.OnesCount64(word)
	}
	return n
}
