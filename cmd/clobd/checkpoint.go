package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/cmd/clobd/role"
	"clobd/journal"
	"clobd/journal/disk"
)

type checkpointCommand struct {
	offline
	Admin string `default:"127.0.0.1:8081" help:"The admin listener of the node that has the folder, if one has."`
}

const checkpointTime = 10 * time.Minute

// Run saves the state at the end of the journal. If a node has the folder, Run asks the node.
func (c *checkpointCommand) Run(ctx context.Context) error {
	if !exists(c.Data, "journal") {
		_, err := c.open(true) // which says why
		return err
	}
	j, err := journal.Open(c.options(false))
	var locked *disk.LockedError
	if errors.As(err, &locked) {
		return c.ask(locked)
	} else if err != nil {
		return c.explain(err)
	}
	defer j.Close()
	bar := newProgress(newScreen(), "journal", "frames")
	r, err := j.Restore(ctx, replayed(bar, j.Last()))
	bar.end()
	if err != nil {
		return failed(role.Advised(err))
	}
	if r.Head.Frame == 0 {
		return fmt.Errorf("%s: nothing was journaled yet", j.Path)
	}
	saved, err := j.Checkpoint(ctx, r.State, r.Head)
	if err != nil {
		return err
	}
	noteOf(saved).print()
	return j.Close()
}

func (c *checkpointCommand) ask(locked *disk.LockedError) error {
	o := client.Operator{Admin: c.Admin, Data: c.Data}
	text, err := o.Post("/admin/checkpoint", map[string]string{}, checkpointTime)
	if err != nil {
		return fmt.Errorf("%s is in use by %s: %w", locked.Path, locked.Holder, err)
	}
	var told checkpointNote
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	told.print()
	return nil
}

type checkpointNote struct {
	Path     string `json:"path"`
	Sequence uint64 `json:"sequence"`
	Digest   string `json:"digest"`
	Bytes    int64  `json:"bytes"`
}

func noteOf(c *journal.Checkpoint) *checkpointNote {
	return &checkpointNote{c.Path, uint64(c.Head.Sequence),
		fmt.Sprintf("%016x", uint64(c.Head.Digest)), c.Bytes}
}

func (t *checkpointNote) print() {
	fmt.Printf("checkpoint %s: Sequence %d, digest %s, %d bytes\n", t.Path, t.Sequence, t.Digest,
		t.Bytes)
}

// checkpointRoute answers once a checkpoint of all that was acknowledged before is on the disk.
func (n *node) checkpointRoute(w http.ResponseWriter, r *http.Request) {
	saved, err := n.role.Follower.Checkpoint(r.Context())
	switch {
	case errors.Is(err, journal.ErrNoRoom):
		tell(w, http.StatusServiceUnavailable, problem{err.Error(),
			"make room: less than twice --disk-reserve is free"})
	case errors.Is(err, journal.ErrClosed):
		tell(w, http.StatusServiceUnavailable, problem{"the node is stopping",
			"a stop writes a checkpoint itself"})
	case err != nil:
		tell(w, http.StatusInternalServerError, problem{err.Error(),
			"look at the disk and at the node's log: trading goes on, and it is tried again"})
	default:
		tell(w, http.StatusOK, noteOf(saved))
	}
}
