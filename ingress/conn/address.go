package conn

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks whose members may name their client in X-Forwarded-For.
type Proxies []netip.Prefix

// Trusts reports whether a is a trusted proxy.
func (p Proxies) Trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Client returns who sent a request: the peer, or if the peer is a trusted proxy, the last address
// in X-Forwarded-For that is no trusted proxy.
func (p Proxies) Client(peer netip.Addr, forwarded [][]byte) netip.Addr {
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest := string(forwarded[i]); rest != ""; {
			at := strings.LastIndexByte(rest, ',')
			hop, err := netip.ParseAddr(strings.TrimSpace(rest[at+1:]))
			if err != nil {
				return peer
			}
			if peer = hop.Unmap(); !p.Trusts(peer) {
				return peer
			}
			rest = rest[:max(at, 0)]
		}
	}
	return peer
}

// PeerAddress returns the address at the other end, 127.0.0.1 for connections inside the process.
func PeerAddress(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		address, _ := netip.AddrFromSlice(tcp.IP)
		return address.Unmap()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// AddressKey returns what an address counts as: an IPv6 caller owns at least its /64.
func AddressKey(a netip.Addr) (key [20]byte) {
	a = a.Unmap()
	b := a.As16()
	copy(key[:], b[:])
	if !a.Is4() {
		clear(key[8:])
		key[19] = 1
	}
	return key
}
