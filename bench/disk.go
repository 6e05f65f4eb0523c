package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Disk describes the disk of a data folder.
type Disk struct {
	Dir        string `json:"dir"`
	Filesystem string `json:"filesystem"`
	Device     string `json:"device"`
	Options    string `json:"mount_options"`
	// FsyncMicros is the median of 50 bare 4 KB write+fdatasync in the folder, in µs: the floor of
	// every durable answer. 0 is unknown.
	FsyncMicros float64 `json:"fsync_micros,omitempty"`
}

// makeFolder makes the folder of a run below parent; empty is the system's temporary folder.
func makeFolder(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "clobench")
	if err != nil {
		return "", fmt.Errorf("make folder for the run: %w", err)
	}
	return filepath.Abs(dir)
}

// diskOf reads which disk dir is on and measures its bare sync.
func diskOf(dir string) *Disk {
	d := &Disk{Dir: dir, Filesystem: unknown, Device: unknown, Options: unknown,
		FsyncMicros: fsyncProbe(dir)}
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		d.Filesystem = filesystemName(uint32(fs.Type))
	}
	var stat syscall.Stat_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || syscall.Stat(dir, &stat) != nil {
		return d
	}
	d.mounted(string(mounts), stat.Dev)
	return d
}

// filesystemName is the name behind the magic number of statfs(2).
func filesystemName(magic uint32) string {
	names := map[uint32]string{0xef53: "ext2, ext3 or ext4", 0x58465342: "xfs", 0x9123683e: "btrfs",
		0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x794c7630: "overlayfs", 0x6969: "nfs",
		0x2fc12fc1: "zfs", 0xf2f52010: "f2fs", 0x65735546: "fuse", 0x01021997: "9p",
		0xff534d42: "cifs", 0xfe534d42: "smb2", 0xca451a4e: "bcachefs"}
	if name, ok := names[magic]; ok {
		return name
	}
	return fmt.Sprintf("magic 0x%x", magic)
}

// mounted looks the device number up in the text of /proc/self/mountinfo, which knows the type
// more exactly than statfs. Filesystems that make up device numbers are not found there.
func (d *Disk) mounted(mounts string, dev uint64) {
	major := dev>>8&0xfff | dev>>32&^0xfff
	minor := dev&0xff | dev>>12&^0xff
	want := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 6 || len(right) < 3 || left[2] != want {
			continue
		}
		d.Filesystem, d.Device, d.Options = right[0], right[1], left[5]+" "+right[2]
		return
	}
}

// String is the disk in one line.
func (d *Disk) String() string {
	if d == nil {
		return "none: nothing is written"
	}
	text := fmt.Sprintf("%s on %s (%s, %s)", d.Dir, d.Filesystem, d.Device, d.Options)
	if d.FsyncMicros > 0 {
		text += fmt.Sprintf(", bare 4 KB write+fdatasync p50 %.0f µs", d.FsyncMicros)
	}
	if d.Filesystem == "tmpfs" || d.Filesystem == "ramfs" {
		text += ": MEMORY, a sync writes nothing and no answer is durable"
	}
	return text
}

// fsyncProbe measures the bare disk; 0 if it cannot.
func fsyncProbe(dir string) float64 {
	f, err := os.CreateTemp(dir, "fsync-probe")
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	var took []float64
	for i := range 50 {
		at := time.Now()
		if _, err := f.WriteAt(block, int64(i*len(block))); err != nil {
			return 0
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0
		}
		took = append(took, float64(time.Since(at).Nanoseconds())/1e3)
	}
	return Median(took)
}

// Median returns the middle value, of an even number of values the mean of the two in the middle.
func Median(values []float64) float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
