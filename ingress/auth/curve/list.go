package curve

import "clobd/ingress/auth/lanes"

// Assertion says that a key made a signature: r, s, v of a digest. Checker.CheckAll finds out
// whether that is true.
type Assertion struct {
	Key    *Key
	Digest [32]byte
	RS     [65]byte
	Signed bool // what Checker.Signed would say
}

// bunchSize is how many signatures share an inversion. Two vectors of lanes hold them.
const bunchSize = 2 * lanes.Width

// fewLanes is below how many sums each of them takes all lanes for itself: the lanes add up eight
// sums side by side in the time of six such.
const fewLanes = 7

// bunch is the scratch of signatures that are checked together.
type bunch struct {
	s       [bunchSize]scalar
	factors [bunchSize]lanes.Factors
	found   [bunchSize]lanes.Sum
	sums    [bunchSize]sum
	// open are the places in the list whose sum lies above r. Only the parity of y is left to tell.
	open          []int
	zzz, products [bunchSize]element
	room          [bunchSize]int // of open
	tree          *tree          // made when first used
}

// CheckAll sets Signed of each assertion. r and s must be in range and v 0 or 1. All share their
// inversions, so a signature costs less than alone. After the first calls CheckAll allocates
// nothing.
func (c *Checker) CheckAll(list []Assertion) {
	for len(list) > 1 {
		n := min(len(list), bunchSize)
		b := c.bunches.Get().(*bunch)
		c.check(b, list[:n])
		c.bunches.Put(b)
		list = list[n:]
	}
	for i := range list {
		m := &list[i]
		m.Signed = c.Signed(m.Key, &m.Digest, &m.RS)
	}
}

func (c *Checker) check(b *bunch, list []Assertion) {
	b.divide(c.order, list)
	if c.lanes {
		c.addInLanes(b, list)
	} else {
		c.addAsTree(b, list)
	}
	b.open = b.room[:0]
	for i := range list {
		m, s := &list[i], &b.sums[i]
		switch {
		case !s.finite: // or an exception that only the body of one signature adds up
			m.Signed = c.signed(&m.Key.multiples, &m.Digest, &m.RS)
		case s.above(&m.RS):
			b.zzz[len(b.open)] = s.zzz
			b.open = append(b.open, i)
		default:
			m.Signed = false
		}
	}
	n := len(b.open)
	if n == 0 {
		return
	}
	invertAll(b.zzz[:n], b.products[:n])
	for k, i := range b.open {
		list[i].Signed = b.sums[i].parityBy(&b.zzz[k]) == list[i].RS[64]
	}
}

// divide computes the factors of all sums with one inversion.
func (b *bunch) divide(order *inverter, list []Assertion) {
	var before [bunchSize]scalar // the product of all s before this one
	product := scalar{1}
	for i := range list {
		b.s[i] = scalarOf(list[i].RS[32:64])
		before[i] = product
		product.mul(&product, &b.s[i])
	}
	rest := scalar(order.invert(product))
	for i := len(list) - 1; i >= 0; i-- {
		var inverse scalar
		inverse.mul(&rest, &before[i])
		rest.mul(&rest, &b.s[i])
		b.factors[i] = factorsOf(&list[i].Digest, &list[i].RS, &inverse)
	}
}

// addInLanes computes the sums of a list: eight at a time, or a few one by one.
func (c *Checker) addInLanes(b *bunch, list []Assertion) {
	for at := 0; at < len(list); at += lanes.Width {
		group := list[at:min(at+lanes.Width, len(list))]
		found := (*[lanes.Width]lanes.Sum)(b.found[at:])
		if len(group) < fewLanes {
			for i := range group {
				lanes.Add(c.base.first(), group[i].Key.multiples.first(), &b.factors[at+i], &found[i])
			}
		} else {
			var keys [lanes.Width]*lanes.Point
			for i := range keys { // a lane without a signature adds up the last one's
				keys[i] = group[min(i, len(group)-1)].Key.multiples.first()
				b.factors[at+i] = b.factors[at+min(i, len(group)-1)]
			}
			lanes.AddAll(c.base.first(), &keys, (*[lanes.Width]lanes.Factors)(b.factors[at:]), found)
		}
		for i := range group {
			b.sums[at+i] = sumOf(&found[i])
		}
	}
}

// tree adds up points in pairs, and the sums in pairs. All pairs of a round share one inversion, so
// an addition costs six products instead of the ten of sum.add.
//
//	a b  c d  e        of each signature
//	 a+b  c+d  e       one inversion for all pairs of all signatures
//	  a+…+d    e       and so on
type tree struct {
	points         [bunchSize][most]point
	left           [bunchSize]int // how many points are left; 0 after an exception
	gaps, products [bunchSize * (most / 2)]element
	terms          [most]term
}

// addAsTree computes the sums of a list. One with an exception, two equal x in a pair, or no
// terms, is not finite.
func (c *Checker) addAsTree(b *bunch, list []Assertion) {
	if b.tree == nil {
		b.tree = new(tree)
	}
	t := b.tree
	for i := range list {
		t.plant(i, c.terms(t.terms[:0], &list[i].Key.multiples, &b.factors[i]))
	}
	for t.halve(len(list)) {
	}
	for i := range list {
		b.sums[i] = sum{}
		if t.left[i] > 0 {
			b.sums[i].set(&t.points[i][0])
		}
	}
}

// plant copies the terms of signature i.
func (t *tree) plant(i int, list []term) {
	fetch(list)
	var zero element
	for k := range list {
		p := &t.points[i][k]
		if *p = *list[k].point; list[k].minus {
			p.y.sub(&zero, &p.y)
		}
	}
	t.left[i] = len(list)
}

// halve adds the points of n signatures in pairs. It is false if none has two.
func (t *tree) halve(n int) bool {
	pairs := 0
	for i := range n {
		points, first := &t.points[i], pairs
		for k := 0; k+1 < t.left[i]; k += 2 {
			gap := &t.gaps[pairs]
			if gap.sub(&points[k+1].x, &points[k].x); gap.isZero() {
				t.left[i], pairs = 0, first
				break
			}
			pairs++
		}
	}
	if pairs == 0 {
		return false
	}
	invertAll(t.gaps[:pairs], t.products[:pairs])
	pairs = 0
	for i := range n {
		points, k := &t.points[i], 0
		for ; k+1 < t.left[i]; k += 2 {
			points[k/2] = points[k].plus(&points[k+1], &t.gaps[pairs])
			pairs++
		}
		if k < t.left[i] {
			points[k/2] = points[k]
		}
		t.left[i] = (t.left[i] + 1) / 2
	}
	return true
}
