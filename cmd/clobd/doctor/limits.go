package doctor

import (
	"fmt"
	"time"
)

// checkClock: requests with a right timestamp are let in, and orders expire when they should.
func (m *machine) checkClock(o *Options) Check {
	c := Check{Name: "clock"}
	if m.newest > time.Minute { // some file systems' clocks are a little ahead
		c.Value = "behind the last write to the data folder by " + short(m.newest)
		why := "signed requests are good for " + short(o.Window) + " around the clock, and it was set back"
		return c.fail(why, "set the clock, then let chrony or systemd-timesyncd keep it")
	}
	if m.clock == nil {
		return c.unknown()
	}
	const change = "run chrony or systemd-timesyncd; in a container, on its host"
	c.Value = fmt.Sprintf("synchronised, at most %s off", short(m.clock.maxError))
	if !m.clock.synced {
		c.Value = "not synchronised"
	}
	switch off := max(m.clock.maxError, m.clock.offset.Abs()); {
	case m.clock.synced && off > o.Window || m.clock.offset.Abs() > o.Window:
		return c.fail("it may be off by "+short(off)+": right requests are refused beyond "+
			short(o.Window), change)
	case !m.clock.synced:
		return c.warn("nobody keeps it right, as far as the kernel knows: in weeks it is off by more than "+
			"the "+short(o.Window)+" that requests may be", change)
	}
	return c.good("requests may be off by " + short(o.Window))
}

// steadyClock is how far the wall clock may be moved while the disk is measured. The kernel's own
// corrections are 1 ms in that time.
const steadyClock = 5 * time.Millisecond

// checkSteps: the wall clock runs as fast as time goes by.
func (m *machine) checkSteps(o *Options) Check {
	moved := max(m.shift.Abs(), m.back)
	c := Check{Name: "steps", Value: "the wall clock moved by " + short(m.shift) + " against the monotonic one"}
	if m.back > 0 {
		c.Value += ", and by " + short(m.back) + " back at once"
	}
	switch {
	case moved > o.Window:
		return c.fail("requests may be off by "+short(o.Window)+" only", "find out what sets the clock")
	case moved > steadyClock || m.back > 0:
		return c.warn("the node follows a step by 1 ms a second only, so its times are wrong for long",
			"let chrony slew the clock (makestep only at its start), and nothing else set it")
	}
	return c.good("the node follows it by 1 ms a second")
}

// checkFiles: as many connections as promised get one.
func (m *machine) checkFiles(o *Options) Check {
	c := Check{Name: "files"}
	if m.limits == nil {
		return c.unknown()
	}
	has, need := m.limits.files, int64(o.Sockets+o.Connections+o.SpareFiles)
	c.Value = count(has) + " open files"
	if has == unlimited {
		c.Value = "no limit of open files"
	}
	parts := fmt.Sprintf("--sockets %s, %s connections and %s for the journal", count(o.Sockets),
		count(o.Connections), count(o.SpareFiles))
	if has < need {
		// The node lowers both in proportion: of the sockets this share is left.
		most := max(int64(o.Sockets)*(has-int64(o.SpareFiles))/int64(o.Sockets+o.Connections), 0)
		return c.fail("it is less than the "+count(need)+" of "+parts, fmt.Sprintf("set ulimit -n %d, or "+
			"LimitNOFILE=%d in its service; else only some %s sockets are open at once", need, need,
			count(most)))
	}
	return c.good("enough for " + parts)
}

// Locked memory is for a page of secrets and for the queues of io_uring: some 10 KiB.
const (
	enoughLocked = 64 << 10
	lockMore     = "set ulimit -l 64, or LimitMEMLOCK=64K in its service"
)

// checkVault: secrets are never written to a disk. The node locks one page, so the limit is seldom
// too low; it was tried.
func (m *machine) checkVault() Check {
	c := Check{Name: "memlock"}
	if m.limits == nil {
		return c.unknown()
	}
	c.Value = "up to " + size(m.limits.locked) + " of locked memory"
	if m.limits.locked == unlimited {
		c.Value = "no limit of locked memory"
	}
	if m.vault != nil {
		return c.warn(fmt.Sprintf("keys may be swapped out to a disk: %v", m.vault), lockMore)
	}
	return c.good("the 4 KiB of the node's secrets could be locked")
}

// checkDumps: no core dump shows the secrets. Forbidding them was tried, as a node does.
func (m *machine) checkDumps() Check {
	c := Check{Name: "core dumps", Value: "forbidden"}
	if m.sealed != nil {
		c.Value = "possible"
		return c.warn(fmt.Sprintf("they show keys: %v", m.sealed), "allow prctl and setrlimit in the "+
			"service's filter of system calls, or set ulimit -c 0")
	}
	return c.good("the node forbids its own, unless --allow-core")
}

// checkRing: a write to many WebSockets is one system call.
func (m *machine) checkRing() Check {
	c := Check{Name: "io_uring", Value: "works"}
	switch {
	case m.kernel == nil:
		return c.unknown()
	case m.ring:
		return c.good("changes go to 16 WebSockets with one system call")
	}
	c.Value = "is not to be had"
	change := "let the container's seccomp profile allow io_uring_setup and io_uring_enter"
	switch off := m.kernel.ringSwitch; {
	case off == "1" || off == "2":
		c.Value += ", kernel.io_uring_disabled is " + off
		change = "sysctl -w kernel.io_uring_disabled=0"
	case m.limits != nil && m.limits.locked < enoughLocked:
		c.Value += ", with " + size(m.limits.locked) + " of locked memory"
		change = lockMore
	}
	return c.warn("each write to a WebSocket takes a system call: with many subscribers orders are slower",
		change+"; nothing, if few subscribe")
}

// goodBacklog is Linux' own since 5.4.
const goodBacklog = 4096

// checkBacklog: a burst of new connections is not dropped.
func (m *machine) checkBacklog(o *Options) Check {
	c := Check{Name: "backlog"}
	if m.kernel == nil || m.kernel.backlog < 0 {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("net.core.somaxconn %s", count(m.kernel.backlog))
	if m.kernel.backlog < min(goodBacklog, o.Connections) {
		return c.warn("of more connections at once some wait a second or more: when all clients come "+
			"back at a start", fmt.Sprintf("sysctl -w net.core.somaxconn=%d", goodBacklog))
	}
	return c.good("that many connections may come at once")
}

// checkPorts: a proxy on this machine can open all connections, and none takes the node's port.
func (m *machine) checkPorts(o *Options) Check {
	c := Check{Name: "ports"}
	if m.kernel == nil || m.kernel.ports[1] == 0 {
		return c.unknown()
	}
	from, to := m.kernel.ports[0], m.kernel.ports[1]
	c.Value = fmt.Sprintf("%d to %d for outgoing connections", from, to)
	const usual = `sysctl -w net.ipv4.ip_local_port_range="32768 60999"`
	switch most := o.Sockets + o.Connections; {
	case from <= 8081 && 8080 <= to:
		return c.warn("a connection of another program may have the node's port when it starts", usual)
	case to-from+1 < most:
		return c.warn("a proxy on this machine cannot open the "+count(most)+" connections that the node "+
			"serves", usual+"; nothing, if clients come from elsewhere or the proxy uses unix:PATH")
	}
	return c.good("enough for a proxy on this machine")
}
