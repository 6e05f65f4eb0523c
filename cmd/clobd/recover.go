package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/journal"
	"clobd/journal/history"
)

type recoverCommand struct {
	offline
	AcceptLoss bool `help:"Go on with what is good of the journal, and keep what is cut off, damaged files included, in DATA/lost-…: the only way past a start that is refused because acknowledged commands are missing. Without it what loses something is told and not done."`
	Index      bool `help:"Make the index anew from the journal."`
}

func (c *recoverCommand) Run(ctx context.Context) error {
	if c.Index && c.AcceptLoss {
		return &cli.UsageError{Err: cli.Hint(fmt.Errorf("both --index and --accept-loss"),
			"--accept-loss makes the index anew, too, at the next start")}
	}
	if c.Index {
		return c.rebuild(ctx)
	}
	return c.journal(ctx)
}

// journal prints the loss and repairs what it may.
func (c *recoverCommand) journal(ctx context.Context) error {
	o := c.options(true)
	o.Log = silent()
	bar := newProgress(newScreen(), "journal", "frames")
	l, err := journal.Diagnose(ctx, rescuing(o, replayed(bar, 0)))
	bar.end()
	if err != nil {
		return c.explain(err)
	}
	if l.Undone != "" {
		fmt.Printf("undone: an earlier clobd recover was interrupted; the journal is back from %s\n",
			l.Undone)
	}
	if l.Why == nil {
		fmt.Printf("nothing is lost: the journal is good up to Sequence %d, frame %d, digest %016x\n",
			l.Head.Sequence, l.Head.Frame, uint64(l.Head.Digest))
		tellHoles(l)
		return nil
	}
	c.tell(l)
	told := *l
	switch {
	case l.Final:
		return failed(role.Advised(l.Why))
	case l.Whole:
		l, err = journal.Repair(ctx, rescuing(o, role.Fresh))
	case c.AcceptLoss:
		l, err = journal.AcceptLoss(ctx, rescuing(o, role.Fresh))
	case l.Starts:
		return cli.Hint(errors.New("a part of the journal cannot be read; a start goes on without it, "+
			"and nothing was changed"), "clobd restore brings back a copy that has it; to go on without "+
			"it and put the damaged files aside: clobd recover --data %s --accept-loss", c.Data)
	default:
		return cli.Hint(errors.New("a start is refused, and nothing was changed"),
			"clobd restore brings back a copy that has what is missing; to go on without it: clobd "+
				"recover --data %s --accept-loss", c.Data)
	}
	if err != nil {
		return c.explain(err)
	}
	c.tellDone(&told, l)
	return nil
}

// tellDone prints what was done. A node may have run since tell: then the loss is told again.
func (c *recoverCommand) tellDone(told, l *journal.Loss) {
	if l.Why == nil {
		fmt.Printf("nothing was done: by now the journal is good up to Sequence %d\n", l.Head.Sequence)
		return
	}
	if l.Head != told.Head || l.Mark != told.Mark || l.Frames != told.Frames {
		fmt.Println("since it was told above the journal has changed:")
		c.tell(l)
	}
	if l.Kept == "" { // it was good without a loss, and is not any more
		fmt.Println("nothing was changed: run this again")
		return
	}
	done := "accepted"
	if l.Whole {
		done = "made good"
	}
	fmt.Printf("%s: the journal ends with Sequence %d, frame %d; what was there is in %s\n", done,
		l.Head.Sequence, l.Head.Frame, l.Kept)
	if _, _, count := l.Lost(); count > 0 || l.Frames > 0 {
		fmt.Printf("Sequences from %d on are given again: the ids and transaction hashes of lost trades, "+
			"if somebody was told of them, will name others\n", l.Head.Sequence+1)
	}
}

func (c *recoverCommand) tell(l *journal.Loss) {
	what := "refused"
	if l.Starts {
		what = "damaged"
	}
	why := strings.TrimSuffix(l.Why.Error(), "; "+journal.Advice(l.Why))
	why, _, _ = strings.Cut(why, "\n")
	fmt.Printf("%s: %s\n", what, why)
	for _, file := range l.Unread {
		fmt.Printf("unread: %s\n", file)
	}
	if l.Final {
		return
	}
	if l.Unflipped > 0 {
		fmt.Printf("brought back: %d frames of which one bit was flipped; what follows them proves it\n",
			l.Unflipped)
	}
	fmt.Printf("good: up to Sequence %d, frame %d\n", l.Head.Sequence, l.Head.Frame)
	tellHoles(l)
	first, last, count := l.Lost()
	switch {
	case count > 0:
		fmt.Printf("lost: %d acknowledged commands, Sequences %d to %d\n", count, first, last)
	case l.Marked && len(l.Holes) > 0:
		fmt.Println("lost: nothing but the history of what cannot be read")
	case l.Marked:
		fmt.Println("lost: nothing that is known to have been acknowledged")
	case l.Foreign:
		fmt.Println("lost: nobody knows how much, for the high-water mark belongs to another journal")
	default:
		fmt.Println("lost: nobody knows how much, for there is no high-water mark that can be read")
	}
	if l.Frames > 0 {
		fmt.Printf("cut: %d frames behind it, which cannot be used\n", l.Frames)
	}
}

const toldHoles = 20

func tellHoles(l *journal.Loss) {
	for i, h := range l.Holes {
		if i == toldHoles {
			fmt.Printf("unreadable: %d more ranges of Sequences\n", len(l.Holes)-i)
			break
		}
		fmt.Printf("unreadable: Sequences %d to %d\n", h.First, h.Last)
	}
	switch {
	case len(l.Holes) == 0:
	case l.Indexed:
		fmt.Printf("kept: the state is complete, through the checkpoint at Sequence %d, and the index "+
			"has the history of that range; signatures and the chain of it are gone, and without "+
			"this index no other one can be made: keep a copy of the folder\n", l.Through)
	case l.Through > 0:
		fmt.Printf("not enough: a checkpoint has the state at Sequence %d, but no index has the history "+
			"of that range (orders, trades, what positions cost), and without it nobody can tell an "+
			"old order from a new one: so the journal ends before it\n", l.Through)
	}
}

func (c *recoverCommand) rebuild(ctx context.Context) error {
	j, err := c.open(true)
	if err != nil {
		return err
	}
	defer j.Close()
	bar := newProgress(newScreen(), "index", "frames")
	at, err := history.Rebuild(ctx, j, history.Options{Log: quiet(), Builder: builderOf}, bar.show)
	bar.end()
	if err != nil {
		return c.explain(err)
	}
	fmt.Printf("index made anew: up to Sequence %d\n", at)
	return nil
}
