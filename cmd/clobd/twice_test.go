package main

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/cmd/clobd/papers"
	"clobd/scripts/setting"
)

// TestTwice flips every bit of a sample of bytes of each secret and each paper of a member, and of
// their copies. What a start reads is what it was, and so are the files. With a file and its copy
// damaged the start is refused by name.
func TestTwice(t *testing.T) {
	t.Parallel()
	a := lonelyMember(t)
	a.start(t)
	a.stop(t)
	var said bytes.Buffer
	s := &settings{serveCommand: &serveCommand{Data: a.data},
		log: slog.New(slog.NewTextHandler(&said, nil))}
	reads := map[string]func() error{
		"master.key": func() error {
			found, err := s.masterSecrets()
			forget(found)
			return err
		},
		"admin.token": func() error {
			_, err := s.adminToken()
			return err
		},
		"cluster/member.json": func() error {
			_, _, err := papers.Keep(a.data, s.log, func(func() error) {})
			return err
		},
	}
	reads["master.check"] = reads["master.key"]
	for _, name := range []string{"node.pem", "node.key", "ca.pem"} {
		reads["cluster/"+name] = reads["cluster/member.json"]
	}
	for name, read := range reads {
		for _, file := range []string{name, name + ".copy"} {
			whole := a.folder(t)
			path := filepath.Join(a.data, file)
			about, err := os.Stat(path)
			if err != nil || about.Mode().Perm() != 0o600 {
				t.Fatal(about, err)
			}
			size := int(about.Size())
			for at := 0; at < size; at += max(size/setting.Size(t, 24, 4), 1) {
				for bit := range 8 {
					flipBit(t, path, at, bit)
					said.Reset()
					if err := read(); err != nil {
						t.Fatalf("byte %d of %s: %v", at, file, err)
					}
					if !strings.Contains(said.String(), name) || strings.Contains(said.String(), "error=") {
						t.Fatalf("byte %d of %s: %s", at, file, said.String())
					}
				}
			}
			for name, b := range a.folder(t) {
				if !bytes.Equal(b, whole[name]) {
					t.Fatalf("%s: %s is not what it was", file, name)
				}
			}
		}
		flipBit(t, filepath.Join(a.data, name), 1, 0)
		flipBit(t, filepath.Join(a.data, name+".copy"), 80, 0)
		both := filepath.Join(a.data, name) + " or its copy"
		if err := read(); err == nil || !strings.Contains(err.Error(), both) {
			t.Errorf("both of %s: %v", name, err)
		}
		flipBit(t, filepath.Join(a.data, name), 1, 0)
		if err := read(); err != nil {
			t.Errorf("%s without its copy: %v", name, err)
		}
	}
	a.flipsAll(t, slices.Sorted(maps.Keys(reads)))
}

// flipsAll starts the node with one bit of each file flipped, and with a file and its copy damaged.
func (a *process) flipsAll(t *testing.T, names []string) {
	t.Helper()
	whole := a.folder(t)
	for _, name := range names {
		flipBit(t, filepath.Join(a.data, name), 9, 1)
	}
	a.start(t)
	a.stop(t)
	if n := strings.Count(a.log.String(), "a file was damaged and is whole again"); n != len(names) {
		t.Errorf("%d of %d files: %s", n, len(names), a.log.String())
	}
	for _, name := range names {
		if !bytes.Equal(a.folder(t)[name], whole[name]) {
			t.Errorf("%s is not what it was", name)
		}
	}
	for _, name := range []string{"master.key", "cluster/member.json"} {
		file := filepath.Join(a.data, name)
		flipBit(t, file, 9, 1)
		flipBit(t, file+".copy", 99, 1)
		code, text := refusedStart(t, a.binary, append([]string{"--data", a.data}, a.flags...)...)
		if code == 0 || !strings.Contains(text, file+" or its copy") {
			t.Errorf("both of %s: %d %s", name, code, text)
		}
		flipBit(t, file, 9, 1)
	}
	if err := os.Remove(filepath.Join(a.data, "master.key.copy")); err != nil {
		t.Fatal(err)
	}
	a.start(t) // as a folder of before
	a.stop(t)
	for _, name := range names {
		if !bytes.Equal(a.folder(t)[name+".copy"], whole[name+".copy"]) {
			t.Errorf("%s has no copy", name)
		}
	}
}

// lonelyMember makes a cluster of one voter.
func lonelyMember(t *testing.T) *process {
	t.Helper()
	binary, place := buildNode(t), "a@"+freeAddress(t)
	p := newProcess(t, binary, filepath.Join(t.TempDir(), "a"), "--cluster", place)
	if said, done := command(t, binary, "cluster", "init", "--data", p.data, "--cluster", place); !done {
		t.Fatal(said)
	}
	return p
}

// folder is what the small files of a folder hold.
func (p *process) folder(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"master*", "admin*", "cluster/*"} {
		names, err := filepath.Glob(filepath.Join(p.data, pattern))
		for _, path := range names {
			name, _ := filepath.Rel(p.data, path)
			if all[name], err = os.ReadFile(path); err != nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// flipBit flips one bit of a file.
func flipBit(t *testing.T, path string, at, bit int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		b[at] ^= 1 << bit
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
