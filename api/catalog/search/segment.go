package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxWords = 1 << 14 // words of a document that are searched
	maxTitle = 64      // words of a title whose order counts
	maxShort = 2       // bytes of the prefixes in segment.short
	// A word that more than one in crowd documents have is kept as a bitmap: or-ing the bitmap costs
	// as much as or-ing that many postings.
	crowd = 64
	// minEdited and maxEdited bound the words that are found in spite of a typo, in letters.
	minEdited, maxEdited = 2, 32
)

// segment is the immutable index of some documents. They are numbered in the order of their rank:
// active ones first, then by volume. The best of a set of documents are therefore its lowest bits.
type segment struct {
	ids     []int32
	volumes []float64
	active  int              // documents below this number are active
	numbers map[int32]uint32 // by ID

	// The words are sorted, so that those with one prefix are neighbours.
	// postings[starts[w]:starts[w+1]] are twice the numbers of the documents with word w, plus 1 if
	// the title has w. Words of too many documents are in crowded instead.
	words    []string
	starts   []uint32
	postings []uint32
	crowded  []crowdedWord
	short    map[string][]uint64 // documents by frequent prefixes of one or two bytes
	// titles[titleStarts[d]:titleStarts[d+1]] are the words of the title of document d in order.
	titles      []uint32
	titleStarts []uint32
	// gramWords[gramStart[i]:gramStart[i+1]] are the words that contain the three bytes grams[i].
	grams     []uint32
	gramStart []uint32
	gramWords []uint32
	// nears is sorted. Its high halves are hashes of a word, and of the word without one letter; the
	// low halves are the number of the word.
	nears []uint64
	// The documents of each mark, in order; as bitmaps where these are smaller.
	marks     map[string][]uint32
	wideMarks map[string][]uint64
}

// crowdedWord is a word of very many documents.
type crowdedWord struct {
	word          uint32
	titled, other []uint64 // documents with the word in the title; anywhere
}

// draft is a segment while it is made.
type draft struct {
	*segment
	split  wordSplitter
	known  map[string]uint32 // words, numbered in the order of their first use
	seen   []uint32          // by number of known: the last document with the word, plus 1
	stream []uint32          // words of each document once: twice the number, plus 1 from the title
	ends   []uint32          // of each document in stream
}

// newSegment indexes documents with different IDs.
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
			numbers:     make(map[int32]uint32, len(docs)),
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
	return d.segment
}

// take reads one document.
func (d *draft) take(no uint32, doc *Document) {
	r := doc.rank()
	d.ids[no], d.volumes[no], d.numbers[r.id] = r.id, r.volume, no
	if doc.Active {
		d.active = int(no) + 1
	}
	first := len(d.stream)
	inTitle := uint32(1)
	each := func(word []byte) bool {
		w, ok := d.known[string(word)]
		if !ok {
			w = uint32(len(d.seen))
			d.known[string(word)] = w
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

// number sorts the words and renumbers them in that order.
func (d *draft) number() {
	d.words = slices.AppendSeq(make([]string, 0, len(d.known)), maps.Keys(d.known))
	slices.Sort(d.words)
	// One text for all words takes sixteen bytes less for each.
	joined := strings.Join(d.words, "")
	places := make([]uint32, len(d.words))
	for place, word := range d.words {
		places[d.known[word]] = uint32(place)
		d.words[place], joined = joined[:len(word)], joined[len(word):]
	}
	for i, w := range d.titles {
		d.titles[i] = places[w]
	}
	for i, w := range d.stream {
		d.stream[i] = places[w>>1]<<1 | w&1
	}
	d.titles = slices.Clip(d.titles)
	d.known, d.seen = nil, nil
}

// post fills postings and crowded from the stream.
func (d *draft) post() {
	counts := make([]uint32, len(d.words))
	for _, w := range d.stream {
		counts[w>>1]++
	}
	d.starts = make([]uint32, len(d.words)+1)
	for w, n := range counts {
		if int(n) > max(len(d.ids)/crowd, crowd) {
			d.crowded = append(d.crowded,
				crowdedWord{uint32(w), make([]uint64, d.width()), make([]uint64, d.width())})
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
			c := d.crowded[d.crowd(word)]
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
		d.wideMarks[mark] = d.bitmap(list)
		delete(d.marks, mark)
	}
}

// shorten fills short: a query of one letter asks for half of all postings.
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

// width returns the length of a bitmap of all documents.
func (s *segment) width() int { return (len(s.ids) + 63) / 64 }

func (s *segment) bitmap(list []uint32) []uint64 {
	set := make([]uint64, s.width())
	for _, no := range list {
		set[no/64] |= 1 << (no % 64)
	}
	return set
}

// cut fills grams.
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

// gram returns the first three bytes of a word as a number.
func gram(word string) uint32 {
	return uint32(word[0])<<16 | uint32(word[1])<<8 | uint32(word[2])
}

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

// edited reports whether a word can be found in spite of a typo. Numbers cannot: a number with
// another digit is another number.
func edited(word string) bool {
	n := utf8.RuneCountInString(word)
	return n >= minEdited && n <= maxEdited && strings.ContainsFunc(word, func(c rune) bool {
		return !isDigit(c) && c != '.'
	})
}

// shorter calls each with the hashes of a word and of the word without each of its letters. Two
// words that are one edit apart share one of these hashes.
func shorter(word string, each func(hash uint32)) {
	each(mix(word, ""))
	for i, c := range word {
		each(mix(word[:i], word[i+utf8.RuneLen(c):]))
	}
}

// mix returns the FNV-1a hash of a+b.
func mix(a, b string) uint32 {
	h := uint32(2166136261)
	for _, part := range [2]string{a, b} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	return h
}

// rank orders documents that match equally well.
type rank struct {
	active bool
	volume float64
	id     int32
}

// rank returns the rank of a document. A volume that is not a number counts as zero.
func (d *Document) rank() rank {
	r := rank{d.Active, d.Volume, d.ID}
	if r.volume != r.volume {
		r.volume = 0
	}
	return r
}

func (s *segment) rank(no uint32) rank {
	return rank{int(no) < s.active, s.volumes[no], s.ids[no]}
}

// compare is negative if r comes first.
func (r rank) compare(other rank) int {
	if r.active != other.active {
		if r.active {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(other.volume, r.volume), cmp.Compare(r.id, other.id))
}
