package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type checkpointCommand struct{ offline }

// Run makes the journal's state and saves it: for an upgrade after a crash, by the version that
// wrote the journal.
func (c *checkpointCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !exists(c.Data, "journal") {
		_, err := c.open(true) // which says why
		return err
	}
	j, err := c.open(false)
	if err != nil {
		return err
	}
	defer j.Close()
	bar := newProgress("journal", "frames")
	r, err := j.Restore(ctx, replayed(bar, j.Last()))
	bar.end()
	if err != nil {
		return failed(advised(err))
	}
	if r.Head.Frame == 0 {
		return fmt.Errorf("%s: nothing was journaled yet", j.Path)
	}
	saved, err := j.Checkpoint(ctx, r.State, r.Head)
	if err != nil {
		return err
	}
	fmt.Printf("checkpoint %s: Sequence %d, digest %016x, %d bytes\n", saved.Path,
		saved.Head.Sequence, uint64(saved.Head.Digest), saved.Bytes)
	return j.Close()
}
