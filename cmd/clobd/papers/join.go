package papers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"clobd/journal/disk"
	"clobd/journal/raft"
)

// Application is the request of a new member to join. It holds the number and the secret of a
// Token. The new member sends it on a connection without a client certificate.
type Application struct {
	No      [8]byte  `json:"no"`
	Secret  [32]byte `json:"secret"`
	Name    string   `json:"name"`
	Address string   `json:"address"`
	Request []byte   `json:"request"` // of a certificate, PKCS #10
}

// Admission is the answer to an Application: the papers, secrets and settings of the new member, or
// a refusal.
type Admission struct {
	Refused string `json:"refused,omitempty"` // the reason; all but Hint is empty then
	Hint    string `json:"hint,omitempty"`

	Passport    *Passport         `json:"passport,omitempty"`
	Certificate []byte            `json:"certificate,omitempty"` // PEM
	Authority   []byte            `json:"authority,omitempty"`   // PEM
	Secrets     map[string][]byte `json:"secrets,omitempty"`     // files by their names
	Settings    map[string]string `json:"settings,omitempty"`    // those that all members share
}

const (
	// JoinTime is how long a member may take to answer an Application.
	JoinTime = 15 * time.Second
	// MostAsked is the largest Application, in bytes of JSON.
	MostAsked = 8 << 10
	// MostGiven is the largest Admission, in bytes of JSON.
	MostGiven = 1 << 20
)

// Say writes a value to a connection: four bytes of length, then JSON.
func Say(conn net.Conn, what any) error {
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// Listen reads the value that Say wrote, of at most so many bytes of JSON. It reads no byte behind
// that value.
func Listen(conn net.Conn, into any, most int) error {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(size[:]))
	if n > most {
		return fmt.Errorf("%d bytes were said: more than %d", n, most)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(conn, b); err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// ErrNoAuthority is the error of a member that has no ca.key and so cannot sign certificates.
var ErrNoAuthority = errors.New("the key of the cluster's authority is not here")

// ReadAuthority reads the cluster's authority from a member's data folder. An operator may put
// ca.key there or take it away while the member runs. The error wraps ErrNoAuthority if ca.key is
// missing.
func ReadAuthority(data string) (*Authority, error) {
	from := Folder(data)
	root, err := readRoot(from)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(from, rootKeyName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", file, ErrNoAuthority)
	} else if err != nil {
		return nil, err
	}
	key, err := parseKey(text, file)
	if err == nil && !key.PublicKey.Equal(root.PublicKey) {
		err = fmt.Errorf("%s is the key of another authority than %s", file, rootName)
	}
	if err != nil {
		return nil, err
	}
	return &Authority{root, key, encode("CERTIFICATE", root.Raw)}, nil
}

func parseKey(text []byte, file string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, is := key.(*ecdsa.PrivateKey)
	if err != nil || !is {
		return nil, errors.Join(fmt.Errorf("%s holds no key that this program can use", file), err)
	}
	return own, nil
}

// Root returns the authority's certificate, DER. A Token holds the SHA-256 of these bytes.
func (a *Authority) Root() []byte { return a.root.Raw }

// ReadRequest parses the request of a certificate, checks that its maker has the private key, and
// returns the SHA-256 of the public key.
func ReadRequest(der []byte) (r *x509.CertificateRequest, key [32]byte, err error) {
	if r, err = x509.ParseCertificateRequest(der); err == nil {
		err = r.CheckSignature()
	}
	if err != nil {
		return nil, key, fmt.Errorf("the request for a certificate is malformed: %w", err)
	}
	if own, is := r.PublicKey.(*ecdsa.PublicKey); !is || own.Curve != elliptic.P256() {
		return nil, key, errors.New("the request for a certificate is for another kind of key")
	}
	return r, sha256.Sum256(r.RawSubjectPublicKeyInfo), nil
}

// Admit makes the papers of a new member. It takes the public key from the request, and the name
// and the id from who: whatever else the request claims is ignored.
func (a *Authority) Admit(who *Passport, r *x509.CertificateRequest) (*Admission, error) {
	key, is := r.PublicKey.(*ecdsa.PublicKey)
	if !is {
		return nil, errors.New("another kind of key")
	}
	cert, err := a.certify(who, key)
	if err != nil {
		return nil, err
	}
	return &Admission{Passport: who, Certificate: cert, Authority: a.pem}, nil
}

// Request makes the key of a new member in a folder and returns the request of a certificate, DER.
// If the folder holds a key of an earlier call, Request uses that key.
func Request(in string) (request []byte, err error) {
	if err := disk.MakeFolder(nil, in); err != nil {
		return nil, err
	}
	file := filepath.Join(in, keyName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		var key *ecdsa.PrivateKey
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err == nil {
			text, err = encodeKey(key)
		}
		if err == nil {
			err = errors.Join(Put(file, text), disk.SyncFolder(disk.Filesystem(nil), in))
		}
	}
	if err != nil {
		return nil, err
	}
	key, err := parseKey(text, file)
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "clobd"}}, key)
}

// Apply sends an Application to the issuer of the token, at an address, and returns the answer. It
// sends nothing before the issuer has proved who it is: the token holds the hash of the certificate
// of the authority, and the issuer's id.
func (t *Token) Apply(ctx context.Context, at string, a *Application) (*Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*JoinTime)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13,
		NextProtos: []string{raft.Guests}, InsecureSkipVerify: true, VerifyConnection: t.verify}}
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", at, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	a.No, a.Secret = t.No, t.Secret
	given := new(Admission)
	if err = Say(conn, a); err == nil {
		err = Listen(conn, given, MostGiven)
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", at, err)
	}
	return given, nil
}

// errOther is the error for a server that is not the token's issuer.
var errOther = errors.New("who answers there is not the member that has made the token: it is of " +
	"another cluster, or another member, or has other papers by now")

// verify checks that the server is the token's issuer.
func (t *Token) verify(s tls.ConnectionState) error {
	roots := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		if sha256.Sum256(c.Raw) == t.Root {
			roots.AddCert(c)
		}
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots,
		DNSName: raft.MemberName(t.Cluster, t.Issuer)})
	if err != nil {
		return fmt.Errorf("%w (%w)", errOther, err)
	}
	return nil
}

// Accept checks the papers in an Admission and writes them into the folder that has the key. It
// replaces papers that an interrupted Accept has left there.
func (t *Token) Accept(in string, given *Admission) error {
	who := given.Passport
	if who == nil {
		return errors.New("the answer holds no papers")
	}
	cluster, err := who.ClusterID()
	if err != nil {
		return err
	}
	root, err := parseRoot(given.Authority, "the answer")
	if err != nil {
		return err
	}
	if cluster != t.Cluster || sha256.Sum256(root.Raw) != t.Root {
		return errOther
	}
	key, err := os.ReadFile(filepath.Join(in, keyName))
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(given.Certificate, key)
	if err == nil {
		roots := x509.NewCertPool()
		roots.AddCert(root)
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots,
			DNSName: raft.MemberName(cluster, who.ID)})
	}
	if err != nil {
		return fmt.Errorf("the certificate in the answer is no good: %w", err)
	}
	for _, name := range []string{certName, rootName} {
		if err := os.Remove(filepath.Join(in, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return put(in, map[string][]byte{certName: given.Certificate,
		rootName: encode("CERTIFICATE", root.Raw)}, who)
}
