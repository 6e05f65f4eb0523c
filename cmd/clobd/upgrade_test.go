package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/engine"
	"clobd/scripts/setting"
)

// The versions of the rules that the program of today knows, and the one that only buildNext knows.
const (
	rulesNow  = engine.Oldest
	rulesNext = engine.Oldest + 1
)

// buildNext builds a node that knows one version of the rules more.
func buildNext(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(os.Getenv(builtVariable), "clobd-next")
	if exists(binary) {
		return binary
	}
	output, err := exec.Command("go", "build", "-buildvcs=false", "-tags", "nextrules,pebblegozstd",
		"-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return binary
}

// rules are the versions in force at the nodes, by their names; 0: a node does not say.
func (f *fleet) rules() map[string]uint16 {
	all := map[string]uint16{}
	for name, p := range f.nodes {
		s, err := standing(p)
		if all[name] = s.Rules; err != nil {
			all[name] = 0
		}
	}
	return all
}

// refusedOld starts a node with a program, and requires that it ends and says why.
func refusedOld(t *testing.T, p *process, binary string, wants ...string) {
	t.Helper()
	was := p.binary
	p.binary = binary
	p.launch(t)
	said := expectEnd(t, p)
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("not %q: %s", want, said)
		}
	}
	p.binary = was
}

// TestClusterUpgrade replaces the program of one member after the other under load, the leader's
// last. The rules stay as they are until all members know later ones, and then change once, for
// all. Nothing that was acknowledged is lost, the old program is refused by name, and a replay goes
// over the change.
func TestClusterUpgrade(t *testing.T) {
	setting.Full(t, "a replay over a change of the rules is in the tests of the engine")
	t.Parallel()
	f, next := newFleet(t, 2), buildNext(t)
	now, leader := f.nodes["g"].binary, f.agree(t)
	order := append(slices.DeleteFunc([]string{"g", "a", "b", "c"}, func(name string) bool {
		return name == leader
	}), leader)
	for i := range order {
		f.renew(t, next, order[i:])
		if f.agree(t); t.Failed() {
			t.Fatal(f.logs())
		}
	}
	f.burst(t, "", func() { f.raised(t) })
	s, err := standing(f.nodes[f.agree(t)])
	for _, n := range s.Nodes {
		if err != nil || n.Rules != rulesNext {
			t.Errorf("who leads sees %+v %v", n, err)
		}
	}
	f.check(t)
	g := f.nodes["g"]
	g.stop(t)
	refusedOld(t, g, now, "of another version", fmt.Sprintf("engine version %d", rulesNext))
	g.start(t)
	f.agree(t)
	f.nodes["a"].binary = now // of the one that joins
	d := f.join(t, f.nodes["a"], "d")
	if said, want := expectEnd(t, d), fmt.Sprintf("refuses this node: its clobd knows the rules up to "+
		"version %d, and version %d is in force", rulesNow, rulesNext); !strings.Contains(said, want) {
		t.Errorf("not %q: %s", want, said)
	}
	f.agree(t)
	f.check(t)
	for _, name := range f.names {
		f.nodes[name].stop(t)
		if said, done := command(t, next, "verify", "--data", f.nodes[name].data); !done {
			t.Errorf("%s: %s", name, said)
		}
	}
	if said, done := command(t, now, "verify", "--data", g.data); done ||
		!strings.Contains(said, "of another version") {
		t.Errorf("the old program: %s", said)
	}
	if t.Failed() {
		t.Log(f.logs())
	}
}

// renew gives the first of these members the next program, under load. Those behind it have the old
// one: no later rules are in force, however long all but one know them.
func (f *fleet) renew(t *testing.T, next string, members []string) {
	t.Helper()
	name := members[0]
	p := f.nodes[name]
	b, pause := f.burst(t, name, func() {
		p.stop(t)
		p.binary = next
		p.start(t)
		if len(members) == 2 {
			time.Sleep(10 * time.Second)
		}
		for at, version := range f.rules() {
			if version > rulesNow && len(members) > 1 {
				t.Errorf("version %d is in force at %s, and %v have the old program", version, at, members[1:])
			}
		}
	})
	t.Logf("%s has the new program: %d acknowledged, %d refused, %d unknown, %v without writes", name,
		len(b.acks), b.refused, b.unknown, pause.Round(time.Millisecond))
}

// raised waits until the next version is in force at all nodes.
func (f *fleet) raised(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		all, there := f.rules(), 0
		for _, version := range all {
			if version == rulesNext {
				there++
			}
		}
		if there == len(f.names) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("versions in force: %v\n%s", all, f.logs())
		}
	}
}

// TestUpgradeAlone: a node that is alone puts the rules in force that its program knows, once. From
// then on the program of before does not start, and changes nothing.
func TestUpgradeAlone(t *testing.T) {
	setting.Full(t, "a replay over a change of the rules is in the tests of the engine")
	t.Parallel()
	next := buildNext(t)
	folder := t.TempDir()
	catalog := filepath.Join(folder, "catalog.jsonl")
	writeCatalog(t, catalog, 2)
	p := newProcess(t, buildNode(t), folder, "--catalog", catalog)
	now := p.binary
	shows := func(version int) {
		t.Helper()
		answer, err := http.Get("http://" + p.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(answer.Body); err != nil ||
			!strings.Contains(text.String(), fmt.Sprintf("\nclobd_sequencer_rules %d\n", version)) {
			t.Errorf("version %d is not in force: %v\n%s", version, err, text.String())
		}
	}
	p.start(t)
	shows(rulesNow)
	p.kill(t)
	p.binary = next
	for range 2 {
		p.start(t)
		shows(rulesNext)
		p.fund(t, "0x0000000000000000000000000000000000000001", "5")
		p.kill(t)
	}
	refusedOld(t, p, now, "of another version", fmt.Sprintf("engine version %d", rulesNext))
	p.start(t)
	p.leave(t)
	if said, done := command(t, next, "verify", "--data", p.data); !done {
		t.Error(said)
	}
	said, done := command(t, next, "inspect", "--data", p.data, "--json")
	if n := strings.Count(said, `"raise"`); !done || n != 1 {
		t.Errorf("%d raises: %s", n, said)
	}
}
