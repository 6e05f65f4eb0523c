package curve

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"clobd/ingress/auth/lanes"
	"clobd/scripts/setting"
)

// folk are some prepared keys with their secrets.
type folk struct {
	keys    []*Key
	secrets [][32]byte
	publics [][]byte
}

func newFolk(n int, r *rand.Rand) *folk {
	c := &folk{}
	for range n {
		secret := bytesOf(bigOf([4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}))
		public := Public(&secret)
		c.keys = append(c.keys, NewKey(public))
		c.secrets = append(c.secrets, secret)
		c.publics = append(c.publics, public)
	}
	return c
}

// claim is a good claim of one of the keys, and whose.
func (c *folk) claim(t testing.TB, r *rand.Rand) (Assertion, int) {
	t.Helper()
	who := r.IntN(len(c.keys))
	m := Assertion{Key: c.keys[who]}
	for i := range m.Digest {
		m.Digest[i] = byte(r.Uint32())
	}
	if !Sign(&m.Digest, &c.secrets[who], &m.RS) {
		t.Fatalf("no signature of %x", m.Digest)
	}
	return m, who
}

// damage bends a claim in one of its parts, or leaves it alone. r and s stay in range.
func (m *Assertion) damage(r *rand.Rand) (bent bool) {
	old := *m
	switch r.IntN(6) {
	case 0:
		m.RS[r.IntN(32)] ^= 1 << r.IntN(8)
	case 1:
		m.RS[32+r.IntN(32)] ^= 1 << r.IntN(8)
	case 2:
		m.RS[64] ^= 1
	case 3:
		m.Digest[r.IntN(32)] ^= 1 << r.IntN(8)
	default:
		return false
	}
	if !InRange(m.RS[:32]) || !InRange(m.RS[32:64]) {
		*m = old
		return false
	}
	return true
}

// TestBodies holds all bodies against each other on good and damaged signatures, CLOBD_SIZE of them
// in lists of 1 to 33, and one of sixteen against recovery.
func TestBodies(t *testing.T) {
	r := rand.New(rand.NewPCG(setting.Seed(t, 7), 7))
	size := setting.Size(t, 4000, 600)
	all, c := bodies(t), newFolk(6, r)
	accepted := 0
	for at := 0; at < size; {
		list := make([]Assertion, 1+r.IntN(33))
		first, _ := c.claim(t, r)
		want := make([]bool, len(list))
		for i := range list {
			if list[i] = first; i%4 == 0 {
				first, _ = c.claim(t, r) // most of a list is one signature, bent in different ways
			}
			want[i] = !list[i].damage(r)
			m := &list[i]
			if who := slices.Index(c.keys, m.Key); i%16 == 0 {
				key, ok := Recover(&m.Digest, &m.RS)
				if is := ok && string(key) == string(c.publics[who]); is != want[i] {
					t.Fatalf("%+v: recovery says %v, want %v", m, is, want[i])
				}
			}
			if want[i] {
				accepted++
			}
		}
		for _, body := range all {
			for i := range list {
				m := &list[i]
				if got := body.Signed(m.Key, &m.Digest, &m.RS); got != want[i] {
					t.Fatalf("lanes %v: %x of %x: %v, want %v", body.lanes, m.RS, m.Digest, got, want[i])
				}
				m.Signed = r.IntN(2) == 0
			}
			body.CheckAll(list)
			for i := range list {
				if m := &list[i]; m.Signed != want[i] {
					t.Fatalf("lanes %v, %d of %d: %x of %x: %v, want %v", body.lanes, i, len(list), m.RS,
						m.Digest, m.Signed, want[i])
				}
			}
		}
		at += len(list)
	}
	t.Logf("%d of %d accepted", accepted, size)
}

// TestSums holds the sums of the lanes against those in Go, for factors at which digits are extreme
// and random ones, CLOBD_SIZE of these.
func TestSums(t *testing.T) {
	all := bodies(t)
	if len(all) == 1 {
		t.SkipNow()
	}
	c := all[1]
	r := rand.New(rand.NewPCG(setting.Seed(t, 8), 8))
	keys := newFolk(lanes.Width, r).keys
	var numbers []scalar
	for _, v := range slices.Concat(edges(keyWidth), edges(baseWidth)) {
		b := bytesOf(v)
		numbers = append(numbers, scalarOf(b[:]))
	}
	for range setting.Size(t, 2000, 400) {
		b := bytesOf(bigOf([4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}))
		numbers = append(numbers, scalarOf(b[:]))
	}
	var group [lanes.Width]lanes.Factors
	var starts [lanes.Width]*lanes.Point
	known := 0
	for at := 0; at+lanes.Width <= len(numbers); at += lanes.Width {
		for i := range group {
			group[i] = lanes.Factors{K: numbers[at+i], L: numbers[r.IntN(len(numbers))]}
			starts[i] = keys[i].multiples.first()
		}
		var found [lanes.Width]lanes.Sum
		lanes.AddAll(c.base.first(), &starts, &group, &found)
		for i := range group {
			var want sum
			want.total(c.terms(nil, &keys[i].multiples, &group[i]))
			var alone lanes.Sum
			lanes.Add(c.base.first(), starts[i], &group[i], &alone)
			for _, one := range []lanes.Sum{found[i], alone} {
				got := sumOf(&one)
				if !got.finite {
					continue
				}
				known++
				if !want.finite || got.affine() != want.affine() {
					t.Fatalf("%x: %+v, want %+v", group[i], got.affine(), want)
				}
			}
		}
	}
	t.Logf("%d sums of %d compared", known, 2*len(numbers))
	if known < len(numbers) {
		t.Error("the lanes know too few sums")
	}
}

// TestExceptionsInLists puts signatures whose sums the lanes and the tree cannot add up between
// others: each answer is that of the signature alone.
func TestExceptionsInLists(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	keys := newFolk(3, r)
	var list []Assertion
	var want []bool
	add := func(m Assertion, signed bool) {
		list, want = append(list, m), append(want, signed)
	}
	factors := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(64),
		big.NewInt(-128), new(big.Int).Lsh(big.NewInt(1), 77)}
	for _, d := range []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(2)} {
		for _, b := range factors[1:] {
			opposite := new(big.Int).Neg(new(big.Int).Mul(b, d))
			for _, a := range append([]*big.Int{opposite}, factors...) {
				s, finite := forge(new(big.Int).Mod(a, bigOrder), b, d)
				k := NewKey(s.key)
				add(Assertion{Key: k, Digest: s.digest, RS: s.rs}, finite)
				s.rs[64] ^= 1
				add(Assertion{Key: k, Digest: s.digest, RS: s.rs}, false)
				m, _ := keys.claim(t, r)
				bent := m.damage(r)
				add(m, !bent)
			}
		}
	}
	for _, n := range []int{1, 3, 7, 8, 15, 16, len(list)} {
		for _, c := range bodies(t) {
			for at := 0; at < len(list); at += n {
				part := slices.Clone(list[at:min(at+n, len(list))])
				c.CheckAll(part)
				for i := range part {
					if part[i].Signed != want[at+i] {
						t.Errorf("lanes %v: claim %d in lists of %d: %v", c.lanes, at+i, n, part[i].Signed)
					}
				}
			}
		}
	}
}

// TestListsAllocate nothing once there is scratch.
func TestListsAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	keys := newFolk(2, r)
	list := make([]Assertion, 15)
	for i := range list {
		list[i], _ = keys.claim(t, r)
	}
	for _, c := range bodies(t) {
		c.CheckAll(list)
		if got := allocs(func() { c.CheckAll(list) }); got != 0 {
			t.Errorf("lanes %v: %v allocations", c.lanes, got)
		}
		m := &list[0]
		if got := allocs(func() { c.Signed(m.Key, &m.Digest, &m.RS) }); got != 0 {
			t.Errorf("lanes %v: %v allocations of one", c.lanes, got)
		}
	}
}

// TestProcessors: with 1 to 8 processors the answers are the same, and goroutines share a Checker.
func TestProcessors(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	keys := newFolk(4, r)
	list := make([]Assertion, 60)
	for i := range list {
		list[i], _ = keys.claim(t, r)
		list[i].damage(r)
	}
	answers := func(c *Checker, n int) (sum [32]byte) {
		mine := slices.Clone(list)
		h := sha256.New()
		for at := 0; at < len(mine); at += n {
			c.CheckAll(mine[at:min(at+n, len(mine))])
		}
		for i := range mine {
			alone := c.Signed(mine[i].Key, &mine[i].Digest, &mine[i].RS)
			_ = binary.Write(h, binary.BigEndian, []bool{mine[i].Signed, alone})
		}
		return [32]byte(h.Sum(nil))
	}
	want := answers(NewChecker(false), 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for procs := 1; procs <= 8; procs++ {
		runtime.GOMAXPROCS(procs)
		for _, c := range bodies(t) {
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					if got := answers(c, 1+5*i); got != want {
						t.Errorf("lanes %v, %d processors: other answers", c.lanes, procs)
					}
				})
			}
			group.Wait()
		}
	}
}

// BenchmarkBodies checks in turns by every body, alone and in lists of 15, of one signer and of
// 256, and reports the median of the ratios to a check alone in Go.
func BenchmarkBodies(b *testing.B) {
	r := rand.New(rand.NewPCG(12, 12))
	for _, signers := range []int{1, 256} {
		b.Run(fmt.Sprint("signers", signers), func(b *testing.B) {
			keys, list := newFolk(signers, r), make([]Assertion, 255)
			for i := range list {
				list[i], _ = keys.claim(b, r)
			}
			compareBodies(b, list)
		})
	}
}

func compareBodies(b *testing.B, list []Assertion) {
	var names []string
	var works []func(part []Assertion)
	for _, c := range bodies(b) {
		name := map[bool]string{false: "go", true: "lanes"}[c.lanes]
		names = append(names, name+"-alone", name+"-in-15")
		works = append(works, func(part []Assertion) {
			for i := range part {
				m := &part[i]
				m.Signed = c.Signed(m.Key, &m.Digest, &m.RS)
			}
		}, c.CheckAll)
	}
	ratios := make([][]float64, len(works))
	at := 0
	for b.Loop() {
		part := list[at : at+15]
		at = (at + 15) % len(list)
		var first time.Duration
		for i, work := range works {
			start := time.Now()
			work(part)
			took := time.Since(start)
			if i == 0 {
				first = took
			}
			ratios[i] = append(ratios[i], float64(took)/float64(first))
			for k := range part {
				if !part[k].Signed {
					b.Fatalf("%s refuses claim %d", names[i], k)
				}
			}
		}
	}
	for i, all := range ratios {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], names[i])
	}
}
