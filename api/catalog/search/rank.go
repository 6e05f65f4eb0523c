package search

import (
	"math/bits"
	"slices"
)

// A hit is a document as a number that sorts: the level in the highest bits, then the class of the
// title, then the number of the document, which is its rank.
const (
	hitLevel = 48
	hitClass = 32
)

// The classes of titles: exactly the words of the query in its order; the same among other words;
// any other title. In most, each missing word adds to otherTitle.
const (
	sameTitle uint64 = iota
	phraseInTitle
	otherTitle
	lastTitle = 1<<(hitLevel-hitClass) - 1
)

// pick returns n documents from the given place on, the best first. There must be as many.
func (k *seeker) pick(from, n int) []int32 {
	for i := range k.looks {
		k.gather(&k.looks[i], from+n)
	}
	ids := make([]int32, 0, n)
	if len(k.looks) == 1 {
		l := &k.looks[0]
		for _, hit := range l.hits[from : from+n] {
			ids = append(ids, l.part.ids[uint32(hit)])
		}
		return ids
	}
	for i := range from + n {
		var best *look
		for j := range k.looks {
			if l := &k.looks[j]; l.next < len(l.hits) && (best == nil || l.before(best)) {
				best = l
			}
		}
		if i >= from {
			ids = append(ids, best.part.ids[uint32(best.hits[best.next])])
		}
		best.next++
	}
	return ids
}

// before reports whether the next hit of l comes before that of another part.
func (l *look) before(other *look) bool {
	a, b := l.hits[l.next], other.hits[other.next]
	if a>>hitClass != b>>hitClass {
		return a < b
	}
	return l.part.rank(uint32(a)).compare(other.part.rank(uint32(b))) < 0
}

// gather fills l.hits with the first n hits of a part in order; with all hits if they are fewer.
func (k *seeker) gather(l *look, n int) {
	hits := l.hits[:0]
	known, most := false, maxWeighed
	if len(k.asked) >= manyWords {
		most = maxWeighedLong
	}
	for at := range k.top + 1 {
		first := len(hits)
		if first >= n {
			break
		}
		base := uint64(at)<<hitLevel | otherTitle<<hitClass
		if k.some {
			base |= lastTitle << hitClass
		}
		for i, set := range l.found[at] {
			if at > 0 {
				set &^= l.found[at-1][i]
			}
			for ; set != 0; set &= set - 1 {
				hits = append(hits, base|uint64(64*i+bits.TrailingZeros64(set)))
			}
			if got := len(hits); got >= n && got-first >= most {
				break
			}
		}
		weighed := hits[first:min(len(hits), first+most)]
		if len(weighed) == 0 {
			continue
		}
		if !known {
			k.learn(l.part.segment)
			known = true
		}
		for i, hit := range weighed {
			weighed[i] = hit&^(lastTitle<<hitClass) | k.class(l.part.segment, uint32(hit))<<hitClass
		}
		slices.Sort(weighed)
	}
	l.hits, l.next = hits[:min(n, len(hits))], 0
}

// learn notes for each word of the segment which words of the query it matches.
func (k *seeker) learn(s *segment) {
	for _, w := range k.touched {
		k.meant[w] = 0
	}
	k.touched = k.touched[:0]
	k.meant = slices.Grow(k.meant[:0], len(s.words))[:len(s.words)]
	for i := range k.kinds {
		word := k.kinds[i].word
		note := func(w uint32) {
			k.meant[w] |= k.kinds[i].places
			k.touched = append(k.touched, w)
		}
		low, high := s.beginning(word)
		for w := low; w < high; w++ {
			note(w)
		}
		if other, ok := slices.BinarySearch(s.words, k.kinds[i].plural); ok {
			note(uint32(other))
		}
		s.containing(word, note)
		if k.top == mistyped && k.kinds[i].doubtful {
			s.meant(word, note)
		}
	}
}

// class returns the class of the title of a document.
func (k *seeker) class(s *segment, no uint32) uint64 {
	title := s.titles[s.titleStarts[no]:s.titleStarts[no+1]]
	n := len(k.asked)
	// Bit i of run says that the title so far ends with the first i+1 words of the query.
	var run, ever, met uint32
	for _, w := range title {
		m := k.meant[w]
		run = (run<<1 | 1) & m
		ever |= run
		met |= m
	}
	switch {
	case ever>>(n-1)&1 == 1 && len(title) == n:
		return sameTitle
	case ever>>(n-1)&1 == 1:
		return phraseInTitle
	case !k.some:
		return otherTitle
	}
	longer := min(max(len(title)-n, n-len(title)), 63)
	return otherTitle + uint64(64*(n-bits.OnesCount32(met))+longer)
}
