package wire

import "clobd/engine"

// Credentials are what a client says of itself on an open socket. Either Secret is the key's own,
// or Signature is its HMAC of Timestamp, the method GET and the path of the socket. A read-only key
// is named by Key and Address alone.
type Credentials struct {
	Key, Secret, Passphrase, Address string
	Timestamp, Signature             string
	Dialect                          string
}

// Owner is who has logged in, and with which key.
type Owner struct {
	Address engine.Address
	Class   engine.KeyClass
	Number  uint32
	Dialect Dialect
}

// Login checks Credentials. An error is a text for the client.
type Login func(*Credentials) (Owner, error)
