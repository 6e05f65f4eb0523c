package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// command runs a command of the program, and returns what it says and whether that is with code 0.
func command(t *testing.T, binary string, args ...string) (said string, done bool) {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// invited asks a member for a token.
func invited(t *testing.T, p *process, place string) (i role.Invitation) {
	t.Helper()
	o := client.Operator{Admin: p.admin, Data: p.data}
	text, err := o.Post("/admin/cluster/invite", map[string]string{"node": place}, time.Minute)
	if err == nil {
		err = json.Unmarshal([]byte(text), &i)
	}
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// newcomer is a node of the fleet's exchange that has no folder yet.
func (f *fleet) newcomer(t *testing.T, like *process, name string) (p *process, place string) {
	t.Helper()
	place = name + "@" + freeAddress(t)
	flags := slices.Clone(like.flags)
	flags[slices.Index(flags, "--cluster")+1] = place
	return newProcess(t, like.binary, t.TempDir(), flags...), place
}

// join lets a newcomer in and starts it.
func (f *fleet) join(t *testing.T, by *process, name string) *process {
	t.Helper()
	p, place := f.newcomer(t, by, name)
	i := invited(t, by, place)
	if said, done := command(t, p.binary, "cluster", "join", "--data", p.data, "--cluster", place, "--from",
		i.From, "--token", i.Token); !done {
		t.Fatal(said)
	}
	p.launch(t)
	return p
}

// ask asks the member that leads to change another one.
func (f *fleet) ask(t *testing.T, what, name string) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p := f.nodes[f.agree(t)]
		o := client.Operator{Admin: p.admin, Data: p.data}
		_, err = o.Post("/admin/cluster/"+what, map[string]string{"node": name}, time.Minute)
		if err == nil {
			return
		}
	}
	t.Fatalf("%s %s: %v\n%s", what, name, err, f.logs())
}

// TestClusterJoin lets a new member join under load, promotes it and kills the leader: nothing that
// was acknowledged is lost, and the new one answers everything.
func TestClusterJoin(t *testing.T) {
	setting.Full(t, "a member that joins is in TestClusterTokens, one that is promoted in "+
		"TestClusterChange")
	t.Parallel()
	f := newFleet(t, 1)
	if a := f.nodes["a"]; f.agree(t) == "a" { // who lets members in asks who leads
		o := client.Operator{Admin: a.admin, Data: a.data}
		if _, err := o.Post("/admin/cluster/step-down", map[string]string{}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	var d *process
	b, pause := f.burst(t, "", func() {
		d = f.join(t, f.nodes["a"], "d")
		d.await(t)
	})
	t.Logf("joined: %d acknowledged, %d refused, %d unknown, %v without writes", len(b.acks), b.refused,
		b.unknown, pause.Round(time.Millisecond))
	f.nodes["d"], f.names = d, append(f.names, "d")
	leader := f.agree(t)
	x := newTrader(t, "http://"+d.listen, f.tokens, f.rand)
	f.nodes["a"].fund(t, auth.Checksum(x.Signer.Address), "1000000")
	f.traders["d"], f.world.traders = append(f.traders["d"], x), append(f.world.traders, x)
	s, err := standing(d)
	if err != nil || len(s.Nodes) != 5 || s.Role != role.Gateway || s.Leader != leader {
		t.Errorf("d sees %+v %v", s, err)
	}
	if said, done := command(t, d.binary, "cluster", "status", "--admin", d.admin); !done ||
		!strings.Contains(said, "d says: "+leader+" leads") {
		t.Error(said)
	}
	if b, _ = f.burst(t, "", func() { f.ask(t, "promote", "d") }); b.unknown > 0 {
		t.Errorf("%d unknown", b.unknown)
	}
	waitFor(t, "d hears of its vote, after the leader", func() bool {
		s, err := standing(d)
		return err == nil && s.Role != role.Gateway
	})
	// Of the four voters three must agree: without d's vote the other two could not.
	leader = f.agree(t)
	if b, pause = f.burst(t, leader, func() { f.nodes[leader].kill(t) }); len(b.acks) == 0 {
		t.Error("nothing acknowledged")
	}
	f.agree(t)
	f.nodes[leader].start(t)
	f.agree(t)
	f.check(t)
	t.Logf("%s killed: %d acknowledged, %d refused, %d unknown, %v without writes; all: %d, lost 0",
		leader, len(b.acks), b.refused, b.unknown, pause.Round(time.Millisecond), answered(f.all()))
	if t.Failed() {
		t.Log(f.logs())
	}
}

// guest is a node that joins, and how.
type guest struct {
	*process
	place string
	role.Invitation
}

// join makes the guest's folder, or another one.
func (g *guest) join(t *testing.T, data, place, token string) (said string, done bool) {
	t.Helper()
	return command(t, g.binary, "cluster", "join", "--data", data, "--cluster", place, "--from", g.From,
		"--token", token)
}

// refused checks that with a token that is not right nobody is let in, and nothing is given.
func (g *guest) refused(t *testing.T) {
	t.Helper()
	token, err := papers.ParseToken(g.Token)
	if err != nil {
		t.Fatal(err)
	}
	forged, foreign, other := *token, *token, *token
	forged.Secret[0]++
	foreign.Root[0]++
	other.Issuer++
	for _, c := range []struct{ what, place, token, want string }{
		{"of another name", "e@" + g.Address, g.Token, "the token is for " + g.place},
		{"of another address", "d@127.0.0.1:1", g.Token, "the token is for " + g.place},
		{"forged", g.place, forged.String(), "not one that this node knows"},
		{"of another authority", g.place, foreign.String(), "not the member that has made the token"},
		{"of another member", g.place, other.String(), "not the member that has made the token"},
		{"cut", g.place, g.Token[:40], "not copied whole"},
	} {
		folder := filepath.Join(t.TempDir(), "data")
		if said, done := g.join(t, folder, c.place, c.token); done || !strings.Contains(said, c.want) {
			t.Errorf("a token %s: %s", c.what, said)
		}
		if exists(folder, "master.key") || exists(folder, "cluster") {
			t.Errorf("a token %s: something was given", c.what)
		}
	}
}

// forgetAnswer makes a folder as it would be if the answer to its application had been lost.
func forgetAnswer(t *testing.T, data string) {
	t.Helper()
	part := filepath.Join(data, "cluster.part")
	if err := errors.Join(os.Rename(filepath.Join(data, "cluster"), part),
		os.Remove(filepath.Join(part, "member.json")), os.Remove(filepath.Join(data, "mark")),
		os.RemoveAll(filepath.Join(data, "journal")), os.Remove(filepath.Join(data, "master.key"))); err !=
		nil {
		t.Fatal(err)
	}
}

// TestClusterTokens: only the token that was given lets somebody in, only the one for whom it was
// given, and only once; who has lost the answer may ask again. A vote comes after the first start.
func TestClusterTokens(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	a := f.nodes["a"]
	g := &guest{}
	g.process, g.place = f.newcomer(t, a, "d")
	g.Invitation = invited(t, a, g.place)
	g.refused(t)
	if s, err := standing(a); err != nil || len(s.Nodes) != 4 {
		t.Errorf("somebody is in: %+v %v", s, err)
	}
	other := func() string { return filepath.Join(t.TempDir(), "data") }
	try := func(data, place, token, want string) {
		t.Helper()
		if said, done := g.join(t, data, place, token); done || !strings.Contains(said, want) {
			t.Errorf("not %q: %s", want, said)
		}
	}
	said, done := g.join(t, g.data, g.place, g.Token)
	if !done || !strings.Contains(said, "--chain-id 80002") {
		t.Fatal(said)
	}
	forgetAnswer(t, g.data)
	if said, done := g.join(t, g.data, g.place, g.Token); !done {
		t.Errorf("again: %s", said)
	}
	try(other(), g.place, g.Token, "used by somebody else")
	try(g.data, g.place, g.Token, "is the folder of d")
	for _, c := range []struct{ at, place, want string }{{"a", g.place, "is a member already"},
		{"a", "e", "names no member"}, {"b", "e@127.0.0.1:1", "key of the cluster's authority"},
		{"g", "e@127.0.0.1:1", "this node has no vote"}} {
		o := client.Operator{Admin: f.nodes[c.at].admin, Data: f.nodes[c.at].data}
		_, err := o.Post("/admin/cluster/invite", map[string]string{"node": c.place}, time.Minute)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("an invitation of %s at %s: %v", c.place, c.at, err)
		}
	}
	leader := f.nodes[f.agree(t)]
	o := client.Operator{Admin: leader.admin, Data: leader.data}
	_, err := o.Post("/admin/cluster/promote", map[string]string{"node": "d"}, time.Minute)
	for end := time.Now().Add(patience); err != nil && strings.Contains(err.Error(), "no member is called") &&
		time.Now().Before(end); { // the node that let d in may show d before the leader does
		time.Sleep(10 * time.Millisecond)
		_, err = o.Post("/admin/cluster/promote", map[string]string{"node": "d"}, time.Minute)
	}
	if err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("one that was never started gets a vote: %v", err)
	}
	g.start(t)
	f.nodes["d"], f.names = g.process, append(f.names, "d")
	f.agree(t)
	// Nobody remembers a token after a start.
	_, place := f.newcomer(t, a, "e")
	late := invited(t, a, place)
	a.stop(t)
	a.start(t)
	f.agree(t)
	try(other(), place, late.Token, "not one that this node knows")
	if t.Failed() {
		t.Log(f.logs())
	}
}

// ends kills all nodes under load, a certain one first and one last, which stays in the fleet. It
// returns how many orders were acknowledged meanwhile.
func (f *fleet) ends(t *testing.T, first, left string) int {
	t.Helper()
	var b burst
	var group sync.WaitGroup
	var gone atomic.Bool
	for _, x := range f.world.traders {
		group.Go(func() { b.trade(t, x, gone.Load) })
	}
	for end := time.Now().Add(patience); b.count(time.Time{}) < 20; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing acknowledged")
		}
	}
	gone.Store(true)
	f.nodes[first].kill(t)
	for name, p := range f.nodes {
		if name != first && name != left {
			p.kill(t)
		}
	}
	f.nodes[left].kill(t)
	b.stopped.Store(true)
	group.Wait()
	f.nodes = map[string]*process{left: f.nodes[left]}
	return b.count(time.Time{})
}

// TestClusterRestore loses two of three voters for good under load, makes a new cluster of what the
// third has, and lets two new ones join. All that the third had is there.
func TestClusterRestore(t *testing.T) {
	setting.Full(t, "a restored cluster's members join as those of TestClusterJoin, and the making of "+
		"its folder is tested step by step")
	t.Parallel()
	f := newFleet(t, 1)
	leader, left := f.agree(t), "b"
	if leader == left {
		left = "c"
	}
	for _, x := range f.world.traders { // what it has acknowledged it has
		x.Host = f.traders[left][0].Host
	}
	f.traders = map[string][]*actor{left: f.world.traders}
	f.burst(t, "", func() {})
	f.agree(t)
	seen, err := standing(f.nodes[left])
	if err != nil {
		t.Fatal(err)
	}
	old := maps.Clone(f.nodes)
	acks := f.ends(t, leader, left)
	f.names = []string{left}
	p, to := f.nodes[left], filepath.Join(t.TempDir(), "whole")
	words := []string{"cluster", "restore", "--from", p.data, "--to", to}
	said, done := command(t, p.binary, words...)
	if done || !strings.Contains(said, "nothing was changed") ||
		!strings.Contains(said, "lost: all that") || exists(to) {
		t.Fatal(said)
	}
	if said, done = command(t, p.binary, append(words, "--yes")...); !done {
		t.Fatal(said)
	}
	t.Logf("%d acknowledged until the end\n%s", acks, said)
	lost := p.data
	p.data = to
	p.start(t)
	if s, err := standing(p); err != nil || len(s.Nodes) != 1 || s.Role != role.Leader ||
		s.Sequence < seen.Sequence || s.Term <= seen.Term {
		t.Fatalf("%s saw %+v, now %+v %v", left, seen, s, err)
	}
	f.check(t)
	f.burst(t, "", func() {})
	for _, name := range []string{"x", "y"} {
		n := f.join(t, p, name)
		n.await(t)
		f.nodes[name], f.names = n, append(f.names, name)
		f.agree(t)
		f.ask(t, "promote", name)
	}
	f.agree(t)
	if b, _ := f.burst(t, "", func() { f.nodes["x"].kill(t) }); len(b.acks) == 0 {
		t.Error("nothing acknowledged by two of three")
	}
	f.nodes["x"].start(t)
	f.agree(t)
	f.check(t)
	delete(old, left)
	f.haunt(t, p, old, lost)
	if t.Failed() {
		t.Log(f.logs())
	}
}

// haunt starts the old voters of a cluster that was restored, who know the address of the new one's
// first voter and are strangers there; and lets the folder join that was restored.
func (f *fleet) haunt(t *testing.T, p *process, old map[string]*process, lost string) {
	t.Helper()
	was, err := standing(p)
	if err != nil {
		t.Fatal(err)
	}
	place := p.flags[slices.Index(p.flags, "--cluster")+1]
	delete(old, "g")
	for _, o := range old {
		o.flags = append(slices.Clone(o.flags), "--peers", place)
		o.launch(t)
		until(t, o, "silent", func(r readiness) bool {
			return !r.Ready && strings.HasPrefix(r.Why, "no leader heard for ")
		})
		o.kill(t)
	}
	if s, err := standing(p); err != nil || s.Term != was.Term || s.Leader != was.Leader ||
		len(s.Nodes) != 3 {
		t.Errorf("the old ones changed %+v to %+v %v", was, s, err)
	}
	z := "z@" + freeAddress(t)
	i := invited(t, p, z)
	if said, done := command(t, p.binary, "cluster", "join", "--data", lost, "--cluster", z,
		"--from", i.From, "--token", i.Token); done || !strings.Contains(said, "is the folder of ") {
		t.Error(said)
	}
	if said, done := command(t, p.binary, "cluster", "restore", "--from", p.data, "--yes"); done {
		t.Errorf("a folder in use: %s", said)
	}
}

// TestClusterRemoved: a member that was removed says so when it starts again, and while it runs.
func TestClusterRemoved(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	leader := f.agree(t)
	out := "a"
	if leader == out {
		out = "b"
	}
	gone := []string{"g", out}
	removed := map[string]*process{}
	f.nodes["g"].stop(t) // it does not hear of it
	for _, name := range gone {
		f.ask(t, "remove", name)
		removed[name] = f.nodes[name]
		delete(f.nodes, name)
	}
	until(t, removed[out], "removed", func(r readiness) bool {
		return !r.Ready && strings.Contains(r.Why, "this node was removed from the cluster")
	})
	for _, name := range gone {
		p := removed[name]
		if p.cmd != nil {
			p.kill(t)
		}
		p.launch(t)
		if said := expectEnd(t, p); !strings.Contains(said, "removed from the cluster") ||
			!strings.Contains(said, "clobd cluster invite") {
			t.Errorf("%s: %s", name, said)
		}
	}
	if s, err := standing(f.nodes[leader]); err != nil || len(s.Nodes) != 2 {
		t.Errorf("%+v %v", s, err)
	}
}
