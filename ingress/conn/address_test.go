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
