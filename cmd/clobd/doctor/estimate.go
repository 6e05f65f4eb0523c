package doctor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
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
	ListCheck  float64 `json:"listCheckMicros"`      // of such a signature in a list of 15
	Stranger   float64 `json:"strangersCheckMicros"` // of one never seen
	Body       string  `json:"signatureBody"`        // the code that checks signatures here
	Go         string  `json:"go"`                   // the version that built this program
	Formula    string  `json:"formula"`
}

// Figures of nodes on two machines of two cores (Linux 6.18, ext4), both with lanes. On the AMD
// EPYC of README.md POST /order costs 86 µs of CPU, about 5 of them for the signature of a signer
// seen often, and in lists of 15 an order costs 0.31 to 0.42 times as much. On the other machine,
// where a message costs 1.46 times as much, an order costs 130 and in lists 57 µs, 6 and 2.5 of
// them for the signature. Without signatures, and divided by that factor, this is 81 and 85 µs, in
// lists 29 and 37. Other kinds of machines have not been compared.
const (
	referenceMessage = 13.5 // µs of a request and its answer over loopback
	singleRest       = 83.0 // µs of an order without its signature
	listRest         = 34.0
	postRest         = 190.0 // µs of POST /order, one at a time, beside the sync
	// writerRate is how many Commands a second the matcher and the journal take, on one core each.
	writerRate = 150_000
	// inFlight is how many Commands may wait for the disk at once: 4 frames of 256.
	inFlight = 1024
	// enoughInFlight fills the frames of a fast disk. With less each order costs more.
	enoughInFlight = 64
)

// formula says how an Estimate is computed, of the slowness, singleRest, listRest and
// referenceMessage.
const formula = "an order costs a core the check of its signature and %.2f times %.0f µs (in lists %.0f µs). " +
	"The factor is what a message over loopback costs here, divided by the %.1f µs of the machine " +
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
	e := &Estimate{Check: micros(m.checks.known), ListCheck: micros(m.checks.listed),
		Stranger: micros(m.checks.stranger), Body: m.checks.body, Go: runtime.Version()}
	slowness := micros(m.checks.message) / referenceMessage
	e.Formula = fmt.Sprintf(formula, slowness, singleRest, listRest, referenceMessage)
	sync, cores := m.syncs.at(0.5), m.usable()
	if m.demand != nil {
		cores *= 1 - m.demand.stolen
	}
	disk, writer := inFlight/sync.Seconds(), writerRate/slowness
	singles := cores * 1e6 / (e.Check + singleRest*slowness)
	lists := cores * 1e6 / (e.ListCheck + listRest*slowness)
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
		"The check of a signature takes %.1f µs, in a list of 15 %.1f µs, that of a signer never seen "+
		"%.1f µs: if those are many, it carries less.\nSignatures are checked in %s; the program was "+
		"built by %s.\nIt was computed like this: %s.\n",
		count(e.Singles), count(e.InFlight), count(e.Lists), of[e.Limit],
		short(time.Duration(e.PostMicros)*time.Microsecond), e.Check, e.ListCheck,
		e.Stranger, e.Body, e.Go,
		strings.ReplaceAll(e.Formula, ". ", ".\n"))
}

const (
	turn          = 50 * time.Millisecond
	knownTurns    = 12
	listTurns     = 12
	strangerTurns = 4
	messageTurns  = 6
	// messageSize is about that of an order with its headers.
	messageSize = 1 << 10
	// signers are so many that their tables do not stay in the smallest cache.
	signers = 16
	// introductions make a signer one that the Verifier knows well.
	introductions = 64
	// listSize is how many orders POST /orders takes at most.
	listSize = 15
)

// lists are as many orders of each signer as one list has.
type lists [signers][listSize]auth.Submission

// measureChecks lets all cores check signatures as the door does; nil if it cannot.
func measureChecks(workers int, withoutLanes bool) *checks {
	domains := auth.Domains(auth.ChainTest)
	orders, err := signLists(&domains[0])
	if err != nil {
		return nil
	}
	newVerifier := func() *auth.Verifier {
		v := auth.NewVerifier(domains)
		if withoutLanes {
			v.WithoutLanes()
		}
		return v
	}
	v := newVerifier()
	for range introductions {
		if !orders.verifyFirst(v) {
			return nil
		}
	}
	if !orders.verifyAll(v) {
		return nil
	}
	message, err := messageCost(workers)
	if err != nil {
		return nil
	}
	return &checks{
		message: message,
		known:   leastCost(workers, knownTurns, func() { orders.verifyFirst(v) }) / signers,
		listed:  leastCost(workers, listTurns, func() { orders.verifyAll(v) }) / signers / listSize,
		// The second order of a signer is checked with what the first one has left.
		stranger: leastCost(workers, strangerTurns, func() {
			orders.verifyFirst(newVerifier())
		}) / signers,
		body: v.Body(),
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

// verifyFirst verifies an order of each signer by itself, as POST /order does.
func (l *lists) verifyFirst(v *auth.Verifier) bool {
	for i := range l {
		s := &l[i][0]
		if _, err := v.Verify(s.Order, s.Signature, s.NegRisk); err != nil {
			return false
		}
	}
	return true
}

// verifyAll verifies a list of each signer, as POST /orders does.
func (l *lists) verifyAll(v *auth.Verifier) bool {
	for i := range l {
		list := l[i] // a copy: other workers verify the same
		v.VerifyAll(list[:])
		for k := range list {
			if list[k].Err != nil {
				return false
			}
		}
	}
	return true
}

// signLists signs a list by each of a few made-up signers.
func signLists(d *auth.Domain) (*lists, error) {
	all := new(lists)
	for i := range all {
		s, err := auth.NewSigner([32]byte{30: 1, 31: byte(i)})
		if err != nil {
			return nil, err
		}
		for k := range all[i] {
			o := &auth.Order{Version: 2, Salt: auth.WordOf(uint64(k + 1)), Side: engine.Buy,
				Maker: s.Address, Signer: s.Address, Token: engine.Token{31: 1}, MakerAmount: 1_000_000,
				TakerAmount: 2_000_000}
			signature, _, err := s.SignOrder(o, d)
			if err != nil {
				return nil, err
			}
			all[i][k] = auth.Submission{Order: o, Signature: signature, NegRisk: d.NegRisk}
		}
	}
	return all, nil
}
