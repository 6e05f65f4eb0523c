package lean

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// resolve finds the address of HOST:PORT: an IPv4 address if the host has one.
func resolve(ctx context.Context, addr string) (syscall.Sockaddr, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	to := all[0].Unmap()
	for _, other := range all {
		if other.Unmap().Is4() {
			return &syscall.SockaddrInet4{Port: port, Addr: other.Unmap().As4()}, nil
		}
	}
	return &syscall.SockaddrInet6{Port: port, Addr: to.As16(), ZoneId: zoneOf(to)}, nil
}

// zoneOf is the number of an address's zone, 0 if there is none.
func zoneOf(a netip.Addr) uint32 {
	if face, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(face.Index)
	}
	return 0
}

// dial begins to open a connection, from an address of this machine unless that is nil. The socket
// is writable when that has ended.
func dial(to, from syscall.Sockaddr) (fd int, err error) {
	family := syscall.AF_INET
	if _, six := to.(*syscall.SockaddrInet6); six {
		family = syscall.AF_INET6
	}
	fd, err = syscall.Socket(family,
		syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err == nil && from != nil {
		err = syscall.Bind(fd, from)
	}
	if err == nil {
		err = syscall.Connect(fd, to)
	}
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// dialed is how opening a connection has ended.
func dialed(fd int) error {
	n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	return err
}

// receive and send do not tell Go's scheduler of the call, because a socket that does not block
// returns at once: telling costs as much as a tenth of the call.

// receive reads what is there; EAGAIN says that there is nothing.
func receive(fd int, room []byte) (int, syscall.Errno) {
	n, _, no := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(room))), uintptr(len(room)), 0, 0, 0)
	return int(n), no
}

// send writes as much as the kernel takes; EAGAIN says that this is nothing.
func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, no := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), no
}

// Numbers that package syscall has no names for.
const (
	sysEpollPwait2  = 441
	prSetTimerslack = 29
	rusageThread    = 1
	timerNonblock   = syscall.O_NONBLOCK | syscall.O_CLOEXEC
)

// poller waits for sockets, as short as it is told to.
type poller struct {
	fd     int
	timer  int // where the kernel has no epoll_pwait2: a timer that epoll waits for; else -1
	events [eventsAtOnce]syscall.EpollEvent
}

// eventsAtOnce bounds what one wait reports. All that it reports has one time: that of the wait's
// end. So few are better than many.
const eventsAtOnce = 16

// exactTimers tells the kernel to wake this thread on time, or, as by default, up to 50 µs late to
// save wake-ups.
func exactTimers(exact bool) {
	slack := uintptr(0) // the default
	if exact {
		slack = 1 // ns
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerslack, slack, 0)
}

// newPoller makes a poller.
func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	p := &poller{fd: fd, timer: -1}
	if _, err := p.wait(0); errors.Is(err, syscall.ENOSYS) {
		if err := p.makeTimer(); err != nil {
			_ = syscall.Close(fd)
			return nil, err
		}
	}
	return p, nil
}

// timerEvent is the Fd of the timer's event; sockets have the number of their lane.
const timerEvent = -1

// makeTimer makes the timer and adds it to what is waited for.
func (p *poller) makeTimer() error {
	const monotonic = 1
	fd, _, no := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, monotonic, timerNonblock, 0)
	if no != 0 {
		return no
	}
	p.timer = int(fd)
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, p.timer,
		&syscall.EpollEvent{Events: syscall.EPOLLIN | edge, Fd: timerEvent})
}

// edge is EPOLLET, which package syscall has as a negative number.
const edge = 1 << 31

// wait waits for events, at most d, and returns how many there are. A signal ends it early.
func (p *poller) wait(d time.Duration) (int, error) {
	limit := syscall.NsecToTimespec(max(d, 0).Nanoseconds())
	at := uintptr(unsafe.Pointer(&p.events[0]))
	if p.timer >= 0 {
		return p.waitTimer(d)
	}
	// Go's scheduler is not told, although this call waits. It would take the processor from a thread
	// that waits so often every 10 ms, and look for more of the kind every 20 µs: that was a seventh
	// of the CPU time of a load. Whoever needs the thread for a moment, such as the collector, sends
	// a signal, which ends the wait.
	n, _, no := syscall.RawSyscall6(sysEpollPwait2, uintptr(p.fd), at, eventsAtOnce,
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	if no == syscall.EINTR {
		return 0, nil
	}
	if no != 0 {
		return 0, no
	}
	return int(n), nil
}

// waitTimer is wait with the timer.
func (p *poller) waitTimer(d time.Duration) (int, error) {
	millis := 0
	if d > 0 {
		limit := [2]syscall.Timespec{1: syscall.NsecToTimespec(d.Nanoseconds())}
		_, _, no := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(p.timer), 0,
			uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		if no != 0 {
			return 0, no
		}
		millis = -1
	}
	n, err := syscall.EpollWait(p.fd, p.events[:], millis)
	if errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	for i := range max(n, 0) {
		if p.events[i].Fd == timerEvent { // which says nothing of a socket
			n--
			p.events[i] = p.events[n]
			break
		}
	}
	return max(n, 0), err
}

// watch sets what is waited for of a lane's socket.
func (p *poller) watch(fd, lane int, how int, events uint32) error {
	return syscall.EpollCtl(p.fd, how, fd, &syscall.EpollEvent{Events: events, Fd: int32(lane)})
}

// close ends the poller.
func (p *poller) close() {
	_ = syscall.Close(p.fd)
	if p.timer >= 0 {
		_ = syscall.Close(p.timer)
	}
}

// threadCPU is user plus system time of this thread.
func threadCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(rusageThread, &u) // of oneself does not fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
