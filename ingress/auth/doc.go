// Package auth decides who sent a request and who signed an order. It holds keys and checks
// signatures; it knows nothing of sockets, books or money.
//
//	request for a key            any other request             order
//	address, ClobAuth signature  five headers, body            signed fields, signature
//	        │                            │                             │
//	    VerifyL1                Keyring.Authenticate       Verifier.Verify, VerifyAll
//	        │                            │                             │
//	address, nonce               Identity: address, nonce      Verified: order hash, signer
//	        │                            │                             │
//	  Keyring.Derive                     └──────────── equal? ─────────┘
//	        │                              the caller compares, and knows
//	Trio: key, secret, passphrase          whose wallet the maker is
//	                                                   │
//	                                       Order.AppendProof ─► journal ─► Proof.Verify
//
// Keys are stateless. The passphrase carries its address and nonce under a tag made with the node's
// master secret. The secret and the key's id are made the same way, so there is no table of keys.
//
//	passphrase = hex( secret 1 | address 20 | nonce 4 | tag 7 )
//
// The first byte names the master secret. While a new one takes over, two live: the newest makes
// keys, each checks its own. Address and nonce are the identity, so a number that is revoked is
// revoked under every secret.
//
// A client signs a request by HMAC-SHA256 over timestamp, method, path and body as sent. A stranger
// waits the same time for every refusal, whichever part was wrong.
//
// A client signs an order by EIP-712 for one exchange contract. The payload does not name the
// exchange, so the Verifier tries the domains whose struct and kind of market fit, the one that
// this signer used last first. Of a signature's two forms only the one with the low s is accepted,
// and the order's hash is its identity. So nobody can make a second order from a first. order.go
// has the types of signatures.
//
// The first order of a signer leaves a curve.Trace, by which the next ones are checked in half the
// time of a recovery; see newcomers.go. With order 32 the signer becomes hot: the node prepares the
// key (a curve.Key) and checks in two fifths of the time or less. If a check does not accept,
// recovery decides. At most 256 signers are hot, in 37 MiB, beside 1,024 traces, in 4.8 MiB; see
// hot.go. The orders of a list are hashed and checked side by side; see list.go.
//
// Contract: any number of goroutines may use a Keyring, a Verifier or a Signer. A verification
// makes one small allocation, an authentication none.
//
// Read text.go, then keyring.go and hmac.go (requests), l1.go (asking for keys), domain.go,
// order.go, eip712.go, signature.go, verifier.go, hot.go, newcomers.go and list.go (orders),
// proof.go (evidence), sign.go (the client's side), secret.go and vault.go. The arithmetic is in
// package curve.
package auth
