package papers

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"clobd/journal/disk"
	"clobd/journal/raft"
)

// Passport names the member that a folder belongs to, and its cluster.
type Passport struct {
	Name    string `json:"name"`
	ID      uint64 `json:"id"`
	Address string `json:"address"`
	Journal string `json:"journal"` // the journal's id, in hex
	// Cluster is the cluster's id, in hex, which all certificates name. Empty: the journal's id. Only
	// a restored cluster has an id of its own.
	Cluster string `json:"cluster,omitempty"`
	// Members are those of the day on which the passport was made. The journal has the later ones.
	Members []Fellow `json:"members"`
}

// Fellow is a member of a cluster as the others know it.
type Fellow struct {
	Name    string `json:"name"`
	ID      uint64 `json:"id"`
	Address string `json:"address"`
	Gateway bool   `json:"gateway,omitempty"`
}

// The files in the folder.
const (
	folder       = "cluster"
	identityName = "member.json"
	certName     = "node.pem"
	keyName      = "node.key"
	rootName     = "ca.pem"
	rootKeyName  = "ca.key"
)

// validity is how long a certificate is good. No certificate is ever revoked: whoever has a
// member's key can speak to the others for so long.
const validity = 20 * 365 * 24 * time.Hour

// ErrNone is the error for a folder without papers.
var ErrNone = errors.New("the folder is that of no cluster's member")

// Authority signs the certificates of a cluster's members.
type Authority struct {
	root *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // of root
}

// NewAuthority makes the authority of a cluster, with a new key.
func NewAuthority(cluster uint64) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := template(fmt.Sprintf("clobd cluster %016x", cluster))
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	return &Authority{root, key, encode("CERTIFICATE", der)}, err
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity)}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Folder returns the folder of the papers in a data folder.
func Folder(data string) string { return filepath.Join(data, folder) }

// Part returns the folder in which papers are made. Once all is there, it is renamed to Folder.
func Part(data string) string { return Folder(data) + ".part" }

// JournalID returns the id of a cluster or a journal as passports write it: 16 hex digits.
func JournalID(cluster uint64) string { return fmt.Sprintf("%016x", cluster) }

// ClusterText returns the cluster's id, in hex.
func (p *Passport) ClusterText() string { return cmp.Or(p.Cluster, p.Journal) }

// ClusterID returns the cluster's id, which all certificates name.
func (p *Passport) ClusterID() (uint64, error) { return number(p.ClusterText()) }

// JournalNumber returns the id of the journal, which is the same for all members.
func (p *Passport) JournalNumber() (uint64, error) { return number(p.Journal) }

func number(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%s does not say of which cluster it is: %q", identityName, text)
	}
	return id, nil
}

// NewClusterID draws an id for a restored cluster, so that it differs from the journal's.
func NewClusterID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) | 1 // not 0
}

// Write makes a key and the papers of a member in a folder. With keep it also writes ca.key, which
// belongs into the folder that begins the cluster.
func (a *Authority) Write(to string, who *Passport, keep bool) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := a.certify(who, &key.PublicKey)
	if err != nil {
		return err
	}
	files := map[string][]byte{certName: cert, rootName: a.pem}
	if files[keyName], err = encodeKey(key); err == nil && keep {
		files[rootKeyName], err = encodeKey(a.key)
	}
	if err != nil {
		return err
	}
	if err := disk.MakeFolder(nil, to); err != nil {
		return err
	}
	return put(to, files, who)
}

// certify makes the certificate of a member, PEM, for its public key.
func (a *Authority) certify(who *Passport, key *ecdsa.PublicKey) ([]byte, error) {
	cluster, err := who.ClusterID()
	if err != nil {
		return nil, err
	}
	t := template("clobd " + who.Name)
	t.DNSNames = []string{raft.MemberName(cluster, who.ID)}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, t, a.root, key, a.key)
	return encode("CERTIFICATE", der), err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encode("PRIVATE KEY", der), err
}

// put writes the files of papers. member.json is the last: its presence says that all are there.
func put(to string, files map[string][]byte, who *Passport) error {
	text, err := json.MarshalIndent(who, "", "  ")
	if err != nil {
		return err
	}
	for name, b := range files {
		if err := Put(filepath.Join(to, name), b); err != nil {
			return err
		}
	}
	err = Put(filepath.Join(to, identityName), append(text, '\n'))
	return errors.Join(err, disk.SyncFolder(disk.Filesystem(nil), to))
}

// Put writes and syncs a new file. It does not sync the folder. The error wraps fs.ErrExist if
// there is a file of that name.
func Put(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// Keep is Read for a node that runs for long. It hands keep a function that reads the node's own
// certificate again. New connections use the certificate of the last call that succeeded. The
// authority's certificate is read once only. Keep keeps the files that Read needs twice, and makes
// a damaged one whole again. ca.key has no copy: who takes that key away must know where it is.
func Keep(data string, log *slog.Logger, keep func(reload func() error)) (*Passport, *tls.Config,
	error) {
	who, secure, err := readTwice(data, log)
	if err != nil {
		return nil, nil, err
	}
	var own atomic.Pointer[tls.Certificate]
	own.Store(&secure.Certificates[0])
	roots, name := secure.RootCAs, secure.Certificates[0].Leaf.DNSNames
	secure.Certificates = nil
	secure.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return own.Load(), nil
	}
	secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return own.Load(), nil
	}
	keep(func() error {
		_, again, err := Read(data) // a file that was replaced gets its copy at the next start
		if err != nil {
			return err
		}
		c := &again.Certificates[0]
		if !slices.Equal(c.Leaf.DNSNames, name) {
			return fmt.Errorf("the certificate is that of %v, this member is %v", c.Leaf.DNSNames, name)
		}
		_, err = c.Leaf.Verify(x509.VerifyOptions{Roots: roots,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			return fmt.Errorf("the certificate of a member: %w", err)
		}
		own.Store(c)
		return nil
	})
	return who, secure, nil
}

// readTwice is Read for files that are kept twice.
func readTwice(data string, log *slog.Logger) (who *Passport, secure *tls.Config, err error) {
	err = disk.Twice(log, func() (paths []string) {
		for _, name := range []string{identityName, certName, keyName, rootName} {
			paths = append(paths, filepath.Join(Folder(data), name))
		}
		return paths
	}, func() error {
		who, secure, err = Read(data)
		return err
	})
	return who, secure, err
}

// Read reads the papers in a data folder: the passport, and the TLS configuration of connections to
// other members. The error wraps ErrNone if there are no papers.
func Read(data string) (*Passport, *tls.Config, error) {
	from := Folder(data)
	who, err := ReadPassport(from)
	if err != nil {
		return nil, nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(from, certName), filepath.Join(from, keyName))
	if err != nil {
		return nil, nil, fmt.Errorf("the certificate of a member: %w", err)
	}
	root, err := readRoot(from)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	// A new member does not have this certificate yet: its token holds only the hash.
	own.Certificate = append(own.Certificate, root.Raw)
	return who, &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool,
		MinVersion: tls.VersionTLS13}, nil
}

// readRoot reads the authority's certificate in a folder of papers.
func readRoot(from string) (*x509.Certificate, error) {
	file := filepath.Join(from, rootName)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseRoot(text, file)
}

func parseRoot(text []byte, file string) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return root, nil
}

// ReadPassport reads the passport in a folder of papers. The error wraps ErrNone if there is none.
func ReadPassport(from string) (*Passport, error) {
	text, err := os.ReadFile(filepath.Join(from, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Dir(from), ErrNone)
	} else if err != nil {
		return nil, err
	}
	who := new(Passport)
	if err := json.Unmarshal(text, who); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(from, identityName), err)
	}
	return who, nil
}
