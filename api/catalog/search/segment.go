package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxWords bounds the words of a document that are searched.
	maxWords = 1 << 14
	// maxTitle bounds the words of a title whose order is known.
	maxTitle = 64
	// crowd is the share of all documents from which on a word's are kept as a bitmap: or-ing one
	// costs as much as or-ing that many postings.
	crowd = 64
	// maxShort bounds the beginnings of words whose documents are kept, in bytes.
	maxShort = 2
	// minEdited and maxEdited bound the words that may be meant by one with a typo, in letters.
	minEdited, maxEdited = 2, 32
)

// segment is the immutable index of some documents. A document's number is its place among them in
// the order of Document: active ones first, then by volume. What matches equally well is therefore
// ranked by its number, and the best of a set are its lowest bits.
type segment struct {
	ids     []int32
	volumes []float64
	active  int      // documents below this number are active
	slots   []uint32 // open hash table: numbers of documents + 1 by their ids

	// The words in order, so that those with one prefix are neighbours, and their documents with
	// them: postings[starts[w]:starts[w+1]] are twice the numbers of the documents with word w, plus
	// 1 where it is in the title. Words of too many documents have none there, but a bitmap.
	words    []string
	starts   []uint32
	postings []uint32
	crowded  []crowdedWord
	short    map[string][]uint64 // documents by beginnings of one or two bytes that many have
	// The words of the title of document d in order: titles[titleStarts[d]:titleStarts[d+1]].
	titles      []uint32
	titleStarts []uint32
	// The words that contain three given bytes: gramWords[gramStarts[i]:gramStarts[i+1]] for
	// grams[i].
	grams     []uint32
	gramStart []uint32
	gramWords []uint32
	// nears finds words by what is left of them without one letter, and by all of them: the hash of
	// that in the high half, the word in the low one; sorted.
	nears []uint64
	// The documents by mark, in order; as bitmaps where these are smaller.
	marks     map[string][]uint32
	wideMarks map[string][]uint64
}

// crowdedWord is a word of very many documents.
type crowdedWord struct {
	word          uint32
	titled, other []uint64 // documents with the word in the title; with the word at all
}

// draft is a segment while it is made.
type draft struct {
	*segment
	split  wordSplitter
	known  map[string]uint32
	spelt  []string // by number of known, in the order of their first use
	seen   []uint32 // by number of known: the last document with the word, plus 1
	stream []uint32 // words of each document once, twice the number of known, plus 1 from the title
	ends   []uint32 // of each document in stream
}

// newSegment indexes documents of different ids.
func newSegment(docs []Document) *segment {
	order := make([]uint32, len(docs))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return docs[a].rank().compare(docs[b].rank())
	})
	d := &draft{
		segment: &segment{
			ids: make([]int32, len(docs)), volumes: make([]float64, len(docs)),
			titleStarts: make([]uint32, 1, len(docs)+1),
			marks:       map[string][]uint32{}, wideMarks: map[string][]uint64{},
		},
		known: map[string]uint32{}, ends: make([]uint32, 0, len(docs)),
	}
	for no, i := range order {
		d.take(uint32(no), &docs[i])
	}
	d.number()
	d.post()
	d.widen()
	d.shorten()
	d.cut()
	d.neighbours()
	d.find()
	return d.segment
}

// take reads one document.
func (d *draft) take(no uint32, doc *Document) {
	r := doc.rank()
	d.ids[no], d.volumes[no] = r.id, r.volume
	if doc.Active {
		d.active = int(no) + 1
	}
	first := len(d.stream)
	inTitle := uint32(1)
	each := func(word []byte) bool {
		w, ok := d.known[string(word)]
		if !ok {
			w = uint32(len(d.spelt))
			d.spelt = append(d.spelt, string(word))
			d.known[d.spelt[w]] = w
			d.seen = append(d.seen, 0)
		}
		start := int(d.titleStarts[no])
		if inTitle == 1 && len(d.titles)-start < maxTitle {
			d.titles = append(d.titles, w)
		}
		if d.seen[w] != no+1 {
			d.seen[w] = no + 1
			d.stream = append(d.stream, w<<1|inTitle)
		}
		return len(d.stream)-first < maxWords
	}
	d.split.words(doc.Title, each)
	inTitle = 0
	for _, text := range doc.Texts {
		d.split.words(text, each)
	}
	d.titleStarts = append(d.titleStarts, uint32(len(d.titles)))
	d.ends = append(d.ends, uint32(len(d.stream)))
	for _, mark := range doc.Marks {
		list := d.marks[mark]
		if len(list) == 0 || list[len(list)-1] != no {
			d.marks[mark] = append(list, no)
		}
	}
}

// number sorts the words, and gives each its place among them as its number.
func (d *draft) number() {
	order := make([]uint32, len(d.spelt))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(d.spelt[a], d.spelt[b]) })
	// One text for all words: sixteen bytes less for each, and nothing kept alive besides.
	joined := strings.Join(d.spelt, "")
	at := make([]int, len(d.spelt)+1)
	for i := range d.spelt {
		at[i+1] = at[i] + len(d.spelt[i])
	}
	d.words = make([]string, len(order))
	places := make([]uint32, len(order))
	for place, w := range order {
		d.words[place] = joined[at[w]:at[w+1]]
		places[w] = uint32(place)
	}
	for i, w := range d.titles {
		d.titles[i] = places[w]
	}
	for i, w := range d.stream {
		d.stream[i] = places[w>>1]<<1 | w&1
	}
	d.titles = slices.Clip(d.titles)
	d.known, d.spelt, d.seen = nil, nil, nil
}

// post fills postings and crowded from the stream.
func (d *draft) post() {
	counts := make([]uint32, len(d.words))
	for _, w := range d.stream {
		counts[w>>1]++
	}
	d.starts = make([]uint32, len(d.words)+1)
	bitmaps := map[uint32]crowdedWord{}
	for w, n := range counts {
		if int(n) > max(len(d.ids)/crowd, crowd) {
			c := crowdedWord{uint32(w), make([]uint64, d.width()), make([]uint64, d.width())}
			d.crowded = append(d.crowded, c)
			bitmaps[c.word] = c
			n = 0
		}
		d.starts[w+1] = d.starts[w] + n
	}
	d.postings = make([]uint32, d.starts[len(d.words)])
	next := slices.Clone(d.starts)
	from := uint32(0)
	for no, end := range d.ends {
		for _, w := range d.stream[from:end] {
			word, titled := w>>1, w&1
			if next[word] < d.starts[word+1] {
				d.postings[next[word]] = uint32(no)<<1 | titled
				next[word]++
				continue
			}
			c := bitmaps[word]
			c.titled[no/64] |= uint64(titled) << (no % 64)
			c.other[no/64] |= 1 << (no % 64)
		}
		from = end
	}
}

// widen keeps the marks of many documents as bitmaps.
func (d *draft) widen() {
	for mark, list := range d.marks {
		if len(list) <= 2*d.width() {
			d.marks[mark] = slices.Clip(list)
			continue
		}
		wide := make([]uint64, d.width())
		for _, no := range list {
			wide[no/64] |= 1 << (no % 64)
		}
		d.wideMarks[mark] = wide
		delete(d.marks, mark)
	}
}

// shorten fills short: whoever types a first letter asks for half of all postings.
func (d *draft) shorten() {
	d.short = map[string][]uint64{}
	for n := 1; n <= maxShort; n++ {
		for low := 0; low < len(d.words); {
			if len(d.words[low]) < n {
				low++
				continue
			}
			prefix := d.words[low][:n]
			_, high := d.beginning(prefix)
			if int(d.starts[high]-d.starts[low]) > 2*d.width() {
				set := make([]uint64, d.width())
				d.add(set, uint32(low), high)
				d.short[prefix] = set
			}
			low = int(high)
		}
	}
}

// width is the length of a bitmap of all documents.
func (s *segment) width() int { return (len(s.ids) + 63) / 64 }

// cut indexes the words by the runs of three bytes in them.
func (d *draft) cut() {
	var pairs []uint64
	for w, word := range d.words {
		for i := 0; i+3 <= len(word); i++ {
			pairs = append(pairs, uint64(gram(word[i:]))<<32|uint64(w))
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	d.gramWords = make([]uint32, len(pairs))
	for i, p := range pairs {
		if g := uint32(p >> 32); len(d.grams) == 0 || d.grams[len(d.grams)-1] != g {
			d.grams = append(d.grams, g)
			d.gramStart = append(d.gramStart, uint32(i))
		}
		d.gramWords[i] = uint32(p)
	}
	d.gramStart = append(d.gramStart, uint32(len(pairs)))
}

// gram is the first three bytes of a word as a number.
func gram(word string) uint32 {
	return uint32(word[0])<<16 | uint32(word[1])<<8 | uint32(word[2])
}

// neighbours fills nears.
func (d *draft) neighbours() {
	for w, word := range d.words {
		if edited(word) {
			shorter(word, func(h uint32) {
				d.nears = append(d.nears, uint64(h)<<32|uint64(w))
			})
		}
	}
	slices.Sort(d.nears)
	d.nears = slices.Clip(slices.Compact(d.nears))
}

// edited says whether the word may have been meant by one with a typo: a word of some letters, as a
// number that is one digit off is another number.
func edited(word string) bool {
	n := utf8.RuneCountInString(word)
	return n >= minEdited && n <= maxEdited && strings.ContainsFunc(word, func(c rune) bool {
		return !isDigit(c) && c != '.'
	})
}

// shorter calls each with the hashes of a word and of what is left of it without one letter. Two
// words that one edit turns into each other have one of these hashes in common.
func shorter(word string, each func(hash uint32)) {
	each(mix(word, ""))
	for i, c := range word {
		each(mix(word[:i], word[i+utf8.RuneLen(c):]))
	}
}

// mix hashes the text that two parts make: FNV-1a.
func mix(a, b string) uint32 {
	h := uint32(2166136261)
	for i := range len(a) {
		h = (h ^ uint32(a[i])) * 16777619
	}
	for i := range len(b) {
		h = (h ^ uint32(b[i])) * 16777619
	}
	return h
}

// find fills slots: at most half of them, so that a search for what is not there ends soon.
func (d *draft) find() {
	d.slots = make([]uint32, 2*len(d.ids)+1)
	for no, id := range d.ids {
		i := d.slot(id)
		for d.slots[i] != 0 {
			i = (i + 1) % len(d.slots)
		}
		d.slots[i] = uint32(no) + 1
	}
}

// slot is where an id is looked for first. Ids that follow each other lie apart.
func (s *segment) slot(id int32) int {
	const golden = 2654435769
	return int(uint64(uint32(id)*golden) * uint64(len(s.slots)) >> 32)
}

// document is the number of the document with an id.
func (s *segment) document(id int32) (no uint32, ok bool) {
	for i := s.slot(id); s.slots[i] != 0; i = (i + 1) % len(s.slots) {
		if no := s.slots[i] - 1; s.ids[no] == id {
			return no, true
		}
	}
	return 0, false
}

// rank is what orders documents that match equally well.
type rank struct {
	active bool
	volume float64
	id     int32
}

// rank is that of a document; a volume that is no number counts nothing.
func (d *Document) rank() rank {
	r := rank{d.Active, d.Volume, d.ID}
	if r.volume != r.volume {
		r.volume = 0
	}
	return r
}

// rank is that of a document of the segment.
func (s *segment) rank(no uint32) rank {
	return rank{int(no) < s.active, s.volumes[no], s.ids[no]}
}

// compare is negative if r comes first.
func (r rank) compare(other rank) int {
	switch {
	case r.active != other.active:
		if r.active {
			return -1
		}
		return 1
	case r.volume != other.volume:
		return cmp.Compare(other.volume, r.volume)
	}
	return cmp.Compare(r.id, other.id)
}
