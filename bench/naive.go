package bench

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fasthttp/router"
	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/sha3"

	"clobd/bench/workload"
	"clobd/ingress/auth/curve"
)

// Naive is the exchange that one would write first from the same libraries, to be measured beside
// the node: JSON into a struct, an HMAC (computed, not compared), EIP-712 with a fresh hasher a
// step, public-key recovery, one Go channel to the matcher, maps and slices for a book, one Pebble
// commit with a sync for whatever had queued up, one reply channel per order. It keeps no ledger,
// refuses nothing but bad signatures and does not survive a restart.
type Naive struct {
	db     *pebble.DB
	server *fasthttp.Server
	domain [32]byte
	jobs   chan *naiveJob
	done   chan struct{}
	orders map[[32]byte]*naiveOrder
	books  map[string]*naiveBook // by token: one for both of a market
	seq    uint64
}

// naiveBook is the queues of one market's bids and asks, by price.
type naiveBook [2]map[int64][]*naiveOrder

type naiveRequest struct {
	Order     naiveFields `json:"order"`
	Owner     string      `json:"owner"`
	OrderType string      `json:"orderType"`
}

type naiveFields struct {
	Salt          json.Number `json:"salt"`
	Maker         string      `json:"maker"`
	Signer        string      `json:"signer"`
	TokenID       string      `json:"tokenId"`
	MakerAmount   string      `json:"makerAmount"`
	TakerAmount   string      `json:"takerAmount"`
	Side          string      `json:"side"`
	SignatureType int         `json:"signatureType"`
	Timestamp     string      `json:"timestamp"`
	Metadata      string      `json:"metadata"`
	Builder       string      `json:"builder"`
	Signature     string      `json:"signature"`
}

type naiveOrder struct {
	price int64 // in ticks of 0.01: the book has 99 levels, as the workload's
	left  int64
	ask   bool
}

type naiveJob struct {
	hash  [32]byte
	token string
	body  []byte
	order naiveOrder
	reply chan error
}

// NewNaive opens the naive exchange with its database in dir, for orders signed under the domain
// with this separator; ready answers the question whether it is up.
func NewNaive(dir string, separator [32]byte, ready fasthttp.RequestHandler) (*Naive, error) {
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest,
		Logger: quiet{}})
	if err != nil {
		return nil, fmt.Errorf("open naive database: %w", err)
	}
	n := &Naive{db: db, domain: separator, jobs: make(chan *naiveJob, 1024),
		done: make(chan struct{}), orders: map[[32]byte]*naiveOrder{},
		books: naiveBooks()}
	routes := router.New()
	routes.POST("/order", n.post)
	routes.GET(peerReady, ready)
	n.server = &fasthttp.Server{Handler: routes.Handler, NoDefaultServerHeader: true}
	return n, nil
}

// naiveBooks makes the books of a comparison's markets.
func naiveBooks() map[string]*naiveBook {
	books := make(map[string]*naiveBook, 2*contestMarkets)
	for m := range contestMarkets {
		book := &naiveBook{{}, {}}
		for _, token := range workload.Tokens(m) {
			books[token.String()] = book
		}
	}
	return books
}

// quiet drops Pebble's log lines. A fatal one still ends the process.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// Serve answers on ln until Close.
func (n *Naive) Serve(ln net.Listener) error {
	go n.match()
	return n.server.Serve(ln)
}

// Close stops the server, then the matcher, then the database.
func (n *Naive) Close() error {
	if err := n.server.Shutdown(); err != nil {
		return fmt.Errorf("stop naive server: %w", err)
	}
	close(n.jobs)
	<-n.done
	return n.db.Close()
}

func (n *Naive) post(ctx *fasthttp.RequestCtx) {
	mac := hmac.New(sha256.New, n.domain[:])
	mac.Write(ctx.Request.Header.Peek("POLY_TIMESTAMP"))
	mac.Write(ctx.Method())
	mac.Write(ctx.Path())
	mac.Write(ctx.PostBody())
	_ = mac.Sum(nil)
	var r naiveRequest
	if err := json.Unmarshal(ctx.PostBody(), &r); err != nil {
		ctx.Error(`{"error":"Invalid order payload"}`, 400)
		return
	}
	job, err := n.verify(&r.Order)
	if err != nil {
		ctx.Error(`{"error":"`+err.Error()+`"}`, 400)
		return
	}
	job.body = append([]byte(nil), ctx.PostBody()...)
	n.jobs <- job
	if err := <-job.reply; err != nil {
		ctx.Error(`{"error":"could not insert order"}`, 500)
		return
	}
	ctx.SetContentType("application/json")
	fmt.Fprintf(ctx, `{"success":true,"errorMsg":"","orderID":"0x%x","takingAmount":"",`+
		`"makingAmount":"","status":"live"}`, job.hash)
}

// verify hashes the order and recovers its signer.
func (n *Naive) verify(o *naiveFields) (*naiveJob, error) {
	words := [][]byte{number(o.Salt.String()), address(o.Maker), address(o.Signer),
		number(o.TokenID), number(o.MakerAmount), number(o.TakerAmount), side(o.Side),
		number(fmt.Sprint(o.SignatureType)), number(o.Timestamp), word(o.Metadata), word(o.Builder)}
	kind := keccak([]byte("Order(uint256 salt,address maker,address signer,uint256 tokenId," +
		"uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType," +
		"uint256 timestamp,bytes32 metadata,bytes32 builder)"))
	structHash := keccak(append([][]byte{kind[:]}, words...)...)
	hash := keccak([]byte{0x19, 0x01}, n.domain[:], structHash[:])
	signature, err := hex.DecodeString(trim(o.Signature))
	if err != nil || len(signature) != 65 {
		return nil, fmt.Errorf("invalid signature")
	}
	signature[64] -= 27
	key, ok := curve.Recover(&hash, (*[65]byte)(signature))
	if !ok {
		return nil, fmt.Errorf("invalid signature")
	}
	who := keccak(key[1:])
	if hex.EncodeToString(who[12:]) != hex.EncodeToString(address(o.Signer)[12:]) {
		return nil, fmt.Errorf("invalid signature")
	}
	if n.books[o.TokenID] == nil {
		return nil, fmt.Errorf("unknown token")
	}
	making := new(big.Int).SetBytes(number(o.MakerAmount)).Int64()
	taking := new(big.Int).SetBytes(number(o.TakerAmount)).Int64()
	if making == 0 || taking == 0 {
		return nil, fmt.Errorf("an amount is zero")
	}
	job := &naiveJob{hash: hash, token: o.TokenID, reply: make(chan error, 1),
		order: naiveOrder{price: making * 100 / taking, left: taking}}
	if o.Side == "SELL" {
		job.order = naiveOrder{price: taking * 100 / making, left: making, ask: true}
	}
	return job, nil
}

// match is the only goroutine that touches the book: it takes what has queued up, commits it with
// one sync, and answers.
func (n *Naive) match() {
	defer close(n.done)
	for job := range n.jobs {
		jobs := []*naiveJob{job}
		for len(jobs) < 256 {
			select {
			case next, ok := <-n.jobs:
				if !ok {
					n.commit(jobs)
					return
				}
				jobs = append(jobs, next)
				continue
			default:
			}
			break
		}
		n.commit(jobs)
	}
}

func (n *Naive) commit(jobs []*naiveJob) {
	batch := n.db.NewBatch()
	for _, job := range jobs {
		n.place(job)
		n.seq++
		err := batch.Set(binary.BigEndian.AppendUint64(nil, n.seq), job.body, nil)
		if err != nil {
			panic("BUG: batch of the naive exchange: " + err.Error())
		}
	}
	err := batch.Commit(pebble.Sync)
	for _, job := range jobs {
		job.reply <- err
	}
}

// place fills the order against the other side, best price first, and rests what is left.
func (n *Naive) place(job *naiveJob) {
	o := &job.order
	if n.orders[job.hash] != nil {
		return
	}
	n.orders[job.hash] = o
	book := n.books[job.token]
	other, own, step, end := book[1], book[0], int64(1), o.price
	from := int64(1)
	if o.ask {
		other, own, step, from = book[0], book[1], -1, 99
	}
	for p := from; o.left > 0 && (p-end)*step <= 0; p += step {
		queue := other[p]
		for len(queue) > 0 && o.left > 0 {
			size := min(o.left, queue[0].left)
			o.left, queue[0].left = o.left-size, queue[0].left-size
			if queue[0].left == 0 {
				queue = queue[1:]
			}
		}
		if len(queue) == 0 {
			delete(other, p)
		} else {
			other[p] = queue
		}
	}
	if o.left > 0 {
		own[o.price] = append(own[o.price], o)
	}
}

func keccak(parts ...[]byte) (out [32]byte) {
	h := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(out[:0])
	return out
}

func trim(s string) string {
	if len(s) > 1 && s[1] == 'x' {
		return s[2:]
	}
	return s
}

func number(s string) []byte {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 256 {
		return make([]byte, 32)
	}
	return n.FillBytes(make([]byte, 32))
}

func side(s string) []byte {
	if s == "SELL" {
		return number("1")
	}
	return number("0")
}

func address(s string) []byte { return word(trim(s)) }

// word is hex text as one right-aligned 32-byte word.
func word(s string) []byte {
	out := make([]byte, 32)
	b, err := hex.DecodeString(trim(s))
	if err != nil || len(b) > 32 {
		return out
	}
	copy(out[32-len(b):], b)
	return out
}
