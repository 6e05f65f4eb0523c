package doctor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
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

// Figures of a node on two cores (AMD EPYC, Linux 6.18, ext4), as README.md has them: POST /order
// costs 73 to 96 µs of CPU, 10 of them for the signature of a signer seen often, and in lists of 15
// an order costs 0.55 to 0.59 times as much. referenceMessage was fitted to busy hours of that
// machine, when a check took 17 µs, a message 14.7 and an order 91 to 113 (57 in lists); later runs
// there were within 15 %. Other kinds of machines have not been compared.
const (
	referenceMessage = 13.5 // µs of a request and its answer over loopback
	singleRest       = 75.0 // µs of an order without its signature
	listRest         = 38.0
	postRest         = 190.0 // µs of POST /order, one at a time, beside the sync
	// writerRate is how many Commands a second the matcher and the journal take, on one core each.
	writerRate = 150_000
	// inFlight is how many Commands may wait for the disk at once: 4 frames of 256.
	inFlight = 1024
	// enoughInFlight fills the frames of a fast disk. With less each order costs more.
	enoughInFlight = 64
)

// formula says how an Estimate is computed: %.2f is the slowness.
const formula = "an order costs a core the check of its signature and %.2f times 75 µs (in lists 38 µs). " +
	"The factor is what a message over loopback costs here, divided by the 13.5 µs of the machine " +
	"where whole nodes were measured. " +
	"At most 1,024 orders wait for one fsync, and the matcher takes 150,000/s divided by the factor. " +
	"The p50 is that of fsync and 190 µs times the factor"

// estimate computes the Estimate; nil if the disk or the cores were not measured.
//
//	slowness = µs of a message here / referenceMessage
//	orders/s = min(cores / (check + rest · slowness), inFlight / fsync p50, writerRate / slowness)
//	post p50 = fsync p50 + postRest · slowness
func (m *machine) estimate() *Estimate {
	if m.syncs == nil || m.checks == nil {
		return nil
	}
	e := &Estimate{Check: micros(m.checks.known), Stranger: micros(m.checks.stranger)}
	slowness := micros(m.checks.message) / referenceMessage
	e.Formula = fmt.Sprintf(formula, slowness)
	sync, cores := m.syncs.at(0.5), m.usable()
	if m.demand != nil {
		cores *= 1 - m.demand.stolen
	}
	disk, writer := inFlight/sync.Seconds(), writerRate/slowness
	singles := cores * 1e6 / (e.Check + singleRest*slowness)
	lists := cores * 1e6 / (e.Check + listRest*slowness)
	e.Singles, e.Lists = rough(min(disk, writer, singles)), rough(min(disk, writer, lists))
	switch min(disk, writer, lists) {
	case disk:
		e.Limit = "disk"
	case writer:
		e.Limit = "matcher"
	default:
		e.Limit = "cores"
	}
	post := micros(sync) + postRest*slowness
	e.PostMicros = rough(post)
	// Orders that wait are rate times wait; at full load an order waits for others, too.
	e.InFlight = max(rough(2*float64(e.Singles)*post/1e6), enoughInFlight)
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
		b.WriteString("no estimate of what this machine will carry: its disk or its cores could not be measured\n")
		return
	}
	of := map[string]string{"disk": "the disk is the limit", "cores": "the cores are the limit",
		"matcher": "the one matcher is the limit, more cores do not help"}
	fmt.Fprintf(b, "this machine will carry, as an estimate, with clients on other machines:\n"+
		"  %7s orders/s in POST /order, with %s or more in flight\n"+
		"  %7s orders/s in POST /orders of 15: %s\n"+
		"  %7s is the p50 of POST /order while there is room\n"+
		"The check of a signature takes %.1f µs, that of a signer never seen %.1f µs: if those are many, "+
		"it carries less.\nIt was computed like this: %s.\n",
		count(e.Singles), count(e.InFlight), count(e.Lists), of[e.Limit],
		short(time.Duration(e.PostMicros)*time.Microsecond), e.Check, e.Stranger,
		strings.ReplaceAll(e.Formula, ". ", ".\n"))
}

const (
	turn          = 50 * time.Millisecond
	knownTurns    = 12
	strangerTurns = 4
	messageTurns  = 6
	// messageSize is about that of an order with its headers.
	messageSize = 1 << 10
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
	message, err := messageCost(workers)
	if err != nil {
		return nil
	}
	return &checks{
		message: message,
		known:   leastCost(workers, knownTurns, func() { verifyAll(v, orders) }) / signers,
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

// messageCost is the processor time of a request and its answer over loopback, both sides together.
func messageCost(workers int) (time.Duration, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	go echo(ln)
	free := make(chan net.Conn, workers)
	for range workers {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return 0, err
		}
		defer c.Close()
		free <- c
	}
	var failed atomic.Bool
	cost := leastCost(workers, messageTurns, func() {
		c := <-free
		defer func() { free <- c }()
		var message [messageSize]byte
		_, err := c.Write(message[:])
		if err == nil {
			_, err = io.ReadFull(c, message[:])
		}
		if err != nil {
			failed.Store(true)
		}
	})
	if failed.Load() {
		return 0, errors.New("loopback connections break")
	}
	return cost, nil
}

// echo answers each connection with what it sends.
func echo(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var message [messageSize]byte
			for {
				if _, err := io.ReadFull(c, message[:]); err != nil {
					return
				}
				if _, err := c.Write(message[:]); err != nil {
					return
				}
			}
		}()
	}
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
