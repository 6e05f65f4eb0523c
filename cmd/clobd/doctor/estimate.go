package doctor

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/engine"
	"clobd/ingress/auth"
)

// Estimate is what the machine will carry. It is computed from a few seconds of measuring parts and
// from figures of whole nodes on another machine: true within a factor of 1.5, not within 10 %.
type Estimate struct {
	Singles    int     `json:"ordersPerSecond"`      // one order in each POST /order
	Lists      int     `json:"ordersPerSecondLists"` // 15 orders in each POST /orders
	InFlight   int     `json:"inFlight"`             // how many singles must wait at once for that
	PostMicros int     `json:"postP50Micros"`        // of POST /order, one at a time
	Limit      string  `json:"limit"`                // what keeps lists from being faster
	Check      float64 `json:"checkMicros"`          // of a signature, of a signer seen often
	Stranger   float64 `json:"strangersCheckMicros"` // of one never seen
	Formula    string  `json:"formula"`
}

// Figures of a node on two cores (AMD EPYC, Linux 6.18, ext4), as README.md has them. A known
// signer's check took referenceCheck there, so the cost of an order in checks is the same on faster
// and slower cores.
const (
	referenceCheck = 10.0 // µs
	// singleChecks is the CPU of an order in POST /order: 73 to 96 µs. listChecks is that of one of
	// 15 in POST /orders: 0.55 to 0.59 times as much.
	singleChecks = 8.5
	listChecks   = 4.8
	// writerRate is how many Commands a second the matcher and the journal take, on one core each.
	writerRate = 150_000
	// postMicros is what POST /order takes beside the sync, one at a time: 340 µs with syncs of 150.
	postMicros = 190
	// inFlight is how many Commands may wait for the disk at once: 4 frames of 256.
	inFlight = 1024
)

const formula = "a single post costs the cores as much as 8.5 checks, an order of a list 4.8; at most " +
	"1,024 orders wait for one fsync, and the matcher takes 150,000/s where a check takes 10 µs; p50: " +
	"fsync p50 + 190 µs there"

// estimate computes the Estimate; nil if the disk or the cores were not measured.
//
//	orders/s = min(cores / check / singleChecks, inFlight / fsync p50, writerRate / slowness)
//	post p50 = fsync p50 + postMicros · slowness
//	slowness = µs of a check here / referenceCheck
func (m *machine) estimate() *Estimate {
	if m.syncs == nil || m.checks == nil {
		return nil
	}
	e := &Estimate{Formula: formula, Check: micros(m.checks.known),
		Stranger: micros(m.checks.stranger)}
	slowness := e.Check / referenceCheck
	sync := m.syncs.at(0.5)
	disk, writer := inFlight/sync.Seconds(), writerRate/slowness
	checks := m.usable() / m.checks.known.Seconds()
	if m.load != nil {
		checks *= 1 - m.load.stolen
	}
	cores := checks / listChecks
	switch least := min(disk, writer, cores); least {
	case disk:
		e.Limit = "disk"
	case writer:
		e.Limit = "matcher"
	default:
		e.Limit = "cores"
	}
	e.Lists = rough(min(disk, writer, cores))
	e.Singles = rough(min(disk, writer, checks/singleChecks))
	post := micros(sync) + postMicros*slowness
	e.PostMicros = rough(post)
	// Orders that wait are rate times wait, and at full load an order waits for others, too. With
	// less than 64 a frame has few orders, and each costs more than singleChecks.
	e.InFlight = max(rough(2*float64(e.Singles)*post/1e6), 64)
	return e
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// rough rounds to two figures: an estimate has no more.
func rough(x float64) int {
	if x < 10 {
		return int(math.Round(x))
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return int(math.Round(x/unit) * unit)
}

// write prints the verdict.
func (e *Estimate) write(b *strings.Builder) {
	if e == nil {
		b.WriteString("no estimate of what this machine will carry: its disk was not measured\n")
		return
	}
	of := map[string]string{"disk": "the disk is the limit", "cores": "the cores are the limit",
		"matcher": "the one matcher is the limit, more cores do not help"}
	fmt.Fprintf(b, "this machine will carry, as an estimate, with clients on other machines:\n"+
		"  %7s orders/s in POST /order, with %s or more in flight\n"+
		"  %7s orders/s in POST /orders of 15: %s\n"+
		"  %7s is the p50 of POST /order while there is room\n"+
		"because a signature takes %.1f µs to check, and %.1f µs of a signer never seen;\nby %s\n",
		count(e.Singles), count(e.InFlight), count(e.Lists), of[e.Limit],
		short(time.Duration(e.PostMicros)*time.Microsecond), e.Check, e.Stranger, e.Formula)
}

const (
	turn          = 50 * time.Millisecond
	knownTurns    = 12
	strangerTurns = 4
	// signers are so many that their tables do not stay in the smallest cache.
	signers = 16
	// introductions make a signer one that the Verifier knows well; fewer leave it a stranger.
	introductions = 64
	strangerMost  = 8
)

// signedOrder is an order with its signature.
type signedOrder struct {
	order     *auth.Order
	signature []byte
}

// measureChecks lets all cores check signatures as the door does; nil if it cannot.
func measureChecks(workers int) *checks {
	domains := auth.Domains(auth.ChainTest)
	orders, err := signOrders(domains)
	if err != nil {
		return nil
	}
	v := auth.NewVerifier(domains)
	for range introductions {
		if !verifyAll(v, orders) {
			return nil
		}
	}
	return &checks{
		known: leastCost(workers, knownTurns, func() { verifyAll(v, orders) }) / signers,
		stranger: leastCost(workers, strangerTurns, func() {
			v := auth.NewVerifier(domains)
			for range strangerMost {
				verifyAll(v, orders)
			}
		}) / signers / strangerMost,
	}
}

// leastCost is the processor time of one call of work, of the best turn. Others on these cores, and
// on their twins, make a turn slower; referenceCheck is without them.
func leastCost(workers, turns int, work func()) time.Duration {
	least := costOf(workers, work)
	for range turns - 1 {
		least = min(least, costOf(workers, work))
	}
	return least
}

// costOf is the processor time of one call of work, while all workers repeat it for one turn. The
// time that other programs have the cores is no part of it.
func costOf(workers int, work func()) time.Duration {
	var done atomic.Int64
	var working sync.WaitGroup
	start, before := time.Now(), ownTime()
	for range workers {
		working.Go(func() {
			for first := true; first || time.Since(start) < turn; first = false {
				work()
				done.Add(1)
			}
		})
	}
	working.Wait()
	return (ownTime() - before) / time.Duration(done.Load())
}

// ownTime is the processor time that this process has had.
func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func verifyAll(v *auth.Verifier, orders []signedOrder) bool {
	for _, s := range orders {
		if _, err := v.Verify(s.order, s.signature, false); err != nil {
			return false
		}
	}
	return true
}

// signOrders signs an order by each of a few made-up signers.
func signOrders(domains []auth.Domain) (orders []signedOrder, err error) {
	for i := range byte(signers) {
		s, err := auth.NewSigner([32]byte{30: 1, 31: i})
		if err != nil {
			return nil, err
		}
		o := &auth.Order{Version: 2, Side: engine.Buy, Maker: s.Address, Signer: s.Address,
			Token: engine.Token{31: 1}, MakerAmount: 1_000_000, TakerAmount: 2_000_000}
		for d := range domains {
			signature, _, err := s.SignOrder(o, &domains[d])
			if err == nil {
				orders = append(orders, signedOrder{o, signature})
				break
			}
		}
	}
	return orders, nil
}
