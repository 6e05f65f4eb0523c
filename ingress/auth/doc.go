// Package auth decides who sent a request and who signed an order. It holds keys and checks
// signatures; it knows nothing of sockets, books or money.
//
//	request for a key            any other request             order
//	address, ClobAuth signature  five headers, body            signed fields, signature
//	        │                            │                             │
//	    VerifyL1                Keyring.Authenticate            Verifier.Verify
//	        │                            │                             │
//	address, nonce               Identity: address, nonce      Verified: order hash, signer
//	        │                            │                             │
//	  Keyring.Derive                     └──────────── equal? ─────────┘
//	        │                              the caller compares, and knows
//	Trio: key, secret, passphrase          whose wallet the maker is
//	                                                   │
//	                                       Order.AppendProof ─► journal ─► Proof.Verify
//
// Keys are stateless. The passphrase carries its address and nonce under a tag made with the
// node's master secret, and the secret and the key's id are made the same way, so every request is
// checked from itself: there is no table of keys to write, to lose or to copy.
//
//	passphrase = hex( version 1 | address 20 | nonce 4 | tag 7 )
//
// A request is signed by HMAC-SHA256 over timestamp, method, path and body as sent, in hex or
// base64. A stranger is told one text for every cause, and made to wait the same time for it.
//
// An order is signed by EIP-712 for one exchange contract. Which one, the payload does not say: the
// rows of the node's table whose struct and kind of market fit are tried, the one that this signer
// used last first. Of a signature's two forms only the one with the low s counts, and the order's
// hash is its identity, so no second order can be made out of a first.
//
//	type 0   maker is the signer                                      65 bytes
//	type 1   maker is a proxy wallet of the signer                    65 bytes
//	type 2   maker is a safe of the signer                            65 bytes
//	type 3   maker is a deposit wallet, its owner signs inside the    317 bytes
//	         wallet's typed data (ERC-7739)
//
// The curve is libsecp256k1 where cgo is on, and pure Go, about four times as slow, where it is
// not. Scratch memory is pooled: a verification costs one small allocation, an authentication none.
//
// A signer whose key was recovered sixteen times is hot: the node keeps multiples of the key and
// checks further signatures by adding some of them up, in pure Go, without allocation, in two
// fifths of the time of a recovery. A check accepts what recovery would accept; what it does not
// accept is recovered, so that refusals are the same for all. 256 signers are hot at most, in 37
// MiB; see DESIGN.md.
//
//	order ─► signer hot? ─► check: z/s·G + r/s·Q = R? ── yes ─► Verified
//	             no │               no │
//	                └──────────────────┴─► recover ─► count; often enough: build the multiples
//
// Read text.go, then keyring.go and hmac.go (requests), l1.go (asking for keys), domain.go,
// order.go, eip712.go, signature.go and verifier.go (orders), hot.go, check.go, comb.go, point.go,
// field.go, scalar.go and invert.go (hot signers, from the idea down to the arithmetic), proof.go
// (evidence), sign.go (the client's side), secret.go, recover_*.go and vectors.go.
package auth
