package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// TestLockTaken: whoever deletes or replaces the lock's file beside a running node opens the folder
// to nobody, and the node, which cannot tell who will be next, ends. The same holds of the folder.
// Nothing acknowledged is lost.
func TestLockTaken(t *testing.T) {
	setting.Full(t, "it waits for a deadline")
	t.Parallel()
	for _, c := range []struct {
		what string
		take func(journal string) error
		back func(journal string) error // nil: a start does without
	}{
		{"deleted", func(journal string) error { return os.Remove(filepath.Join(journal, "LOCK")) }, nil},
		{"replaced", func(journal string) error {
			file := filepath.Join(journal, "LOCK")
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, nil, 0o600))
		}, nil},
		{"moved", func(journal string) error { return os.Rename(journal, journal+".old") },
			func(journal string) error { return os.Rename(journal+".old", journal) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := newProcess(t, buildNode(t), t.TempDir())
			p.start(t)
			p.fund(t, "0x8ba1f109551bD432803012645Ac136ddd64DBA72", "7")
			before := p.sequence(t)
			// While the node sleeps it cannot notice: only its locks keep others out.
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(p.data, "journal")
			if err := c.take(journal); err != nil {
				t.Fatal(err)
			}
			p.expect(t, cli.Failed, []string{"serve", "--data", p.data, "--disk-ballast", "0",
				"--listen", freeAddress(t), "--admin", freeAddress(t)}, "is in use by", "hint: ")
			if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-p.ended:
				p.cmd = nil
				var ended *exec.ExitError
				if !errors.As(err, &ended) || ended.ExitCode() != cli.Broken {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(patience):
				t.Fatalf("it goes on without its lock:\n%s", p.log.String())
			}
			if log := p.log.String(); !strings.Contains(log, "was deleted, moved or replaced") ||
				!strings.Contains(log, "hint: nothing acknowledged is lost") {
				t.Errorf("it does not say why:\n%s", log)
			}
			if c.back != nil {
				if err := c.back(journal); err != nil {
					t.Fatal(err)
				}
			}
			p.start(t)
			if after := p.sequence(t); after < before {
				t.Errorf("it goes on from Sequence %d, and %d was acknowledged", after, before)
			}
			p.stop(t)
		})
	}
}

// TestLockOfANewFolder: of two nodes that begin in one empty folder at once, one is refused.
func TestLockOfANewFolder(t *testing.T) {
	binary, folder := buildNode(t), t.TempDir()
	first, second := newProcess(t, binary, folder), newProcess(t, binary, folder)
	first.launch(t)
	second.launch(t)
	var loser, winner *process
	select {
	case <-first.ended:
		loser, winner = first, second
	case <-second.ended:
		loser, winner = second, first
	case <-time.After(patience):
		t.Fatal("both serve one folder")
	}
	loser.cmd = nil // nothing is left to be killed
	if log := loser.log.String(); !strings.Contains(log, "is in use by") {
		t.Errorf("the second ends with\n%s", log)
	}
	winner.await(t)
}
