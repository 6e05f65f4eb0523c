package search

import (
	"math/bits"
	"slices"
)

// A hit is a document in the order in which it is found: the level in the highest bits, then the
// class of its title, then its number, which is its rank.
const (
	hitLevel = 48
	hitClass = 32
)

// The classes of titles: they have the words of the query in its order and no others; among others;
// or not. Where not all words match, what is missing adds to the last.
const (
	sameTitle uint64 = iota
	phraseInTitle
	otherTitle
	lastTitle = 1<<(hitLevel-hitClass) - 1
)

// pick is a part of what was found, the best first. There must be as many.
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
			if l := &k.looks[j]; len(l.hits) > 0 && (best == nil || l.before(best)) {
				best = l
			}
		}
		if i >= from {
			ids = append(ids, best.part.ids[uint32(best.hits[0])])
		}
		best.hits = best.hits[1:]
	}
	return ids
}

// before says whether the first hit of l comes before that of another part.
func (l *look) before(other *look) bool {
	a, b := l.hits[0], other.hits[0]
	if a>>hitClass != b>>hitClass {
		return a < b
	}
	return l.part.rank(uint32(a)).compare(other.part.rank(uint32(b))) < 0
}

// gather puts the first n hits of a part into l.hits, in order; all if they are not as many.
func (k *seeker) gather(l *look, n int) {
	k.hits = k.hits[:0]
	known, most := false, maxWeighed
	if len(k.asked) >= manyWords {
		most = maxWeighedLong
	}
	for at := range k.top + 1 {
		first := len(k.hits)
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
				k.hits = append(k.hits, base|uint64(64*i+bits.TrailingZeros64(set)))
			}
			if got := len(k.hits); got >= n && got-first >= most {
				break
			}
		}
		weighed := k.hits[first:min(len(k.hits), first+most)]
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
	l.hits = append(l.hits[:0], k.hits[:min(n, len(k.hits))]...)
	k.forget()
}

// learn notes for each word of the segment which words of the query it matches.
func (k *seeker) learn(s *segment) {
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

// forget makes k.meant all zeros again.
func (k *seeker) forget() {
	for _, w := range k.touched {
		k.meant[w] = 0
	}
	k.touched = k.touched[:0]
}

// class is how well the title of a document matches the query.
func (k *seeker) class(s *segment, no uint32) uint64 {
	title := s.titles[s.titleStarts[no]:s.titleStarts[no+1]]
	n := len(k.asked)
	// Bit i of run: the words of the title up to here end in the first i+1 words of the query.
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
