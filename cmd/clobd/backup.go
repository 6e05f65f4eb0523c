package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"clobd/api/catalog"
	"clobd/cmd/clobd/client"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/disk"
)

type backupCommand struct {
	client.Operator
	To   string `required:"" help:"Folder to be made, on the node's machine. It is a data folder, without the index, which the first start makes, unless a loss was accepted that only the index can tell of. On the same disk files that never change are linked, so that it takes little room: copy it elsewhere."`
	Keys bool   `help:"Put DATA/master.key in, too: whoever has the backup then has all API keys."`
}

const backupTime = 12 * time.Hour

func (c *backupCommand) Run() error {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return fmt.Errorf("back up to %s: %w", c.To, err)
	}
	request := map[string]string{"to": to}
	if c.Keys {
		request["keys"] = "true"
	}
	total := folderSize(filepath.Join(c.Data, "journal"))
	bar, done := newProgress(newScreen(), "backup", "bytes"), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-time.After(progressBlink):
				bar.show(folderSize(to+partSuffix)+folderSize(to), total)
			case <-done:
				return
			}
		}
	})
	text, err := c.Post("/admin/backup", request, backupTime)
	close(done)
	watching.Wait()
	bar.end()
	if err != nil {
		return err
	}
	fmt.Println(text)
	var told backupNote
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if told.Keys {
		fmt.Println("it holds master.key: keep it as secret as that")
	} else {
		fmt.Println("it does not hold master.key, from which all API keys derive: keep that elsewhere")
	}
	if told.Hole > 0 {
		fmt.Printf("its journal has not all frames up to %d, as clobd recover --accept-loss left it: the "+
			"index, which knows what was in them, is in it and cannot be made anew\n", told.Hole)
	}
	return nil
}

func folderSize(dir string) (total uint64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if about, err := e.Info(); err == nil && about.Mode().IsRegular() {
			total += uint64(about.Size())
		}
		return nil
	})
	return total
}

const (
	partSuffix     = ".part" // ends the name of a folder that is not whole yet
	backupNoteName = "backup.json"
)

type backupNote struct {
	To         string          `json:"to,omitempty"`
	Created    time.Time       `json:"created"`
	Version    string          `json:"version"`
	Journal    string          `json:"journal"`
	Sequence   engine.Sequence `json:"sequence"`
	Frame      uint64          `json:"frame"`
	Digest     string          `json:"digest"`
	Hash       string          `json:"hash"`
	Checkpoint engine.Sequence `json:"checkpoint"` // 0: none
	Bytes      int64           `json:"bytes"`
	Keys       bool            `json:"keys"`
	// Hole is the last frame that an accepted loss left out: the index is in the backup then.
	Hole uint64 `json:"hole,omitempty"`
	// Damaged says what of the catalog was left out because it does not check out: such a backup is
	// not called good.
	Damaged string `json:"damagedCatalog,omitempty"`
}

func (n *node) backupRoute(w http.ResponseWriter, r *http.Request) {
	var asked struct{ To, Keys string }
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<10))
	if err != nil || json.Unmarshal(body, &asked) != nil || !filepath.IsAbs(asked.To) {
		tell(w, http.StatusBadRequest, problem{"to is not an absolute path",
			`send {"to":"/folder/to/be/made"}, and "keys":"true" for master.key`})
		return
	}
	if n.cluster != nil { // it would answer for what it has forgotten
		tell(w, http.StatusConflict, problem{"no copy of a cluster's member", "the others are its copies"})
		return
	}
	if !n.backing.TryLock() {
		tell(w, http.StatusServiceUnavailable, problem{"another backup is being made",
			"wait until it is done"})
		return
	}
	defer n.backing.Unlock()
	note, err := n.backup(filepath.Clean(asked.To), asked.Keys == "true")
	if err != nil {
		n.log.Error("backup failed", "to", asked.To, "error", err)
		tell(w, http.StatusInternalServerError, problem{err.Error(), "nothing was left there: " +
			"try again, or another place; the folder must not exist yet, or be empty"})
		return
	}
	n.log.Info("backup", "to", note.To, "sequence", note.Sequence, "bytes", note.Bytes)
	if note.Damaged != "" {
		tell(w, http.StatusInternalServerError, problem{"the catalog is damaged: " + note.Damaged + "; " +
			note.To + " has all the rest", "start the node again: it reads the catalog from its source " +
			"as a whole; then make another backup"})
		return
	}
	tell(w, http.StatusOK, note)
}

// backup copies all that is journaled so far, whole or not at all. Trading goes on.
func (n *node) backup(to string, keys bool) (note *backupNote, err error) {
	stage, err := newStage(to)
	if err != nil {
		return nil, err
	}
	part := stage.part
	defer func() {
		if err != nil {
			err = errors.Join(err, stage.discard())
		}
	}()
	copied, err := n.role.Journal.Backup(part, n.index.Copy)
	if err != nil {
		return nil, err
	}
	if err = readBack(part); err != nil {
		return nil, err
	}
	h := &copied.Head
	note = &backupNote{Created: time.Now().UTC(), Version: version,
		Journal: fmt.Sprintf("%016x", copied.Journal), Sequence: h.Sequence, Frame: h.Frame,
		Digest: fmt.Sprintf("%016x", uint64(h.Digest)), Hash: fmt.Sprintf("%x", h.Hash),
		Hole: copied.Hole}
	if copied.Checkpoint != nil {
		note.Checkpoint = copied.Checkpoint.Head.Sequence
	}
	markets, err := catalog.CopyFolder(filepath.Join(n.Data, "catalog"),
		filepath.Join(part, "catalog"))
	if err != nil {
		return nil, err
	}
	note.Bytes = copied.Bytes + markets.Bytes
	if m := &markets.Missing; m.Bytes > 0 {
		note.Damaged = fmt.Sprintf("%s: %d bytes behind what is good were left out, %d whole records "+
			"among them", m.File, m.Bytes, m.Records)
		n.log.Warn("the catalog is damaged, the backup has its good part", "file", m.File,
			"bytes", m.Bytes, "records", m.Records)
	}
	if note.Keys, err = n.backupFiles(part, keys); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(note, "", "  ")
	if err != nil {
		return nil, err
	}
	if err = disk.Replace(filepath.Join(part, backupNoteName), []byte(string(text)+"\n")); err != nil {
		return nil, err
	}
	note.To = to
	return note, stage.finish()
}

// readBack reads what was copied, and refuses it if any of it is damaged.
func readBack(part string) error {
	j, err := journal.Open(journal.Options{Dir: part, ReadOnly: true, Log: quiet()})
	if err != nil {
		return err
	}
	found, err := journal.Scrub(context.Background(), j, 2*scrubRate)
	if err = errors.Join(err, j.Close()); err == nil && found.Damaged > 0 {
		err = fmt.Errorf("the copy is damaged, as is what was copied: %s", found.Damages[0])
	}
	return err
}

// backupFiles copies the small files and reports whether master.key is among them.
func (n *node) backupFiles(part string, keys bool) (secret bool, err error) {
	names := []string{secretCheckName}
	for _, file := range masterFiles(filepath.Join(n.Data, masterName)) {
		if secret = keys; secret {
			names = append(names, filepath.Base(file.path))
		}
	}
	if keys && !secret {
		return false, errors.New("master.key is not in the data folder: leave --keys out")
	}
	for _, name := range names {
		if exists(n.Data, name) {
			err = errors.Join(err, copyDurably(filepath.Join(n.Data, name), filepath.Join(part, name)))
		}
	}
	if err == nil && exists(n.Data, "poison") {
		err = copyTree(filepath.Join(n.Data, "poison"), filepath.Join(part, "poison"), nil)
	}
	if err == nil {
		err = checkKeys(part)
	}
	return secret, err
}

// checkKeys refuses copies of secrets that are not those of their master.check.
func checkKeys(part string) error {
	check, err := readSecretCheck(part)
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(masterFiles(filepath.Join(part, masterName)),
		func(file masterAt) bool { return check.retired(file.number) })
	if len(files) == 0 {
		return nil // a backup without keys
	}
	found, err := readMasters(files, auth.LoadSecret)
	if err != nil {
		return err
	}
	defer forget(found)
	_, err = check.compare(part, found)
	return err
}

// copyDurably copies a file with its permissions. The caller syncs the folder.
func copyDurably(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	about, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, about.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// copyTree copies a folder durably and calls each with the size of every file.
func copyTree(from, to string, each func(bytes int64)) error {
	if err := disk.MakeFolder(nil, to); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			err = copyTree(source, target, each)
		} else if err = copyDurably(source, target); err == nil && each != nil {
			if about, no := e.Info(); no == nil {
				each(about.Size())
			}
		}
		if err != nil {
			return err
		}
	}
	return syncFolder(to)
}
