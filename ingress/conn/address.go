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

// How many known addresses the Turnstile remembers.
const (
	knownMost      = 4096
	knownOfNetwork = 64 // addresses of one network
)

// knownAddresses are the addresses from which somebody has authenticated lately.
type knownAddresses struct {
	in       map[[20]byte]knownAddress
	networks map[[20]byte]int // addresses of each network
	clock    uint64
}

type knownAddress struct {
	network [20]byte
	used    uint64 // by the clock
}

func (k *knownAddresses) has(key [20]byte) bool { _, ok := k.in[key]; return ok }

// add remembers an address of a network, as the latest. Where there are too many, the one that was
// not used for the longest time is forgotten: one of the same network if that alone has too many.
func (k *knownAddresses) add(key, network [20]byte) {
	k.clock++
	if k.has(key) {
		k.in[key] = knownAddress{network, k.clock}
		return
	}
	if k.in == nil {
		k.in, k.networks = make(map[[20]byte]knownAddress), make(map[[20]byte]int)
	}
	if k.networks[network] >= knownOfNetwork {
		k.forget(func(a knownAddress) bool { return a.network == network })
	} else if len(k.in) >= knownMost {
		k.forget(func(knownAddress) bool { return true })
	}
	k.in[key] = knownAddress{network, k.clock}
	k.networks[network]++
}

// forget forgets the oldest address of some.
func (k *knownAddresses) forget(some func(knownAddress) bool) {
	var oldest [20]byte
	used := k.clock
	for key, a := range k.in {
		if a.used < used && some(a) {
			oldest, used = key, a.used
		}
	}
	network := k.in[oldest].network
	delete(k.in, oldest)
	if k.networks[network]--; k.networks[network] == 0 {
		delete(k.networks, network)
	}
}
