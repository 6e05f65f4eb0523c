package search

import (
	"math/bits"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	maxQuery = 512 // bytes of a query that are searched
	maxAsked = 32  // words of a query that are searched
	minTypo  = 3   // letters of the shortest word that may be mistyped
	// Words may be mistyped only if fewer than few documents match otherwise.
	few = 10
	// The titles of the first maxWeighed documents of a level are compared with the query, of the
	// first maxWeighedLong if the query has manyWords, which few documents match.
	maxWeighed     = 1 << 10
	maxWeighedLong = 1 << 12
	manyWords      = 4
)

// Query asks an Index.
type Query struct {
	// Text holds the words to search for: the first 32 of its first 512 bytes.
	Text string
	// Marks must all be marks of a document.
	Marks []string
	// Offset and Limit choose a part of the documents found. Negative values count as zero.
	Offset, Limit int
}

// Found is the answer to a Query.
type Found struct {
	// IDs are the chosen part of the documents, the best first.
	IDs []int32
	// Total is the number of documents that match.
	Total int
}

// grade says how well a document matches: every word of the query matches this well, or better.
type grade uint8

const (
	inTitle  grade = iota // as a word of the title
	anywhere              // as a word; at both grades the singular or plural will do
	begins                // as the beginning of a word
	within                // within a word
	mistyped              // as a word with a typo, or two words typed as one
	levels
)

// Find finds the documents that match all words of the query: as a word, singular or plural, or as
// the beginning or a part of a word. If fewer than ten match, words that no document has may be
// mistyped by one letter; if none matches, all words may. If still none matches a query of three
// words or more, Find takes the documents that match the most of them, if that is half of the
// query; rare words count more. A text without a word finds nothing.
//
// The order is that of the worst matching word, then of the title (the words of the query alone,
// the same among others, other words), then active documents first, then volume, then ID. Find
// compares the titles of the first thousand documents that match equally well; four thousand for
// four words.
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

// seeker holds the memory that one query after another uses.
type seeker struct {
	split wordSplitter
	asked []string // the words of the query in order
	kinds []kind   // its different words
	looks []look   // by part
	top   grade    // the last level searched
	some  bool     // found are documents that match some words only

	set, other []uint64     // documents that match a word
	sums       [10][]uint64 // see sum
	meant      []uint32     // by word of a segment: which words of asked match, as bits
	touched    []uint32     // the words with bits in meant
	forms      [2]uint32
}

// kind is a word of the query.
type kind struct {
	word, plural string // see plural
	places       uint32 // of the word in the query, as bits
	doubtful     bool   // may be mistyped
}

// look holds the documents of one part that a query finds.
type look struct {
	part    *searchPart
	allowed []uint64 // nil: all
	found   [levels][]uint64
	hits    []uint64
	next    int // of hits
}

// ask reads the words of a text, and reports whether there are any.
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

// plural adds or removes the s of a plural. The result is empty for short words and for words with
// other characters than letters.
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

// doubt marks the words that no document has, or all words, as perhaps mistyped. It reports whether
// that changes any word.
func (k *seeker) doubt(all bool) (changed bool) {
	for i := range k.kinds {
		kind := &k.kinds[i]
		known := !all && slices.ContainsFunc(k.looks, func(l look) bool {
			return l.part.has(kind.word) || l.part.has(kind.plural)
		})
		doubtful := !known && edited(kind.word) &&
			utf8.RuneCountInString(kind.word) >= minTypo
		changed = changed || doubtful != kind.doubtful
		kind.doubtful = doubtful
	}
	return changed
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
// each when a level is complete.
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

// guess adds the documents with a word that the typed word may stand for, or with two words that it
// joins.
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

// beginning returns the range of the words with a prefix. If the prefix is a word, it comes first.
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

// meant calls each with typed and the words that are one edit away.
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

// apart calls each with the pairs of words that make typed.
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

// lone reports whether a word is a single letter, which is no half of typed.
func lone(word string) bool { return len(word) == 1 && !isDigit(rune(word[0])) }

// most finds and counts the documents whose matching words have the most weight together. The query
// must have three words, and the documents half of its weight.
func (k *seeker) most() (total int) {
	const words = 3
	if len(k.kinds) < words {
		return 0
	}
	k.top = mistyped
	k.doubt(false)
	weights, sum := k.weigh()
	best := max((sum+1)/2, 1)
	found := make([]int, len(k.looks))
	for i := range k.looks {
		l := &k.looks[i]
		for at := range l.found {
			clear(l.found[at])
		}
		found[i] = k.heaviest(l, weights)
		best = max(best, found[i])
	}
	for i, weight := range found {
		if weight == best {
			total += count(k.looks[i].found[k.top])
		} else {
			clear(k.looks[i].found[k.top])
		}
	}
	k.some = true
	return total
}

// weigh gives each word a weight from 1 up: one more for each halving of the documents that match.
// A word that nothing matches weighs half of the most. A word that only makes a question weighs 0.
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

// asks reports whether a word only makes a question of the words around it.
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

// heaviest finds the allowed documents whose words have the most weight together, and returns that
// weight.
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

// sum adds 1<<b to the weights of the documents in k.set; bit b of all weights is k.sums[b].
func (k *seeker) sum(b int) {
	for i, carry := range k.set {
		for at := b; carry != 0; at++ {
			k.sums[at][i], carry = k.sums[at][i]^carry, k.sums[at][i]&carry
		}
	}
}

// addTitled adds the documents with word w in the title to set.
func (s *segment) addTitled(set []uint64, w uint32) {
	for _, p := range s.postings[s.starts[w]:s.starts[w+1]] {
		set[p>>7] |= uint64(p&1) << (p >> 1 & 63)
	}
	for i := s.crowd(w); i < len(s.crowded) && s.crowded[i].word == w; i++ {
		or(set, s.crowded[i].titled)
	}
}

// add adds the documents with a word from low to below high to set.
func (s *segment) add(set []uint64, low, high uint32) {
	for _, p := range s.postings[s.starts[low]:s.starts[high]] {
		set[p>>7] |= 1 << (p >> 1 & 63)
	}
	for i := s.crowd(low); i < len(s.crowded) && s.crowded[i].word < high; i++ {
		or(set, s.crowded[i].other)
	}
}

// crowd returns the place of the first crowded word that is not before w.
func (s *segment) crowd(w uint32) int {
	return sort.Search(len(s.crowded), func(i int) bool { return s.crowded[i].word >= w })
}

// sized returns a bitmap of the given width with any content.
func sized(set []uint64, width int) []uint64 {
	return slices.Grow(set[:0], width)[:width]
}

// and removes from set what other lacks, and reports whether anything is left.
func and(set, other []uint64) bool {
	left := uint64(0)
	other = other[:len(set)]
	for i := range set {
		set[i] &= other[i]
		left |= set[i]
	}
	return left != 0
}

func or(set, other []uint64) {
	other = other[:len(set)]
	for i := range set {
		set[i] |= other[i]
	}
}

func count(set []uint64) (n int) {
	for _, word := range set {
		n += bits.OnesCount64(word)
	}
	return n
}
