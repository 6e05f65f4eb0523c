package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"clobd/cmd/cli"
	"clobd/journal"
)

type recoverCommand struct {
	offline
	AcceptLoss bool `help:"Let the journal end where it is good, and keep what is cut off in DATA/lost-…: the only way past a start that is refused because acknowledged commands are missing."`
	Index      bool `help:"Make the index anew from the journal."`
}

// Run tells what is lost, or goes on without it, or makes the index anew.
func (c *recoverCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Index && c.AcceptLoss {
		return &cli.UsageError{Err: cli.Hint(fmt.Errorf("both --index and --accept-loss"),
			"--accept-loss makes the index anew, too, at the next start")}
	}
	if c.Index {
		return c.rebuild(ctx)
	}
	return c.journal(ctx)
}

// journal tells what is lost, and accepts it if it may.
func (c *recoverCommand) journal(ctx context.Context) error {
	o := c.options(true)
	o.Log = silent()
	bar := newProgress("journal", "frames")
	l, err := journal.Diagnose(ctx, o, replayed(bar, 0))
	bar.end()
	if err != nil {
		return c.explain(err)
	}
	if l.Why == nil {
		fmt.Printf("nothing is lost: the journal is good up to Sequence %d, frame %d, digest %016x\n",
			l.Head.Sequence, l.Head.Frame, uint64(l.Head.Digest))
		return nil
	}
	c.tell(l)
	if l.Final {
		return failed(advised(l.Why))
	}
	if !c.AcceptLoss {
		return cli.Hint(fmt.Errorf("a start is refused, and nothing was changed"),
			"restore the folder from a copy that has what is missing, or go on without it: "+
				"clobd recover --data %s --accept-loss", c.Data)
	}
	if l, err = journal.AcceptLoss(ctx, o, freshState); err != nil {
		return c.explain(err)
	}
	fmt.Printf("accepted: the journal ends with Sequence %d, frame %d; what was cut off is in %s\n",
		l.Head.Sequence, l.Head.Frame, l.Kept)
	return nil
}

// tell says what is wrong and what is lost.
func (c *recoverCommand) tell(l *journal.Loss) {
	why := strings.TrimSuffix(l.Why.Error(), "; "+journal.Advice(l.Why))
	why, _, _ = strings.Cut(why, "\n")
	fmt.Printf("refused: %s\n", why)
	fmt.Printf("good: up to Sequence %d, frame %d\n", l.Head.Sequence, l.Head.Frame)
	first, last, count := l.Lost()
	switch {
	case count > 0:
		fmt.Printf("lost: %d acknowledged commands, Sequences %d to %d\n", count, first, last)
	case l.Marked:
		fmt.Println("lost: nothing that is known to have been acknowledged")
	default:
		fmt.Println("lost: nobody knows how much, for there is no high-water mark that can be read")
	}
	if l.Frames > 0 {
		fmt.Printf("cut: %d frames behind it, which cannot be used\n", l.Frames)
	}
}

// rebuild makes the index anew.
func (c *recoverCommand) rebuild(ctx context.Context) error {
	j, err := c.open(true)
	if err != nil {
		return err
	}
	defer j.Close()
	bar := newProgress("index", "frames")
	at, err := j.RebuildIndex(ctx, journal.IndexOptions{Log: quiet(), Builder: builderOf}, bar.show)
	bar.end()
	if err != nil {
		return c.explain(err)
	}
	fmt.Printf("index made anew: up to Sequence %d\n", at)
	return nil
}
