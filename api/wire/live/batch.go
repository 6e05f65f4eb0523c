package live

import (
	"errors"
	"syscall"
)

// BatchSends is how many sends fit into a Batch. The kernel completes all of them before other
// threads of this CPU may run.
const BatchSends = 16

// The Batch keeps a copy of all frames, so their bytes have bounds: those of one send, and of all
// sends together.
const (
	maxBatched = 128 << 10
	maxBatch   = 512 << 10
)

// Batch sends to many Sockets with one system call. Add takes nothing if the kernel does not let
// this process use io_uring, or if the Batch is zero. One goroutine at a time uses a Batch.
type Batch struct {
	ring *ring // nil: there is no io_uring
	all  [BatchSends]outgoing
	n    int
	room []byte // copies of the frames of the n sends; used again
}

// outgoing is a send that waits in a Batch.
type outgoing struct {
	line   *Line
	frames []byte // in the buffer of the Batch
	held   bool   // hold keeps the descriptor open, and the kernel sends
	wrote  int
	failed error
	begin  func(fd uintptr) // prepares the send; made once, in Open
}

// Open sets up io_uring, and reports whether the Batch takes sends.
func (b *Batch) Open() bool {
	b.ring = newRing(BatchSends)
	for i := range b.all {
		b.all[i].begin = func(fd uintptr) {
			b.all[i].held = true
			b.ring.prepare(i, fd, b.all[i].frames)
			b.hold(i + 1)
		}
	}
	return b.ring != nil
}

// Close releases io_uring.
func (b *Batch) Close() {
	if b.ring != nil {
		b.ring.close()
		b.ring = nil
	}
}

// Works reports whether the Batch takes sends: it was opened, and the kernel has not failed since.
func (b *Batch) Works() bool { return b.ring != nil }

// Add adds whole frames to what the next call of Send sends, and returns the number of this send in
// the Batch. Add takes nothing if the Batch is full or cannot send to this Socket: the caller then
// calls Socket.Send. A Socket may be in a Batch only once, and only while none of its earlier bytes
// are left unsent.
func (b *Batch) Add(s *Socket, frames []byte) (i int, taken bool) {
	if b.ring == nil || b.n == len(b.all) || !s.plain || s.line.raw == nil ||
		len(frames) == 0 || len(frames) > maxBatched || len(b.room)+len(frames) > maxBatch {
		return 0, false
	}
	i = b.n
	o := &b.all[i]
	at := len(b.room)
	b.room = append(b.room, frames...)
	o.line, o.frames = s.line, b.room[at:]
	o.held, o.wrote, o.failed = false, 0, nil
	b.n++
	return i, true
}

// Send sends what was added, and calls left for each send that failed or was sent only in part. If
// err is nil, the caller calls Flush of the Socket until nothing is left. Otherwise the connection
// is closed.
func (b *Batch) Send(left func(i int, err error)) {
	if b.n == 0 {
		return
	}
	defer b.Forget()
	b.hold(0)
	if b.ring.broken {
		b.Close()
	}
	for i := range b.n {
		o := &b.all[i]
		o.line = nil
		if o.failed != nil || o.wrote < len(o.frames) {
			left(i, o.failed)
		}
	}
}

// Forget drops what was added and not sent.
func (b *Batch) Forget() {
	if b.n, b.room = 0, b.room[:0]; b.ring != nil {
		b.ring.forget()
	}
}

// hold locks the Lines from number i on, and keeps their descriptors open while the kernel sends,
// because the number of a closed descriptor may already belong to another connection.
func (b *Batch) hold(i int) {
	if i == b.n {
		b.ring.send(func(i, n int, no syscall.Errno) {
			o := &b.all[i]
			o.wrote = max(n, 0)
			if no != 0 && no != syscall.EAGAIN && no != syscall.EINTR {
				o.failed = no
			}
		})
		return
	}
	o := &b.all[i]
	o.line.mutex.Lock()
	defer o.line.mutex.Unlock()
	var err error
	if len(o.line.rest) == 0 {
		err = o.line.raw.Control(o.begin)
	}
	if !o.held { // another goroutine has closed the connection, or left bytes unsent
		b.hold(i + 1)
	}
	if err = errors.Join(err, o.failed); err == nil {
		err = o.line.keep(o.frames[o.wrote:])
	}
	if err != nil {
		o.failed = errors.Join(err, o.line.Conn.Close())
	}
}
