package papers

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Token lets one new member in. The issuer, a member of the cluster, makes the Token, and an
// operator carries it to the new member's machine.
type Token struct {
	Cluster uint64   // the cluster's id
	Issuer  uint64   // the id of the only member that knows the token
	Root    [32]byte // SHA-256 of the authority's certificate
	No      [8]byte  // tells tokens apart; not a secret
	Secret  [32]byte
}

const (
	tokenPrefix = "clobd-join-"
	tokenSize   = 8 + 8 + 32 + 8 + 32
	tokenSum    = 4 // bytes of a checksum, so that a damaged copy is noticed
)

// newToken makes a token; its number and its secret are random.
func newToken(cluster, issuer uint64, root []byte) (t Token) {
	t.Cluster, t.Issuer, t.Root = cluster, issuer, sha256.Sum256(root)
	rand.Read(t.No[:])
	rand.Read(t.Secret[:])
	return t
}

// String returns the token as text: 129 letters that ParseToken reads.
func (t *Token) String() string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, tokenSize+tokenSum), t.Cluster)
	b = binary.BigEndian.AppendUint64(b, t.Issuer)
	for _, part := range [][]byte{t.Root[:], t.No[:], t.Secret[:]} {
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, sum[:tokenSum]...))
}

// ParseToken reads the text of a token. Its errors do not repeat the text, which is a secret.
func ParseToken(text string) (*Token, error) {
	rest, is := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !is {
		return nil, fmt.Errorf("the token does not begin with %s", tokenPrefix)
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || len(b) != tokenSize+tokenSum {
		return nil, errors.New("the token is malformed: it was not copied whole")
	}
	if sum := sha256.Sum256(b[:tokenSize]); string(sum[:tokenSum]) != string(b[tokenSize:]) {
		return nil, errors.New("the token is malformed: a letter of it is another one")
	}
	t := &Token{Cluster: binary.BigEndian.Uint64(b), Issuer: binary.BigEndian.Uint64(b[8:])}
	b = b[16:]
	b = b[copy(t.Root[:], b):]
	b = b[copy(t.No[:], b):]
	copy(t.Secret[:], b)
	return t, nil
}
