package curve

import (
	"unsafe"

	"clobd/ingress/auth/lanes"
)

// comb holds the multiples of a point P from which any k·P is added up without doubling. Each digit
// of k to the base 2^width, from -2^(width-1) + 1 to 2^(width-1), is a term, and points holds the
// term or its opposite. It is never changed.
type comb struct {
	width  int
	points []point // d·2^(width·i)·P at i·2^(width-1) + d - 1
}

// first returns the first multiple, as the lanes read it. In both packages a point is four words of
// x and four of y.
func (c *comb) first() *lanes.Point { return (*lanes.Point)(unsafe.Pointer(&c.points[0])) }

// combDigits returns how many digits a scalar has, with one for the carry of the highest.
func combDigits(width int) int { return 256/width + 1 }

// newComb computes the multiples of p. A row holds those of one digit. Adding a row's last known
// multiple to each known one doubles their number; all rows do so together to share one inversion.
func newComb(p *point, width int) comb {
	rows, half := combDigits(width), 1<<(width-1)
	c := comb{width, make([]point, rows*half)}
	inverses, scratch := make([]element, rows*max(half/2, 1)), make([]element, rows*max(half/2, 1))
	c.powers(p, inverses, scratch)
	for known := 1; known < half; known *= 2 {
		batch := inverses[:rows*known]
		for i := range batch {
			row := c.points[i/known*half:]
			a, b := &row[i%known], &row[known-1]
			if batch[i].sub(&b.x, &a.x); a == b {
				batch[i].add(&a.y, &a.y)
			}
		}
		invertAll(batch, scratch)
		for i := range batch {
			row := c.points[i/known*half:]
			row[known+i%known] = row[i%known].plus(&row[known-1], &batch[i])
		}
	}
	return c
}

// powers computes the first multiple of each row.
func (c *comb) powers(p *point, inverses, scratch []element) {
	rows, half := combDigits(c.width), 1<<(c.width-1)
	sums := make([]sum, rows)
	sums[0].set(p)
	for i := 1; i < rows; i++ {
		sums[i] = sums[i-1]
		for range c.width {
			sums[i].double()
		}
	}
	for i := range sums {
		inverses[i] = sums[i].zzz
	}
	invertAll(inverses[:rows], scratch)
	for i := range sums {
		var z element // of zz = z² and zzz = z³
		z.mul(&inverses[i], &sums[i].zz)
		z.square(&z)
		q := &c.points[i*half]
		q.x.mul(&sums[i].x, &z)
		q.y.mul(&sums[i].y, &inverses[i])
	}
}

// plus returns a + b. inverse is 1/(b.x - a.x), or 1/(2·a.y) if a and b are the same pointer.
func (a *point) plus(b *point, inverse *element) point {
	var slope, t element
	if a == b {
		t.square(&a.x)
		slope.add(&t, &t)
		slope.add(&slope, &t)
	} else {
		slope.sub(&b.y, &a.y)
	}
	slope.mul(&slope, inverse)
	var q point
	q.x.square(&slope)
	q.x.sub(&q.x, &a.x)
	q.x.sub(&q.x, &b.x)
	t.sub(&a.x, &q.x)
	q.y.mul(&slope, &t)
	q.y.sub(&q.y, &a.y)
	return q
}

// term is one point of a sum, or its opposite.
type term struct {
	point *point
	minus bool
}

// terms appends the terms whose sum is k·P.
func (c *comb) terms(list []term, k *scalar) []term {
	half := uint64(1) << (c.width - 1)
	var carry uint64
	row := c.points
	for at := 0; at < 256; at += c.width {
		d := k.window(at, c.width) + carry
		carry = 0
		t := term{}
		if d > half {
			d, carry, t.minus = 2*half-d, 1, true
		}
		if d != 0 {
			t.point = &row[d-1]
			list = append(list, t)
		}
		row = row[half:]
	}
	if carry != 0 {
		list = append(list, term{point: &row[0]})
	}
	return list
}

// fetch reads a word of every term's point. The points are spread over megabytes: the cache misses
// of these reads overlap, those of the additions would not.
//
//go:noinline
func fetch(list []term) (touched uint64) {
	for i := range list {
		touched ^= list[i].point.x[0]
	}
	return touched
}

// total sets s, which must be zero, to the sum of the terms.
func (s *sum) total(list []term) {
	fetch(list)
	var zero element
	for i := range list {
		p := list[i].point
		if list[i].minus {
			opposite := point{x: p.x}
			opposite.y.sub(&zero, &p.y)
			p = &opposite
		}
		s.add(p)
	}
}
