package auth

import (
	"encoding/binary"
	"hash"
	"io"

	"golang.org/x/crypto/sha3"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

// The type strings of everything that is signed, and the message of a ClobAuth.
const (
	domainType = "EIP712Domain(string name,string version,uint256 chainId," +
		"address verifyingContract)"
	authDomainType = "EIP712Domain(string name,string version,uint256 chainId)"
	authType       = "ClobAuth(address address,string timestamp,uint256 nonce,string message)"
	OrderTypeV1    = "Order(uint256 salt,address maker,address signer,address taker," +
		"uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint256 expiration," +
		"uint256 nonce,uint256 feeRateBps,uint8 side,uint8 signatureType)"
	OrderTypeV2 = "Order(uint256 salt,address maker,address signer,uint256 tokenId," +
		"uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType," +
		"uint256 timestamp,bytes32 metadata,bytes32 builder)"
	nestedType = "TypedDataSign(Order contents,string name,string version,uint256 chainId," +
		"address verifyingContract,bytes32 salt)" + OrderTypeV2

	authName    = "ClobAuthDomain"
	AuthMessage = "This message attests that I control the given wallet"
)

// The hashes of those. Variables because Go has no constant arrays; nothing changes them.
var (
	domainTypeHash     = keccakText(domainType)
	authDomainTypeHash = keccakText(authDomainType)
	authTypeHash       = keccakText(authType)
	orderTypeHashV1    = keccakText(OrderTypeV1)
	orderTypeHashV2    = keccakText(OrderTypeV2)
	nestedTypeHash     = keccakText(nestedType)
	authNameHash       = keccakText(authName)
	authMessageHash    = keccakText(AuthMessage)
	walletNameHash     = keccakText("DepositWallet")
	oneHash            = keccakText("1") // version of the wallet's and of the ClobAuth domain
)

func keccakText(s string) [32]byte { return newHasher().keccak([]byte(s)) }

// hasher is the scratch memory of one verification or one signature. Arguments whose address goes
// to C or through an interface would escape to the heap: they are fields here, so that hashing
// allocates nothing. One goroutine at a time may use it.
type hasher struct {
	sponge  hash.Hash
	squeeze io.Reader // the same sponge: Read, unlike Sum, does not copy its state

	words  [13 * 32]byte // the longest struct: the type hash and the 12 fields of V1
	n      int           // bytes of words in use
	out    [32]byte
	rs     [65]byte // r, s, v of the signature at hand; v is 0 or 1
	digest [32]byte // what is signed
	key    []byte   // uncompressed, from the last recover

	trace *curve.Trace // of a guess at somebody unknown; nil before the first
	room  [65]byte     // the key of a guess
}

func newHasher() *hasher {
	sponge := sha3.NewLegacyKeccak256()
	return &hasher{sponge: sponge, squeeze: sponge.(io.Reader)}
}

func (h *hasher) keccak(p []byte) [32]byte {
	h.sponge.Reset()
	h.sponge.Write(p)
	_, _ = h.squeeze.Read(h.out[:]) // a sponge never fails
	return h.out
}

func (h *hasher) begin(typeHash *[32]byte) { h.n = copy(h.words[:], typeHash[:]) }

func (h *hasher) word(w *[32]byte) { h.n += copy(h.words[h.n:], w[:]) }

func (h *hasher) address(a *engine.Address) {
	clear(h.words[h.n : h.n+12])
	copy(h.words[h.n+12:], a[:])
	h.n += 32
}

func (h *hasher) integer(v uint64) {
	clear(h.words[h.n : h.n+24])
	binary.BigEndian.PutUint64(h.words[h.n+24:], v)
	h.n += 32
}

func (h *hasher) end() [32]byte { return h.keccak(h.words[:h.n]) }

func (h *hasher) separator(d *Domain) [32]byte {
	name, version := h.keccak([]byte(d.Name)), h.keccak([]byte(d.Version))
	h.begin(&domainTypeHash)
	h.word(&name)
	h.word(&version)
	h.integer(d.Chain)
	h.address(&d.Contract)
	return h.end()
}

// order returns the struct hash of o, whose Version must be 1 or 2.
func (h *hasher) order(o *Order) [32]byte {
	h.layOrder(o)
	return h.end()
}

// layOrder writes what order hashes.
func (h *hasher) layOrder(o *Order) {
	if o.Version == 1 {
		h.begin(&orderTypeHashV1)
	} else {
		h.begin(&orderTypeHashV2)
	}
	h.word((*[32]byte)(&o.Salt))
	h.address(&o.Maker)
	h.address(&o.Signer)
	if o.Version == 1 {
		h.address(&o.Taker)
	}
	h.word((*[32]byte)(&o.Token))
	h.integer(o.MakerAmount)
	h.integer(o.TakerAmount)
	if o.Version == 1 {
		h.word((*[32]byte)(&o.Expiration))
		h.word((*[32]byte)(&o.Nonce))
		h.word((*[32]byte)(&o.FeeRate))
	}
	h.integer(uint64(o.Side))
	h.integer(uint64(o.SignatureType))
	if o.Version != 1 {
		h.word((*[32]byte)(&o.Timestamp))
		h.word((*[32]byte)(&o.Metadata))
		h.word((*[32]byte)(&o.Builder))
	}
}

// nested returns the struct hash that the owner of a deposit wallet signs: the order's struct hash
// in the wallet's own domain (ERC-7739), so that it counts for no other wallet of the owner.
func (h *hasher) nested(contents *[32]byte, chain uint64, wallet *engine.Address) [32]byte {
	h.layNested(contents, chain, wallet)
	return h.end()
}

// layNested writes what nested hashes.
func (h *hasher) layNested(contents *[32]byte, chain uint64, wallet *engine.Address) {
	h.begin(&nestedTypeHash)
	h.word(contents)
	h.word(&walletNameHash)
	h.word(&oneHash)
	h.integer(chain)
	h.address(wallet)
	h.integer(0)
}

// typed returns the digest that an EIP-712 signature covers: the domain and the struct.
func (h *hasher) typed(separator, contents *[32]byte) [32]byte {
	h.layTyped(separator, contents)
	return h.end()
}

// layTyped writes what typed hashes.
func (h *hasher) layTyped(separator, contents *[32]byte) {
	h.words[0], h.words[1] = 0x19, 0x01
	copy(h.words[2:], separator[:])
	copy(h.words[34:], contents[:])
	h.n = 66
}

// Digests are the steps from a struct to what is signed.
type Digests struct {
	Separator [32]byte // of the domain
	Struct    [32]byte // the struct hash
	Hash      [32]byte // of both: the id of an order
	Signed    [32]byte // Hash, or for a deposit wallet the hash of the wrapped struct
}

// Digests returns the digests of an order for an exchange. o.Version must be 1 or 2.
func (o *Order) Digests(d *Domain) Digests {
	h := newHasher()
	separator := h.separator(d)
	return h.digests(o, &separator, d.Chain)
}

func (h *hasher) digests(o *Order, separator *[32]byte, chain uint64) Digests {
	d := Digests{Separator: *separator, Struct: h.order(o)}
	d.Hash = h.typed(separator, &d.Struct)
	d.Signed = d.Hash
	if o.SignatureType == TypeWallet {
		wrapped := h.nested(&d.Struct, chain, &o.Maker)
		d.Signed = h.typed(separator, &wrapped)
	}
	return d
}

// AuthDigests returns the digests of a ClobAuth message. Its domain has no contract.
func AuthDigests(chain uint64, a engine.Address, timestamp string, nonce Word) Digests {
	h := newHasher()
	h.begin(&authDomainTypeHash)
	h.word(&authNameHash)
	h.word(&oneHash)
	h.integer(chain)
	d := Digests{Separator: h.end()}
	stamp := h.keccak([]byte(timestamp))
	h.begin(&authTypeHash)
	h.address(&a)
	h.word(&stamp)
	h.word((*[32]byte)(&nonce))
	h.word(&authMessageHash)
	d.Struct = h.end()
	d.Hash = h.typed(&d.Separator, &d.Struct)
	d.Signed = d.Hash
	return d
}
