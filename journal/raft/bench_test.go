package raft

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkAgree commits frames of 100 Commands with three members in one process, whose disks are
// three folders of this machine, over TCP with TLS, with a number of frames in flight.
func BenchmarkAgree(b *testing.B) {
	for _, window := range []int{1, 4, 8} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) { benchCommit(b, window) })
	}
}

func benchCommit(b *testing.B, window int) {
	c := &cluster{t: b, up: map[uint64]*Peer{}}
	for id := range uint64(3) {
		words, ballot, err := genesis(engine.Head{}, 1, 2, 3)
		if err != nil {
			b.Fatal(err)
		}
		c.put(&box{t: b, id: id + 1, fs: vfs.Default, dir: b.TempDir(), leads: make(chan *Lead, 100)},
			words, ballot)
	}
	defer func() {
		for _, x := range c.nodes {
			c.stop(x)
		}
	}()
	c.connect()
	_, w := c.leader(nil)
	frames := make([]*engine.Frame, b.N)
	bytes := 0
	for i := range frames {
		frames[i] = w.batch(100)
		bytes += len(frames[i].Bytes)
	}
	took := make([]time.Duration, b.N)
	begun := make(chan time.Time, window)
	ended := make(chan error, 1)
	b.ResetTimer()
	start := time.Now()
	slots := make(chan struct{}, window)
	go func() {
		for i, f := range frames {
			at := <-begun
			if err := w.Wait(f.No); err != nil {
				ended <- err
				return
			}
			took[i] = time.Since(at)
			<-slots
		}
		ended <- nil
	}()
	for _, f := range frames {
		slots <- struct{}{}
		begun <- time.Now()
		if err := w.Append(f); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	rate := float64(b.N*100) / time.Since(start).Seconds()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(rate/1000, "kcmd/s")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/frame")
	b.ReportMetric(took[b.N/2].Seconds()*1000, "ms-p50")
	b.ReportMetric(took[b.N*99/100].Seconds()*1000, "ms-p99")
}

// batch makes a frame of n Commands as large as signed orders are. Nobody replays it.
func (w *scribe) batch(n int) *engine.Frame {
	f := &engine.Frame{Engine: engine.Version, Epoch: w.Term, No: w.head.Frame + 1,
		First: w.head.Sequence + 1, Time: w.head.Time + 1}
	for i := range n {
		f.Commands = append(f.Commands, engine.Command{Kind: engine.Place, Market: 1, Wallet: 1, Owner: 1,
			Size: engine.Unit, Cash: engine.Unit / 2, ID: engine.OrderID{byte(i), byte(f.No)},
			Proof: make([]byte, 65)})
		f.Ends = append(f.Ends, 0)
	}
	f.Encode(w.head.Hash)
	w.head = f.Head()
	return f
}
