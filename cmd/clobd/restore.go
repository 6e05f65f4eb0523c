package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/journal"
)

type restoreCommand struct {
	From string `required:"" help:"A backup."`
	Data string `required:"" help:"Data folder to be made: it must not exist, or be empty, a disk's own folder for instance."`
}

// Run copies a backup and checks the copy: the folder is there only if it is good.
func (c *restoreCommand) Run(ctx context.Context) (err error) {
	if !exists(c.From, "journal") {
		return cli.Hint(fmt.Errorf("%s is no backup: there is no journal in it", c.From),
			"--from names a folder that clobd backup has made")
	}
	stage, err := c.stage()
	if err != nil {
		return err
	}
	part := stage.part
	note, err := readBackupNote(c.From)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stage.discard())
		}
	}()
	done, total, bar := uint64(0), folderSize(c.From), newProgress(newScreen(), "copy", "bytes")
	err = copyTree(c.From, part, func(bytes int64) {
		done += uint64(bytes)
		bar.show(done, total)
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("copy %s: %w", c.From, err)
	}
	if err := c.check(ctx, part, note); err != nil {
		return err
	}
	for _, name := range []string{backupNoteName, scrubMemoName} { // the latter of a data folder
		if err := os.Remove(filepath.Join(part, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := stage.finish(); err != nil {
		return err
	}
	fmt.Printf("restored to %s\n", c.Data)
	if len(masterFiles(filepath.Join(c.Data, masterName))) == 0 {
		fmt.Println("there is no master.key in it: put the node's own there, or name it with " +
			"--master-key, before it is started")
	}
	return nil
}

// stage refuses to copy a backup into itself: that would have no end.
func (c *restoreCommand) stage() (*stage, error) {
	from, err := resolve(c.From)
	if err != nil {
		return nil, err
	}
	to, err := resolve(c.Data)
	if err != nil {
		return nil, err
	}
	if within(to, from) {
		return nil, cli.Hint(fmt.Errorf("%s lies in the backup %s", c.Data, c.From),
			"--data names a folder outside of it")
	}
	return newStage(c.Data)
}

// readBackupNote returns nil if the folder is no backup but another data folder.
func readBackupNote(dir string) (*backupNote, error) {
	file := filepath.Join(dir, backupNoteName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	note := &backupNote{}
	if err == nil {
		err = json.Unmarshal(text, note)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return note, nil
}

// check verifies the copy and compares it with the note of the backup.
func (c *restoreCommand) check(ctx context.Context, part string, note *backupNote) error {
	j, err := journal.Open(journal.Options{Dir: part, ReadOnly: true, Log: quiet()})
	if err != nil {
		return failed(role.Advised(err))
	}
	defer j.Close()
	r := &report{}
	var h *engine.Head
	if j.Hole > 0 {
		if err = j.Close(); err == nil {
			h, err = c.checkHoled(ctx, part)
		}
	} else {
		h, err = r.journal(ctx, j, nil)
	}
	if err != nil {
		return err
	}
	r.catalog(part)
	if note != nil {
		if hash := fmt.Sprintf("%x", h.Hash); h.Sequence != note.Sequence || hash != note.Hash ||
			fmt.Sprintf("%016x", uint64(h.Digest)) != note.Digest {
			r.find(journal.Finding{Where: filepath.Join(c.From, backupNoteName),
				What: fmt.Sprintf("the backup was made at Sequence %d with hash %s, the journal in it "+
					"ends at %d with %s", note.Sequence, note.Hash, h.Sequence, hash),
				Hint: "take another backup"})
		}
	}
	if r.findings > 0 {
		return cli.Hint(fmt.Errorf("%s: %d findings: nothing was restored", c.From, r.findings),
			"take another backup")
	}
	return nil
}

// checkHoled checks a copy with an accepted loss: the index must have the history of the holes.
func (c *restoreCommand) checkHoled(ctx context.Context, part string) (*engine.Head, error) {
	o := journal.Options{Dir: part, Log: quiet()}
	l, err := journal.Diagnose(ctx, rescuing(o, role.Fresh))
	if err != nil {
		return nil, failed(role.Advised(err))
	}
	if l.Why != nil || !l.Starts || len(l.Holes) > 0 && !l.Indexed {
		if tellHoles(l); l.Why != nil {
			fmt.Printf("finding: %v\n", l.Why)
		}
		return nil, cli.Hint(fmt.Errorf("%s: more is missing than the loss that was accepted: nothing "+
			"was restored", c.From), "take another backup")
	}
	fmt.Printf("the journal is good up to Sequence %d, frame %d, digest %016x\n", l.Head.Sequence,
		l.Head.Frame, uint64(l.Head.Digest))
	tellHoles(l)
	return &l.Head, nil
}
