package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"clobd/journal/disk"
)

// byteSize is a number of bytes on the command line: 1073741824, 64MiB, 1GiB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	digits, shift := string(text), 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, is := strings.CutSuffix(digits, unit); is {
			digits, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > 1<<50>>shift {
		return fmt.Errorf("%q is no size: write bytes, or a number with KiB, MiB, GiB or TiB, up to "+
			"1024TiB", text)
	}
	*b = byteSize(n << shift)
	return nil
}

// watchSpace watches the free space of the disk. Below --disk-reserve the door takes only cancels.
func (n *node) watchSpace(context.Context) error {
	var err error
	n.space, err = disk.Watch(disk.SpaceOptions{Dir: n.Data, Log: n.log,
		Reserve: int64(n.DiskReserve), Ballast: int64(n.DiskBallast),
		Changed: func(s disk.SpaceState) { n.door.Full(s == disk.Full) }})
	if err == nil {
		n.metrics.MustRegister(n.space.Collectors()...)
	}
	return err
}

type diskStatus struct {
	State   string `json:"state"`
	Free    int64  `json:"freeBytes"`
	Reserve int64  `json:"reserveBytes"`
	Ballast int64  `json:"ballastBytes"`
}

// diskOf is the latest state of a Space, nil for none.
func diskOf(s *disk.Space) *diskStatus {
	if s == nil {
		return nil
	}
	is := s.Status()
	return &diskStatus{is.State.String(), is.Free, is.Reserve, is.Ballast}
}
