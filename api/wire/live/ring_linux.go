package live

import (
	"math/bits"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ring is an io_uring: two queues in memory that this process shares with the kernel. The process
// puts sends into one queue, one system call makes the kernel do all of them, and the kernel puts
// their results into the other queue.
//
//	asked ──► sends ──► begun        the process moves asked and seen,
//	finished ──► results ──► seen    the kernel begun and finished
type ring struct {
	fd     int
	mapped [][]byte

	sends        []submission
	asked, begun *uint32 // how many sends were queued, and how many the kernel took
	ready        uint32  // how many sends were prepared and not queued yet

	results        []completion
	finished, seen *uint32 // how many results were queued, and how many were read

	open   uint64 // a bit for each number of a send that was prepared and has no result
	broken bool   // a call has failed in a way that later calls would fail, too
}

// submission is struct io_uring_sqe, as a send uses it.
type submission struct {
	opcode, flags     uint8
	priority          uint16
	fd                int32
	offset, address   uint64
	length, sendFlags uint32
	user              uint64
	_                 [3]uint64
}

// completion is struct io_uring_cqe.
type completion struct {
	user   uint64
	result int32
	flags  uint32
}

// ringParams is struct io_uring_params: the sizes of the queues, and the offsets of their parts.
type ringParams struct {
	sends, results, flags, cpu, idle, features, workers uint32

	_         [3]uint32
	ofSends   struct{ head, tail, mask, entries, flags, dropped, order, _, _, _ uint32 }
	ofResults struct{ head, tail, mask, entries, overflow, results, flags, _, _, _ uint32 }
}

// Constants of the kernel's interface, the same on all architectures.
const (
	setupCall = 425 // io_uring_setup
	enterCall = 426 // io_uring_enter

	opSend     = 26     // IORING_OP_SEND
	wantResult = 1      // IORING_ENTER_GETEVENTS
	noWait     = 0x4040 // MSG_DONTWAIT, MSG_NOSIGNAL

	sendsMemory   = 0          // IORING_OFF_SQ_RING
	resultsMemory = 0x8000000  // IORING_OFF_CQ_RING
	entriesMemory = 0x10000000 // IORING_OFF_SQES
)

// newRing returns a ring for n sends, a power of 2. It returns nil if this process cannot have one:
// the kernel is too old, or the operator or a container's profile forbids io_uring.
func newRing(n int) *ring {
	var p ringParams
	fd, _, no := syscall.Syscall(setupCall, uintptr(n), uintptr(unsafe.Pointer(&p)), 0)
	if no != 0 {
		return nil
	}
	r := &ring{fd: int(fd)}
	if !r.share(&p) || !r.works() {
		r.close()
		return nil
	}
	return r
}

// share maps the queues into this process, and reports whether that has worked.
func (r *ring) share(p *ringParams) bool {
	memory := func(offset int64, size uintptr) unsafe.Pointer {
		b, err := syscall.Mmap(r.fd, offset, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_SHARED|syscall.MAP_POPULATE)
		if err != nil {
			return nil
		}
		r.mapped = append(r.mapped, b)
		return unsafe.Pointer(&b[0])
	}
	word := func(b unsafe.Pointer, offset uint32) *uint32 { return (*uint32)(unsafe.Add(b, offset)) }
	s, c := &p.ofSends, &p.ofResults
	sends := memory(sendsMemory, uintptr(s.order)+uintptr(p.sends)*unsafe.Sizeof(uint32(0)))
	results := memory(resultsMemory, uintptr(c.results)+uintptr(p.results)*unsafe.Sizeof(completion{}))
	entries := memory(entriesMemory, uintptr(p.sends)*unsafe.Sizeof(submission{}))
	if sends == nil || results == nil || entries == nil {
		return false
	}
	r.begun, r.asked = word(sends, s.head), word(sends, s.tail)
	r.seen, r.finished = word(results, c.head), word(results, c.tail)
	r.sends = unsafe.Slice((*submission)(entries), p.sends)
	r.results = unsafe.Slice((*completion)(unsafe.Add(results, c.results)), p.results)
	order := unsafe.Slice(word(sends, s.order), p.sends)
	for i := range order {
		order[i] = uint32(i)
	}
	return true
}

// works sends a byte from one socket to another, because a kernel may have io_uring without its
// send operation.
func (r *ring) works() (sent bool) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(pair[0])
	defer syscall.Close(pair[1])
	r.prepare(0, uintptr(pair[0]), oneByte)
	r.send(func(_, n int, _ syscall.Errno) { sent = n == 1 })
	return sent
}

// oneByte is not on a stack, because a stack may move.
var oneByte = []byte{1}

// close unmaps the queues and closes the ring's descriptor.
func (r *ring) close() {
	for _, b := range r.mapped {
		_ = syscall.Munmap(b)
	}
	_ = os.NewFile(uintptr(r.fd), "io_uring").Close()
}

// prepare makes b a send of the next call of send, which reports on it by the number i. The bytes,
// at least one, must stay where they are until that call returns.
func (r *ring) prepare(i int, fd uintptr, b []byte) {
	at := (*r.asked + r.ready) % uint32(len(r.sends))
	r.sends[at] = submission{opcode: opSend, fd: int32(fd), length: uint32(len(b)),
		address: uint64(uintptr(unsafe.Pointer(&b[0]))), sendFlags: noWait, user: uint64(i)}
	r.ready++
	r.open |= 1 << i
}

// forget drops what was prepared and not sent.
func (r *ring) forget() { r.ready, r.open = 0, 0 }

// mostCalls bounds the calls for the results of one send. The first call brings all of them, unless
// a signal interrupts it.
const mostCalls = 1000

// send does the sends that were prepared. For each it calls done with the number of bytes written,
// or with the error. It does not call done for sends that the kernel refuses to take.
func (r *ring) send(done func(i, wrote int, no syscall.Errno)) {
	until := *r.asked + r.ready
	r.ready = 0
	atomic.StoreUint32(r.asked, until)
	for calls := 0; r.open != 0; calls++ {
		_, _, no := syscall.Syscall6(enterCall, uintptr(r.fd), uintptr(until-atomic.LoadUint32(r.begun)),
			uintptr(bits.OnesCount64(r.open)), wantResult, 0, 0)
		at := *r.seen
		for ; at != atomic.LoadUint32(r.finished); at++ {
			c := &r.results[at%uint32(len(r.results))]
			r.open &^= 1 << c.user
			done(int(c.user), int(max(c.result, 0)), syscall.Errno(max(-c.result, 0)))
		}
		atomic.StoreUint32(r.seen, at)
		switch no {
		case 0, syscall.EINTR:
		default:
			r.broken = r.broken || no != syscall.EAGAIN && no != syscall.EBUSY
			// The kernel reads the queue only during the call, so it will not take the other sends.
			for begun := atomic.LoadUint32(r.begun); until != begun; until-- {
				r.open &^= 1 << r.sends[(until-1)%uint32(len(r.sends))].user
			}
			atomic.StoreUint32(r.asked, until)
		}
		if calls == mostCalls { // the kernel may or may not have done these sends
			r.broken = true
			for ; r.open != 0; r.open &= r.open - 1 {
				done(bits.TrailingZeros64(r.open), 0, syscall.ECANCELED)
			}
		}
	}
}
