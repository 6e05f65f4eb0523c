package sequencer

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"clobd/engine"
)

// rounds is how often A and B take turns in one comparison. Medians of interleaved rounds are the
// only figures that mean something on a machine whose speed changes by the minute.
const rounds = 11

// parcel is 64 bytes of payload, with its stamp padded to two cache lines of its own.
type parcel struct {
	words [8]uint64
	_     [56]byte
}

// transport is a way to move n numbered messages from several producers to one consumer. It
// returns the sum of all numbers, so that a lost message shows, and the time from the start of the
// producers to the last message.
type transport func(producers, n int) (sum uint64, took time.Duration)

// BenchmarkHandOff compares the ring with a Go channel of 1,024: millions of messages per second
// of each, and their ratio, by producers and payload. Both consumers copy the message out.
func BenchmarkHandOff(b *testing.B) {
	for _, payload := range []struct {
		name          string
		ring, channel transport
	}{
		{"64B", parcelsByRing, parcelsByChannel},
		{"command", commandsByRing, commandsByChannel},
	} {
		for _, producers := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/producers=%d", payload.name, producers), func(b *testing.B) {
				compare(b, payload.ring, payload.channel, producers)
			})
		}
	}
}

// compare runs both transports in turn and reports medians. b.N messages are spread over all.
func compare(b *testing.B, ring, channel transport, producers int) {
	n := max(b.N/(2*rounds)/producers, 1) * producers
	rate := func(move transport) float64 {
		each := uint64(n / producers)
		sum, took := move(producers, n)
		if sum != each*(each-1)/2*uint64(producers) {
			b.Fatalf("sum of %d messages is %d", n, sum)
		}
		return float64(n) / 1e6 / took.Seconds()
	}
	var ours, theirs []float64
	for range rounds {
		ours = append(ours, rate(ring))
		theirs = append(theirs, rate(channel))
	}
	b.ReportMetric(median(ours), "ring-M/s")
	b.ReportMetric(median(theirs), "channel-M/s")
	b.ReportMetric(median(ours)/median(theirs), "ratio")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// produce runs one goroutine per producer.
func produce(producers, n int, send func(i uint64)) *sync.WaitGroup {
	var group sync.WaitGroup
	for range producers {
		group.Go(func() {
			for i := range n / producers {
				send(uint64(i))
			}
		})
	}
	return &group
}

// mustClaim claims one slot. While the ring is full it yields, and soon sleeps, because the
// consumer may need this core.
func mustClaim[T any](r *ring[T]) uint64 {
	for tries := 0; ; tries++ {
		position, err := r.claim(1, uint64(len(r.slots)))
		if err == nil {
			return position
		}
		if tries < 8 {
			runtime.Gosched()
		} else {
			time.Sleep(5 * time.Microsecond)
		}
	}
}

// consume hands each value to take, in whole batches, until n have come.
func consume[T any](r *ring[T], n int, take func(*T)) {
	for got := 0; got < n; {
		r.wait()
		i := uint64(0)
		for i < engine.FrameCommands {
			v := r.peek(i)
			if v == nil {
				break
			}
			take(v)
			i++
		}
		r.release(i)
		got += int(i)
	}
}

func parcelsByRing(producers, n int) (sum uint64, took time.Duration) {
	r := newRing[parcel](4096)
	batch := make([][8]uint64, engine.FrameCommands)
	start := time.Now()
	group := produce(producers, n, func(i uint64) {
		position := mustClaim(r)
		v := r.at(position)
		for w := range v.words {
			v.words[w] = i
		}
		r.publish(position, 1)
	})
	at := 0
	consume(r, n, func(v *parcel) {
		batch[at%len(batch)] = v.words
		sum += batch[at%len(batch)][7]
		at++
	})
	took = time.Since(start)
	group.Wait()
	return sum, took
}

func parcelsByChannel(producers, n int) (sum uint64, took time.Duration) {
	c := make(chan [8]uint64, 1024)
	batch := make([][8]uint64, engine.FrameCommands)
	start := time.Now()
	group := produce(producers, n, func(i uint64) {
		var words [8]uint64
		for w := range words {
			words[w] = i
		}
		c <- words
	})
	for at := range n {
		batch[at%len(batch)] = <-c
		sum += batch[at%len(batch)][7]
	}
	took = time.Since(start)
	group.Wait()
	return sum, took
}

func commandsByRing(producers, n int) (sum uint64, took time.Duration) {
	r := newRing[entered](4096)
	batch := make([]engine.Command, engine.FrameCommands)
	start := time.Now()
	group := produce(producers, n, func(i uint64) {
		position := mustClaim(r)
		v := r.at(position)
		v.command = engine.Command{Kind: engine.Place, Size: engine.Size(i)}
		r.publish(position, 1)
	})
	at := 0
	consume(r, n, func(v *entered) {
		batch[at%len(batch)] = v.command
		sum += uint64(batch[at%len(batch)].Size)
		at++
	})
	took = time.Since(start)
	group.Wait()
	return sum, took
}

func commandsByChannel(producers, n int) (sum uint64, took time.Duration) {
	type message struct {
		command engine.Command
		_       *Call
	}
	c := make(chan message, 1024)
	batch := make([]engine.Command, engine.FrameCommands)
	start := time.Now()
	group := produce(producers, n, func(i uint64) {
		c <- message{command: engine.Command{Kind: engine.Place, Size: engine.Size(i)}}
	})
	for at := range n {
		m := <-c
		batch[at%len(batch)] = m.command
		sum += uint64(batch[at%len(batch)].Size)
	}
	took = time.Since(start)
	group.Wait()
	return sum, took
}

// BenchmarkHandOffLatency sends at a constant 100,000 messages per second and takes each
// message's latency from the time at which it should have been sent, so that a stall counts for
// all messages that it delays. It reports medians in nanoseconds.
func BenchmarkHandOffLatency(b *testing.B) {
	n := max(b.N/(2*rounds), 1)
	var ours, theirs []float64
	for range rounds {
		ours = append(ours, latencyByRing(n))
		theirs = append(theirs, latencyByChannel(n))
	}
	b.ReportMetric(median(ours), "ring-p50-ns")
	b.ReportMetric(median(theirs), "channel-p50-ns")
	b.ReportMetric(median(ours)/median(theirs), "ratio")
}

// pace calls send with each intended time, when it has come.
func pace(start time.Time, n int, send func(intended time.Duration)) {
	for i := range n {
		intended := time.Duration(i) * 10 * time.Microsecond
		for time.Since(start) < intended {
			runtime.Gosched()
		}
		send(intended)
	}
}

func latencyByRing(n int) float64 {
	r := newRing[parcel](4096)
	start := time.Now()
	go pace(start, n, func(intended time.Duration) {
		position := mustClaim(r)
		r.at(position).words[0] = uint64(intended)
		r.publish(position, 1)
	})
	latencies := make([]float64, 0, n)
	consume(r, n, func(v *parcel) {
		latencies = append(latencies, float64(time.Since(start)-time.Duration(v.words[0])))
	})
	return median(latencies)
}

func latencyByChannel(n int) float64 {
	c := make(chan [8]uint64, 1024)
	start := time.Now()
	go pace(start, n, func(intended time.Duration) { c <- [8]uint64{uint64(intended)} })
	latencies := make([]float64, 0, n)
	for range n {
		m := <-c
		latencies = append(latencies, float64(time.Since(start)-time.Duration(m[0])))
	}
	return median(latencies)
}

// BenchmarkSubmit measures the whole way of a Command without a disk: b.N Submits by several
// callers in a closed loop, over a memory.Journal that drops them. It also reports the mean batch.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := newRig(b, Options{})
			w.journal.Drop = true
			w.run()
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for k := range callers {
				group.Go(func() {
					c := engine.Command{Kind: engine.Link, Proof: make([]byte, 200)}
					for i := k; i < b.N; i += callers {
						c.ID[0]++
						if _, err := w.Submit(&c); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			w.close(b, nil)
			c := w.Counters()
			if c.Commands != uint64(b.N) {
				b.Fatalf("%d of %d journaled", c.Commands, b.N)
			}
			b.ReportMetric(float64(c.Commands)/float64(c.Frames), "commands/frame")
		})
	}
}
