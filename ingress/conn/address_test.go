package conn

import (
	"net/netip"
	"testing"
)

func TestAddressKey(t *testing.T) {
	key := func(s string) [20]byte { return AddressKey(netip.MustParseAddr(s)) }
	if key("::ffff:192.0.2.1") != key("192.0.2.1") || key("192.0.2.1") == key("192.0.2.2") {
		t.Error("IPv4 callers are one address each, however written")
	}
	if key("2001:db8::1") != key("2001:db8::ffff") || key("2001:db8::1") == key("2001:db8:0:1::1") {
		t.Error("IPv6 callers are one /64 each")
	}
}

// TestKnownAddresses: the table forgets the address that was used longest ago. One network cannot
// push out the addresses of other networks.
func TestKnownAddresses(t *testing.T) {
	var k knownAddresses
	key := func(network, i int) (a, of [20]byte) {
		a[0], a[1], a[2], a[3] = byte(network>>8), byte(network), byte(i>>8), byte(i)
		of[0], of[1], of[18] = a[0], a[1], 1
		return a, of
	}
	add := func(network, i int) { k.add(key(network, i)) }
	has := func(network, i int) bool { a, _ := key(network, i); return k.has(a) }
	add(1, 1)
	for i := range 2 * knownMost {
		add(2, i)
	}
	if !has(1, 1) || len(k.in) != 1+knownOfNetwork || !has(2, 2*knownMost-1) || has(2, 0) {
		t.Fatalf("%d addresses are known after those of one network", len(k.in))
	}
	for i := range 2 * knownMost {
		add(3+i, 1)
		add(1, 1)
	}
	if !has(1, 1) || len(k.in) != knownMost || has(2, 2*knownMost-1) || !has(2+2*knownMost, 1) {
		t.Fatalf("%d addresses are known", len(k.in))
	}
	sum := 0
	for _, n := range k.networks {
		sum += n
	}
	if sum != len(k.in) {
		t.Errorf("%d addresses by network", sum)
	}
}

// TestNetworkLoad: many callers of one IPv6 network have a load together.
func TestNetworkLoad(t *testing.T) {
	house := NewTurnstile(Options{Most: 1000, MostPerAddress: 100})
	var c *Conn
	for i := range byte(200) {
		c = &Conn{Direct: true, turnstile: house}
		c.from[7], c.network[18] = i, 1
		if refused, _ := house.enter(c); refused != nil {
			t.Fatalf("connection %d: %+v", i, refused)
		}
	}
	if load := house.load(c); load != 200/networkAddresses {
		t.Errorf("load %d", load)
	}
	if house.addresses != 200 {
		t.Errorf("%d addresses", house.addresses)
	}
	for o := range house.conns {
		house.leave(o)
	}
	if house.addresses != 0 || len(house.callers) != 0 || house.strangers != 0 {
		t.Errorf("left behind: %d addresses, %d callers", house.addresses, len(house.callers))
	}
}
