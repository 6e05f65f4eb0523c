package ingress

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/auth"
	"clobd/ingress/socket"
)

// rubbish overwrites b, which somebody may still have a view of.
func rubbish(b []byte) { copy(b, bytes.Repeat([]byte{'#'}, len(b))) }

// spoiler overwrites what requests lay in as soon as they are answered, and what orders were worked
// out in as soon as that may be used again. Whoever keeps a view of any of it is found out: from
// then on the view has rubbish.
type spoiler struct {
	h *house

	mutex   sync.Mutex
	bodies  [][]byte // of requests on sockets, until they are answered
	spoiled int      // requests over HTTP
	scratch int      // placements
}

// spoil makes a house overwrite, after each answer, all memory that the request has borrowed. The
// house must not serve yet.
func spoil(h *house) *spoiler {
	s := &spoiler{h: h}
	h.server.http.Handler = func(ctx *fasthttp.RequestCtx) {
		h.server.handle(ctx)
		s.request(ctx)
		s.used()
	}
	for _, a := range h.server.trading {
		if open := a.open; open != nil {
			a.open = func(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
				s.mutex.Lock()
				defer s.mutex.Unlock()
				s.bodies = append(s.bodies, ctx.Request.Body())
				return open(ctx, caller)
			}
		}
	}
	return s
}

// request spoils all of an HTTP request that the HTTP server itself does not look at any more.
func (s *spoiler) request(ctx *fasthttp.RequestCtx) {
	if ctx.Response.StatusCode() == fasthttp.StatusSwitchingProtocols {
		return
	}
	r := &ctx.Request
	for name, value := range r.Header.All() {
		if _, _, ours := strings.Cut(string(name), "_"); ours || strings.EqualFold(string(name), "host") {
			rubbish(value)
		}
	}
	for _, b := range [][]byte{r.Body(), r.Header.RawHeaders(), r.Header.RequestURI(),
		r.URI().PathOriginal(), r.URI().Path(), r.URI().QueryString()} {
		rubbish(b)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.spoiled++
}

// used spoils the memory of a placement that was given back, and complains if anything of its order
// is left in it.
func (s *spoiler) used() {
	o := &s.h.server.orders
	p, ok := o.scratch.Get().(*placement)
	if !ok {
		return
	}
	proof, signature := p.proof, p.request.Signature
	p.proof, p.request.Signature = nil, nil
	if !reflect.DeepEqual(*p, placement{}) || len(proof)+len(signature) > 0 {
		s.h.t.Errorf("a placement that nobody uses holds %+v", p)
	}
	rubbish(proof[:cap(proof)])
	rubbish(signature[:cap(signature)])
	p.proof, p.request.Signature = proof, signature
	o.scratch.Put(p)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.scratch++
}

// answered spoils the bodies of the requests on sockets. All of them must be answered.
func (s *spoiler) answered() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, b := range s.bodies {
		rubbish(b)
	}
	s.bodies = nil
}

// proves checks the journal: the proof of each order is that of the order, in all its bytes.
func (s *spoiler) proves() (orders int) {
	d := s.h.board.Directory
	var f engine.Frame
	for _, b := range s.h.journal.Frames() {
		if err := engine.DecodeFrame(b, &f); err != nil {
			s.h.t.Fatal(err)
		}
		for i := range f.Commands {
			c := &f.Commands[i]
			if c.Kind != engine.Place || len(c.Proof) == 0 {
				continue
			}
			p, err := auth.ParseProof(c.Proof)
			if err != nil {
				s.h.t.Error(err)
				continue
			}
			wallet, _ := d.Address(c.Wallet)
			owner, _ := d.Address(c.Owner)
			token := d.Market(c.Market).Tokens[c.Outcome]
			if id, err := p.Verify(wallet, owner, token, c.Side); err != nil || id != c.ID {
				s.h.t.Errorf("order %s has a proof of %s: %v", c.ID.Hex(), id.Hex(), err)
			}
			orders++
		}
	}
	return orders
}

// TestContractOnBorrowedMemory: requests are read where they lie, and orders are worked out in
// memory that is used again. Every answer, state and proof of the contract is the same if all that
// memory is overwritten once a request is answered, over HTTP and on sockets, also where the disk
// hangs and nobody knows yet what becomes of an order.
func TestContractOnBorrowedMemory(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	spoiled, scratch, proofs, asked := 0, 0, 0, 0
	for _, file := range files {
		for _, sockets := range []bool{false, true} {
			name := strings.TrimSuffix(filepath.Base(file), ".txt")
			if sockets && !slices.Contains(onSockets, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					h := buildCaseHouse(t, file)
					s := spoil(h)
					if sockets {
						h.desk = &desks{open: make(map[string]*trading), fresh: name == "trouble",
							answered: s.answered}
					}
					open(h)
					runCases(h, file, nil, nil)
					spoiled, scratch, proofs = spoiled+s.spoiled, scratch+s.scratch, proofs+s.proves()
					if sockets {
						asked += h.desk.asked
					}
				})
			})
		}
	}
	t.Logf("%d requests over HTTP and %d on sockets were spoiled, and %d placements; %d proofs hold",
		spoiled, asked, scratch, proofs)
	if !t.Failed() && (spoiled < 300 || scratch < 100 || proofs < 100 || asked < 300) {
		t.Error("too little was spoiled to tell")
	}
}

// TestTimedOutOrdersKeepTheirProofs: orders that nobody has read yet in the ring are answered 504,
// and what they were worked out in is used again. What enters the journal later is theirs.
func TestTimedOutOrdersKeepTheirProofs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := buildHouse(t, nil)
		s := spoil(h)
		open(h)
		for _, name := range []string{"alice", "bob", "carol"} {
			h.run([]string{"fund " + name + " 1000"})
		}
		release := h.block()
		var calls []*sequencer.Call
		for range testFrames { // each in a frame of its own, and no frame is left
			call, err := h.sequencer.Enter(&engine.Command{Kind: engine.Deposit,
				Address: address("alice"), Cash: engine.Unit})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, call)
			synctest.Wait()
		}
		const orders = 9
		for i := range orders {
			name := []string{"alice", "bob", "carol"}[i%3]
			got := h.send(h.rawOrder(fmt.Sprintf("%s buy A 5 @ 0.10 salt=%d", name, i)))
			if !strings.HasPrefix(got, "504") {
				t.Errorf("order %d: %s", i, got)
			}
		}
		release()
		for _, call := range calls {
			_, _ = call.Wait()
		}
		h.drain()
		if n := s.proves(); n != orders {
			t.Errorf("%d proofs hold", n)
		}
	})
}
