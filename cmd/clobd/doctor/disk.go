package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"clobd/journal/disk"
)

// checkFolder: the node starts on the folder, and may write to it.
func (m *machine) checkFolder(o *Options) Check {
	c := Check{Name: "folder", Value: m.folder}
	switch {
	case !m.exists:
		c.Value = fmt.Sprintf("%s does not exist yet: %s was measured", o.Data, m.folder)
	case m.holder > 0:
		c.Value += fmt.Sprintf(", in use by process %d", m.holder)
	}
	switch {
	case o.Refused != nil:
		return c.fail(fmt.Sprintf("a node would not start: %v", o.Refused), "give the folder to the "+
			"node's user alone, or run this as that user")
	case errors.Is(m.failed, fs.ErrPermission):
		return c.fail("this user may not write there", "run this as the node's user, or chown the folder")
	case m.holder > 0:
		return c.good("the limits are those of that process, and its work slows the figures here")
	}
	return c.good("the limits are those of this shell: run this as the node's user, as its service would")
}

// checkFilesystem: what was synced survives a power cut, as far as names tell.
func (m *machine) checkFilesystem() Check {
	c := Check{Name: "filesystem"}
	if m.mount == nil {
		return c.unknown()
	}
	c.Value = fmt.Sprintf("%s on %s", m.mount.kind, m.mount.source)
	const local = "let --data be a folder on a local disk with ext4 or xfs"
	kind, _, _ := strings.Cut(m.mount.kind, ".")
	has := func(option string) bool { return slices.Contains(m.mount.options, option) }
	switch {
	case slices.Contains([]string{"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"}, kind):
		return c.fail("it is memory: a sync writes nothing, and a power cut loses every order", local)
	case slices.Contains([]string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "lustre",
		"beegfs", "gfs2", "ocfs2"}, kind):
		return c.fail("it is on a network: another machine decides what a sync does, and whether a lock "+
			"keeps a second node out", local)
	case has("ro"):
		return c.fail("it is mounted for reading only", "mount it for writing")
	case has("nobarrier") || has("barrier=0"):
		return c.fail("it is mounted without barriers: a sync leaves bytes in the disk's own memory",
			"mount it without nobarrier and barrier=0")
	case kind == "overlay":
		return c.warn("it is a container's own layer, which goes with the container",
			"mount a volume of a local disk at --data")
	case kind == "fuse" || kind == "fuseblk" || kind == "virtiofs":
		return c.warn("another program decides what a sync does", local)
	}
	return c.good("a sync reaches the disk as far as the system knows")
}

// The limits of syncs: what a node aims at is an answer in 2 ms, and in 15 ms for 99 of 100.
const (
	lyingSync = 5 * time.Microsecond // the fastest disks need more for a command and its answer
	slowSync  = 2 * time.Millisecond
	lateSync  = 15 * time.Millisecond
)

// checkSyncs: the disk answers, in time, and not before it has done the work.
func (m *machine) checkSyncs() Check {
	c := Check{Name: "fsync", Value: "none"}
	if m.syncs == nil {
		return c.fail(fmt.Sprintf("nothing can be made durable: %v", m.failed),
			"let --data be a folder that can be written, on a disk that answers")
	}
	s := *m.syncs
	p50, p99, longest := s.at(0.5), s.at(0.99), s.at(1)
	c.Value = fmt.Sprintf("p50 %s, p99 %s, max %s of %s writes of 4 KiB", short(p50), short(p99),
		short(longest), count(len(s)))
	switch {
	case p50 < lyingSync:
		return c.warn("no disk is that fast: something says that bytes are safe before they are",
			"look for a disk cache of the host in mode unsafe, or a sync that is switched off")
	case longest > disk.StallTime:
		return c.warn("the disk stood still: meanwhile nobody is answered, and /readyz says 503",
			"look at dmesg, and for what else uses the disk")
	case p50 > slowSync:
		return c.warn("every answer waits for one: orders are answered late, though not fewer",
			"use a local SSD, best one with power-loss protection, or a volume with more I/O a second")
	case p99 > lateSync:
		return c.warn("1 answer of 100 waits that long", "look for what else uses the disk, and for a "+
			"limit of I/O a second on the volume")
	}
	return c.good("every answer waits for one")
}

// checkRoom: orders are taken. The limits are those by which a node watches its disk.
func (m *machine) checkRoom(o *Options) Check {
	c := Check{Name: "disk"}
	if m.room == nil {
		return c.unknown()
	}
	c.Value = size(m.room.free) + " free"
	ballast := o.Ballast
	if m.holder > 0 {
		ballast = 0 // it is there, or the node makes it when there is room
	}
	roomy := 2*o.Reserve + o.Reserve/8 + ballast
	switch free := m.room.free; {
	case free < o.Reserve:
		return c.fail("it is less than --disk-reserve "+size(o.Reserve)+": only cancels are taken",
			"free "+size(roomy-free)+", or lower --disk-reserve")
	case free < 2*o.Reserve:
		return c.warn("it is less than twice --disk-reserve "+size(o.Reserve)+": no checkpoints are "+
			"written", "free "+size(roomy-free))
	case free < roomy:
		return c.warn("there is no room for --disk-ballast "+size(ballast)+", which lets cancels through "+
			"on a full disk", "free "+size(roomy-free))
	}
	return c.good("orders are taken down to --disk-reserve " + size(o.Reserve))
}

// A node keeps some hundred files, and makes and deletes them all the time.
const (
	fewestFiles = 1_000
	fewFiles    = 10_000
)

// checkInodes: the node can make files.
func (m *machine) checkInodes() Check {
	c := Check{Name: "inodes"}
	if m.room == nil {
		return c.unknown()
	}
	if !m.room.capped {
		c.Value = "no limit"
		return c.good("the file system makes them as needed")
	}
	c.Value = count(m.room.files) + " free"
	const change = "delete small files, or make the file system anew with more inodes"
	switch {
	case m.room.files < fewestFiles:
		return c.fail("without one the journal cannot begin its next log, and the node stops itself", change)
	case m.room.files < fewFiles:
		return c.warn("the node needs some hundred, and others may take the rest", change)
	}
	return c.good("the node needs some hundred")
}
