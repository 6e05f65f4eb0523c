package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"clobd/ingress/auth"
)

// machine is what was measured. A nil pointer is what this system does not tell.
type machine struct {
	folder  string        // that was measured: the data folder, or its nearest parent
	exists  bool          // it is the data folder
	holder  int           // the process of a node that runs in it; 0: there is none
	newest  time.Duration // how far the folder's last write is ahead of the clock
	syncs   *syncs
	failed  error // why there are no syncs
	cores   int   // that this process may run on
	checks  *checks
	vault   error
	sealed  error
	shift   time.Duration // by which the wall clock moved against the monotonic one
	back    time.Duration // by which it went backwards at once, at most
	ring    bool          // io_uring works
	mount   *mount
	room    *room
	clock   *discipline
	limits  *limits
	quota   *quota
	demand  *demand
	hiccups *hiccups
	memory  *memory
	kernel  *kernel
}

// syncs are the times of one write with its sync, in order of length.
type syncs []time.Duration

// at is the time that a share of the syncs did not exceed.
func (s syncs) at(share float64) time.Duration {
	return s[min(int(share*float64(len(s))), len(s)-1)]
}

// hiccups is how late a thread woke that slept for 1 ms each.
type hiccups struct{ p99, longest time.Duration }

// checks is what parts of an order's way cost a core here, while all of them are at work.
type checks struct {
	message  time.Duration // a request and its answer over loopback
	known    time.Duration // of a signature by a signer that the node has seen often
	listed   time.Duration // of such a signature in a list of 15
	stranger time.Duration // of one by a signer that the node has not seen
	body     string        // what checks the signatures
}

// room is what a user without privileges may still write on a disk.
type room struct {
	free   int64
	files  int64 // that may still be made; only if there is a limit
	capped bool  // there is
}

// discipline is what the kernel knows about its clock.
type discipline struct {
	synced   bool
	maxError time.Duration
	offset   time.Duration
}

// kernel holds settings of the whole machine. An empty text, or -1, is one that was not found.
type kernel struct {
	release    string
	hugePages  string // always, madvise or never
	ringSwitch string // kernel.io_uring_disabled
	overcommit int
	swappiness int
	backlog    int
	ports      [2]int // the first and the last port of outgoing connections
}

const (
	// probeBlock is how many bytes the probe writes before each sync. A write of the journal has as
	// many or more.
	probeBlock = 4 << 10
	// probeSize is the size of the probe's file. It is written before, as the journal's logs are.
	probeSize = 4 << 20
	// probeRoom must be free: a probe must not be what fills a node's disk.
	probeRoom = 16 * probeSize
	// hangTime is how much longer than planned the probe may take before the disk is said to hang.
	hangTime = 10 * time.Second
)

var errNoRoom = fmt.Errorf("less than %s are free, which is too little to measure", size(probeRoom))

// measure takes a few seconds. The disk is measured while the cores are idle, the cores afterwards.
func measure(ctx context.Context, o *Options) *machine {
	m := &machine{cores: runtime.NumCPU()}
	m.folder, m.exists = nearest(o.Data)
	if m.exists {
		m.newest = time.Until(lastWrite(o.Data))
	}
	m.survey(o)
	demanded := watchDemand()
	m.syncs, m.failed = m.probe(ctx, o.During+hangTime, func(ctx context.Context) (syncs, error) {
		if m.room != nil && m.room.free < probeRoom {
			return nil, errNoRoom
		}
		return probeSyncs(ctx, m.folder, o.During)
	})
	if ctx.Err() == nil {
		m.checks = measureChecks(runtime.GOMAXPROCS(0), o.WithoutLanes)
	}
	m.demand = demanded()
	_, m.vault = auth.NewVault()
	if o.Seal != nil {
		m.sealed = o.Seal()
	}
	return m
}

// nearest is a folder's path, or that of its nearest parent that exists, without links.
func nearest(path string) (folder string, exists bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return ".", false
	}
	for exists = true; ; exists = false {
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			if err != nil {
				real = path
			}
			return real, exists
		}
		path = filepath.Dir(path)
	}
}

// lastWrite is the latest time of any file of a node's folder, or the zero time.
func lastWrite(data string) (last time.Time) {
	for _, pattern := range []string{"*", "journal/*", "catalog/*"} {
		names, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			continue
		}
		for _, name := range names {
			if about, err := os.Lstat(name); err == nil && about.ModTime().After(last) {
				last = about.ModTime()
			}
		}
	}
	return last
}

// probe measures the disk, for at most a time, and beside it the clocks and how late threads wake.
func (m *machine) probe(ctx context.Context, most time.Duration,
	disk func(context.Context) (syncs, error),
) (*syncs, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	type result struct {
		times syncs
		err   error
	}
	done, stop := make(chan result, 1), make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { m.shift, m.back = watchClocks(stop, clocks()) })
	beside.Go(func() { m.hiccups = watchHiccups(stop) })
	go func() {
		times, err := disk(ctx)
		done <- result{times, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = errors.New("the disk hangs: a sync has not ended")
		select { // after a signal the probe ends with the sync that it waits for, and cleans up
		case r = <-done:
		case <-time.After(time.Second):
		}
	}
	close(stop)
	beside.Wait()
	if r.err != nil {
		return nil, r.err
	}
	return &r.times, nil
}

// probeSyncs overwrites a file block by block and syncs each, as the journal does with its logs.
func probeSyncs(ctx context.Context, folder string, during time.Duration) (times syncs, err error) {
	f, err := os.CreateTemp(folder, "clobd-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := f.Write(make([]byte, probeSize)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	block := slices.Repeat([]byte{1}, probeBlock)
	for start, at := time.Now(), int64(0); ; at = (at + probeBlock) % probeSize {
		begun := time.Now()
		if len(times) > 0 && (begun.Sub(start) > during || ctx.Err() != nil) {
			break
		}
		if _, err := f.WriteAt(block, at); err != nil {
			return nil, err
		}
		if err := syncContent(f); err != nil {
			return nil, fmt.Errorf("sync %s: %w", f.Name(), err)
		}
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	return times, nil
}

// clocks reads the wall clock and the monotonic one, both since any moment.
func clocks() func() (wall, elapsed time.Duration) {
	start := time.Now()
	from := start.Round(0) // without the monotonic reading
	return func() (wall, elapsed time.Duration) {
		now := time.Now()
		return now.Round(0).Sub(from), now.Sub(start)
	}
}

// watchClocks compares the wall clock with the monotonic one until stop is closed. A thread may
// wait between the two readings, so medians of several are compared.
func watchClocks(stop <-chan struct{}, read func() (wall, elapsed time.Duration)) (
	shift, back time.Duration) {
	const some = 11
	var first, latest []time.Duration
	last, _ := read()
	for stopped := false; !stopped || len(first) < some; {
		wall, elapsed := read()
		back = max(back, last-wall)
		last = wall
		if len(first) < some {
			first = append(first, wall-elapsed)
		}
		if latest = append(latest, wall-elapsed); len(latest) > some {
			latest = latest[1:]
		}
		select {
		case <-stop:
			stopped = true
		case <-time.After(time.Millisecond):
		}
	}
	slices.Sort(first)
	slices.Sort(latest)
	return latest[some/2] - first[some/2], back
}
