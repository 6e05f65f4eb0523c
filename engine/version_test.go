package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// TestRaise: an Exchange takes each version from its own on, up to the latest that the program
// knows, and a version that is in force already changes nothing.
func TestRaise(t *testing.T) {
	x := NewExchange(1)
	before := x.Digest()
	for _, c := range []struct {
		to   Sequence
		want Reject
	}{{Oldest - 1, RejectType}, {0, RejectType}, {Version + 1, RejectType}, {1 << 40, RejectType},
		{Oldest, Accepted}, {Version, Accepted}, {Version, Accepted}, {Version + 1, RejectType}} {
		was := x.Version()
		events := x.Apply(&Command{Kind: Raise, Seen: c.to}, x.last+1, 0, nil)
		if len(events) != 1 || events[0].Reject != c.want {
			t.Fatalf("raise to %d: %+v", c.to, events)
		}
		if c.want == Accepted && (x.Version() != uint16(c.to) || events[0].Args[0] != int64(c.to)) ||
			c.want != Accepted && x.Version() != was {
			t.Errorf("raise to %d: version %d is in force, event %+v", c.to, x.Version(), events[0])
		}
		if (x.Digest() == before) != (x.Version() == Oldest) {
			t.Errorf("version %d has Digest %016x, version %d %016x", x.Version(), x.Digest(), Oldest,
				before)
		}
		if err := audit(x); err != nil {
			t.Error(err)
		}
	}
}

// TestOldestHasNoLeaf: what journals without a Raise have recorded stays right.
func TestOldestHasNoLeaf(t *testing.T) {
	if leaf := versionLeaf(6); leaf != 0 {
		t.Errorf("version 6 has the leaf %016x", leaf)
	}
}

// raisedWorld is an Exchange whose book has orders of both versions, and the frames that made it.
func raisedWorld(t *testing.T) (x *Exchange, frames []*Frame) {
	x = NewExchange(1)
	l := &Listing{Tick: 100, Open: true}
	l.Condition[31], l.Tokens[0][31], l.Tokens[1][31] = 1, 2, 3
	all := [][]Command{{{Kind: Started, Seen: 1}, {Kind: List, Listing: l},
		{Kind: Deposit, Address: Address{1}, Cash: 1000 * Unit}}}
	orders := func(from byte) (some []Command) {
		for i := range byte(5) {
			some = append(some, Command{Kind: Place, Market: 1, Wallet: 1, Owner: 1, Size: 10 * Unit,
				Cash: 4 * Unit, ID: OrderID{from + i}})
		}
		return some
	}
	all = append(all, orders(1), []Command{{Kind: Raise, Seen: Version}}, orders(11))
	head := Hash{}
	for i, commands := range all {
		f := &Frame{No: uint64(i + 1), First: x.last + 1, Commands: commands}
		for j := range commands {
			f.Events = x.Apply(&commands[j], x.last+1, 0, f.Events)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		f.Engine, f.Digest = x.Version(), x.Digest()
		f.Encode(head)
		head = f.Hash
		frames = append(frames, f)
	}
	return x, frames
}

// TestReplayOverRaise: a replay goes over a Raise, from the first frame and from a state that was
// saved before or after it, and finds a frame that names another version than is in force.
func TestReplayOverRaise(t *testing.T) {
	want, frames := raisedWorld(t)
	for from := range len(frames) {
		x := NewExchange(2)
		for _, f := range frames[:from] {
			if err := x.ApplyFrame(f); err != nil {
				t.Fatal(err)
			}
		}
		x = reloaded(t, x, 3)
		for _, f := range frames[from:] {
			if err := x.ApplyFrame(f); err != nil {
				t.Fatalf("a state of frame %d: %v", from, err)
			}
		}
		if x.Digest() != want.Digest() || x.Version() != Version {
			t.Errorf("from frame %d: Digest %016x of version %d, not %016x", from, x.Digest(), x.Version(),
				want.Digest())
		}
	}
	if gap := uint64(1 + next); want.markets.at(1).book.rank != 5+5*gap {
		t.Errorf("five orders of version %d and five of %d have led to rank %d", Oldest, Version,
			want.markets.at(1).book.rank)
	}
	x := NewExchange(2)
	wrong := *frames[0]
	if wrong.Engine = Version + 1; next == 1 {
		wrong.Engine = Version
	}
	if err := x.ApplyFrame(&wrong); err == nil || !strings.Contains(err.Error(), "engine version") {
		t.Errorf("a frame of a version that is not in force: %v", err)
	}
}

// TestSavedVersion: a state names the version in force, and that of a version which is no longer
// known is taken over under the oldest that is.
func TestSavedVersion(t *testing.T) {
	for _, version := range []uint16{Oldest - 1, Oldest, Version} {
		x := NewExchange(1)
		x.Apply(&Command{Kind: Raise, Seen: Version}, 1, 0, nil)
		if version < Version {
			x = NewExchange(1)
			x.version = version // whose leaf is 0
		}
		var packed [][]byte
		keep := func(c []byte) error {
			packed = append(packed, bytes.Clone(c))
			return nil
		}
		if err := x.Save(keep); err != nil {
			t.Fatal(err)
		}
		again, _, err := Load(2, giver(packed))
		if err != nil || again.Version() != max(version, Oldest) {
			t.Fatalf("a state of version %d: %v", version, err)
		}
		if err := audit(again); err != nil {
			t.Error(err)
		}
	}
}

// TestLaterFrame: a program does not read the frame of a version that it does not know, and says
// which that is. A wrong byte there is damage.
func TestLaterFrame(t *testing.T) {
	f, back := sampleFrame(t), Frame{}
	f.Engine = Version + 1
	f.Encode(Hash{})
	err := DecodeFrame(f.Bytes, &back)
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "engine version") {
		t.Errorf("a frame of the version to come: %v", err)
	}
	binary.LittleEndian.PutUint16(f.Bytes[6:], Version+2)
	if err := DecodeFrame(f.Bytes, &back); !errors.Is(err, ErrChecksum) {
		t.Errorf("a frame with a wrong version: %v", err)
	}
}
