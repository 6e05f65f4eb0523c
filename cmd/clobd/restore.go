package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"clobd/cmd/cli"
	"clobd/journal"
)

type restoreCommand struct {
	From string `required:"" help:"A backup."`
	Data string `required:"" help:"Data folder to be made: it must not exist, or be empty."`
}

// Run copies a backup into a new data folder and checks the copy: the folder is there only if it is
// good.
func (c *restoreCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !exists(c.From, "journal") {
		return cli.Hint(fmt.Errorf("%s is no backup: there is no journal in it", c.From),
			"--from names a folder that clobd backup has made")
	}
	if err := mustBeEmpty(c.Data); err != nil {
		return err
	}
	note, err := readBackupNote(c.From)
	if err != nil {
		return err
	}
	part := filepath.Clean(c.Data) + partSuffix
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("remove what is left of another restore: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
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
	if err := os.Remove(filepath.Join(part, backupNoteName)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := moveFolder(part, filepath.Clean(c.Data)); err != nil {
		return err
	}
	fmt.Printf("restored to %s\n", c.Data)
	if !exists(c.Data, "master.key") {
		fmt.Println("there is no master.key in it: put the node's own there, or name it with " +
			"--master-key, before it is started")
	}
	return nil
}

// readBackupNote reads what a backup says of itself; nil if it is another data folder.
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

// check verifies the copy and holds it against what the backup says of itself.
func (c *restoreCommand) check(ctx context.Context, part string, note *backupNote) error {
	j, err := journal.Open(journal.Options{Dir: part, ReadOnly: true, Log: quiet()})
	if err != nil {
		return failed(advised(err))
	}
	defer j.Close()
	r := &report{}
	v, err := r.journal(ctx, j, nil)
	if err != nil {
		return err
	}
	r.catalog(part)
	if h := &v.Head; note != nil {
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
