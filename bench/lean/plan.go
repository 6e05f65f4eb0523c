package lean

import (
	"math/rand/v2"
	"slices"
	"time"
)

// open reports whether requests are due at instants of their own.
func (l *Load) open() bool { return l.Rate > 0 || l.Due != nil }

// planned returns the load with all instants of an open loop fixed in Due, one for each request.
// short reports that there are fewer requests than the duration has room for.
func (l *Load) planned() (p Load, short bool) {
	p = *l
	switch {
	case l.Due != nil:
		p.Rate, p.Repeat = 0, false
		if l.Duration == 0 {
			return p, false
		}
		n, _ := slices.BinarySearch(l.Due, l.Duration)
		p.Due, p.Requests = l.Due[:n], l.Requests[:n]
		return p, n == len(l.Due)
	case l.Rate == 0:
		return p, false
	}
	p.Rate, p.Repeat, p.Requests, p.Start = 0, false, nil, time.Time{}
	p.Due = make([]time.Duration, 0, len(l.Requests))
	rng := rand.New(rand.NewPCG(l.Seed, 0x6172726976616c))
	burst := max(l.Burst, 1)
	mean := float64(time.Second) / l.Rate
	at := 0.0
	for n := 0; ; n++ {
		switch {
		case n%burst > 0: // with the one before
		case l.Poisson:
			at += rng.ExpFloat64() * mean * float64(burst)
		default:
			at = float64(n) * mean
		}
		if l.Duration > 0 && at >= float64(l.Duration) {
			break
		}
		if n >= len(l.Requests) && !l.Repeat {
			short = l.Duration > 0
			break
		}
		p.Due = append(p.Due, time.Duration(at))
	}
	if !l.Repeat {
		p.Requests = l.Requests[:len(p.Due)]
		return p, short
	}
	p.Requests = make([]Prepared, len(p.Due))
	for i := range p.Requests {
		p.Requests[i] = l.Requests[i%len(l.Requests)]
	}
	return p, false
}

// share is the part of a planned load for process k of n: the lanes k, k+n and so on. whose are the
// indices of its requests in the load.
func (l *Load) share(k, n int) (part Load, whose []int) {
	part = *l
	part.Requests, part.Due, part.Lanes = nil, nil, (l.Lanes-k+n-1)/n
	for i, r := range l.Requests {
		if int(r.Lane)%n != k {
			continue
		}
		r.Lane /= int32(n)
		part.Requests, whose = append(part.Requests, r), append(whose, i)
		if l.Due != nil {
			part.Due = append(part.Due, l.Due[i])
		}
	}
	return part, whose
}
