package doctor

import (
	"fmt"
	"time"
)

// checkCores: matcher, journal and door run beside each other.
func (m *machine) checkCores() Check {
	c := Check{Name: "cores", Value: fmt.Sprint(m.cores)}
	has := m.usable()
	if has < float64(m.cores) {
		c.Value += fmt.Sprintf(", of which the container may use %.3g", has)
	}
	switch {
	case has < 2:
		return c.warn("matching, syncing and checking signatures wait for each other", "give it 2 or more")
	case m.quota != nil && m.quota.cpus == has && m.quota.throttled > 0:
		return c.warn(fmt.Sprintf("the container was held %s times until its next share: all orders wait "+
			"then", count(m.quota.throttled)), "pin it to whole cores (cpuset) instead of a quota")
	}
	return c.good("the door uses them all, the matcher one")
}

// usable is how many cores the node may use.
func (m *machine) usable() float64 {
	if q := m.quota; q != nil && q.cpus > 0 {
		return min(q.cpus, float64(m.cores))
	}
	return float64(m.cores)
}

// Shares from which a node does not have the machine that it seems to have.
const (
	mostStolen = 0.02
	mostOthers = 0.25
)

// checkOthers: the node has the cores for itself.
func (m *machine) checkOthers() Check {
	c := Check{Name: "others"}
	if m.demand == nil {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("%.0f %% of the cores' time", 100*m.demand.others)
	switch {
	case m.holder > 0:
		c.Grade, c.Reason = Unknown, "the node that runs here is among them: nobody tells them apart"
		return c
	case m.demand.others > mostOthers:
		return c.warn("other programs here take that from the node: the estimate counts all cores as the "+
			"node's", "run them elsewhere, or give the node cores of its own (AllowedCPUs in its service)")
	}
	return c.good("other programs here had that much")
}

// checkSteal: the host gives what it has promised.
func (m *machine) checkSteal() Check {
	c := Check{Name: "steal"}
	if m.demand == nil {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("%.1f %%", 100*m.demand.stolen)
	if m.demand.stolen > mostStolen {
		return c.warn("the host lets others run while an order waits", "use cores that are not shared")
	}
	return c.good("the host gave that much of the wanted time to somebody else")
}

// The limits of hiccups. Nobody is answered meanwhile.
const (
	lateWake = 5 * time.Millisecond
	longWake = 100 * time.Millisecond
)

// checkHiccups: a thread that may run does.
func (m *machine) checkHiccups() Check {
	c := Check{Name: "hiccups"}
	if m.hiccups == nil {
		return c.unknown()
	}
	p99, longest := m.hiccups.p99, m.hiccups.longest
	c.Value = fmt.Sprintf("p99 %s, max %s", short(p99), short(longest))
	if p99 > lateWake || longest > longWake {
		return c.warn("a thread that slept 1 ms woke that late, and so does one that answers an order",
			"look for other programs on these cores, and for a host that is shared")
	}
	return c.good("a thread that slept 1 ms woke that late")
}

// enoughMemory is for a node with few markets and wallets at full load: some 450 MiB for its
// databases, 400 MiB for 24,576 connections, 37 MiB of tables for busy signers, and as much again
// that the garbage collector has not taken back.
const enoughMemory = 2 << 30

// checkMemory: there is enough for a small exchange.
func (m *machine) checkMemory() Check {
	c := Check{Name: "memory"}
	if m.memory == nil {
		return c.unknown()
	}
	most := m.memory.total
	c.Value = fmt.Sprintf("%s, %s available", size(most), size(m.memory.available))
	if q := m.quota; q != nil && q.memory > 0 && q.memory < most {
		most = q.memory
		c.Value += ", of which the container may use " + size(most)
	}
	switch {
	case most < enoughMemory:
		return c.warn("a node that runs out of it is killed: nothing acknowledged is lost, but nobody is "+
			"served", "give it "+size(enoughMemory)+" or more")
	case m.holder == 0 && m.memory.available < enoughMemory:
		return c.warn("other programs have the rest, and the system may kill the node for it",
			"end what is not needed, until "+size(enoughMemory)+" are available")
	}
	return c.good("enough for a small exchange")
}

// checkSwap: the exchange stays in memory.
func (m *machine) checkSwap() Check {
	c := Check{Name: "swap"}
	if m.memory == nil || m.kernel == nil {
		return c.unknown()
	}
	if m.memory.swap == 0 {
		c.Value = "none"
		return c.good("what the exchange holds stays in memory")
	}
	c.Value = fmt.Sprintf("%s, vm.swappiness %d", size(m.memory.swap), m.kernel.swappiness)
	if m.kernel.swappiness > 10 || m.kernel.swappiness < 0 {
		return c.warn("one page of the exchange that is swapped out lets all orders wait for a disk",
			"swapoff -a, or sysctl -w vm.swappiness=1, or MemorySwapMax=0 in its service")
	}
	return c.good("it is used only when memory ends")
}

// checkOvercommit: the Go runtime may reserve addresses that it does not use.
func (m *machine) checkOvercommit() Check {
	c := Check{Name: "overcommit"}
	if m.kernel == nil || m.kernel.overcommit < 0 {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("vm.overcommit_memory %d", m.kernel.overcommit)
	if m.kernel.overcommit == 2 {
		return c.warn("the node reserves more than it uses, and may be refused: then it ends",
			"sysctl -w vm.overcommit_memory=0")
	}
	return c.good("the node may reserve more than it uses")
}

// checkHugePages: the exchange is found with few steps of the processor.
func (m *machine) checkHugePages() Check {
	c := Check{Name: "huge pages"}
	if m.kernel == nil || m.kernel.hugePages == "" {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("%s, Linux %s", m.kernel.hugePages, m.kernel.release)
	const slower = "a large exchange is slower: the processor looks up each small page"
	switch {
	case m.kernel.hugePages == "never":
		return c.warn(slower, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	case !atLeast(m.kernel.release, 6, 1):
		return c.warn(slower+", and this kernel does not gather them when asked", "use Linux 6.1 or later")
	}
	return c.good("the node puts what it uses most into them")
}
