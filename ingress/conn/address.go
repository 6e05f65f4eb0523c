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

// networkKey returns what the network of an address counts as: of IPv6 its /48, which is what one
// customer of a provider gets; of IPv4 the address itself.
func networkKey(a netip.Addr) (key [20]byte) {
	key = AddressKey(a)
	if a = a.Unmap(); !a.Is4() {
		clear(key[6:8])
	}
	key[18] = 1
	return key
}

// knownMost is how many addresses are remembered as known.
const knownMost = 4096

// knownAddresses are the addresses from which somebody has authenticated lately, the latest last.
type knownAddresses struct {
	in    map[[20]byte]bool
	order [][20]byte
}

func (k *knownAddresses) has(key [20]byte) bool { return k.in[key] }

// add remembers an address. Above knownMost the one that was added first is forgotten.
func (k *knownAddresses) add(key [20]byte) {
	if k.in[key] {
		return
	}
	if k.in == nil {
		k.in = make(map[[20]byte]bool)
	}
	if len(k.order) == knownMost {
		delete(k.in, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
	k.in[key] = true
	k.order = append(k.order, key)
}
