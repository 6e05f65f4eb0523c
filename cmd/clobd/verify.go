package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"clobd/api/catalog"
	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/history"
)

type verifyCommand struct {
	offline
	Signatures bool     `help:"Check the signature of every order again, too: some 30 µs each for every processor."`
	ChainID    uint64   `default:"80002" help:"With --signatures: the chain that orders were signed for."`
	Exchange   []string `sep:"none" help:"With --signatures: one more signing domain, as for serve."`
	Scratch    string   `help:"Folder for an index that is made for comparison and deleted after; it gets as large as the one of the data folder. Default: the system's folder for temporary files."`
}

// Run checks everything that the folder promises, and changes nothing.
func (c *verifyCommand) Run(ctx context.Context) (err error) {
	r := &report{}
	var evidence *evidence
	if c.Signatures {
		if evidence, err = newEvidence(c.ChainID, c.Exchange); err != nil {
			return err
		}
	}
	if err := c.verify(ctx, r, evidence); err != nil {
		return err
	}
	if r.findings > 0 {
		return fmt.Errorf("%s: %d findings", c.Data, r.findings)
	}
	fmt.Println("all is well")
	return nil
}

func (c *verifyCommand) verify(ctx context.Context, r *report, e *evidence) error {
	j, err := journal.Open(c.options(true))
	if err != nil {
		if advised := c.explain(err); !c.openable(err) {
			return advised
		}
		what := strings.Replace(err.Error(), "; "+journal.Advice(err), "", 1)
		r.find(journal.Finding{Where: filepath.Join(c.Data, "journal"), What: what,
			Hint: "clobd recover makes it good if everything can be found in its files, and else says " +
				"what is lost; clobd restore brings back a copy"})
		r.secrets(c.Data)
		r.catalog(c.Data)
		return nil
	}
	defer j.Close()
	head, err := r.journal(ctx, j, e)
	if err == nil {
		err = r.index(ctx, j, head.Frame, c.Scratch)
	}
	if err != nil {
		return err
	}
	r.catalog(c.Data)
	r.secrets(c.Data)
	return nil
}

type report struct{ findings int }

func (r *report) say(part, format string, args ...any) {
	fmt.Printf("%-12s %s\n", part, fmt.Sprintf(format, args...))
}

func (r *report) find(f journal.Finding) {
	r.findings++
	fmt.Printf("finding: %s: %s\n", f.Where, f.What)
	if f.Hint != "" {
		fmt.Printf("hint: %s\n", f.Hint)
	}
}

func (r *report) all(findings []journal.Finding, notes []string) {
	for _, n := range notes {
		r.say("note", "%s", n)
	}
	for _, f := range findings {
		r.find(f)
	}
}

// journal checks the journal with its checkpoints and its mark, and returns its end.
func (r *report) journal(ctx context.Context, j *journal.Journal, e *evidence) (
	*engine.Head, error) {
	bar := newProgress(newScreen(), "journal", "frames")
	o := journal.VerifyOptions{Fresh: role.Fresh, Progress: bar.show}
	if e != nil {
		o.Each = e.frame
	}
	v, err := j.Verify(ctx, o)
	bar.end()
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	r.say("journal", "%016x, %d frames, %d commands, up to Sequence %d, digest %016x", j.ID, v.Frames,
		v.Commands, v.Head.Sequence, uint64(v.Head.Digest))
	r.say("replay", "%d commands gave the events and digests that are recorded", v.Replayed)
	r.say("checkpoints", "%d good, %d of them compared with the replay", v.Checkpoints, v.Compared)
	if v.Marked {
		r.say("mark", "the journal has all that it names")
	}
	r.all(v.Findings, v.Notes)
	if e != nil {
		e.end(r)
	}
	return &v.Head, nil
}

func (r *report) index(ctx context.Context, j *journal.Journal, last uint64, scratch string) error {
	folder, err := os.MkdirTemp(scratch, "clobd-verify-")
	if err != nil {
		return cli.Hint(fmt.Errorf("make a folder for another index: %w", err),
			"--scratch names another place")
	}
	defer os.RemoveAll(folder)
	bar := newProgress(newScreen(), "index", "frames")
	v, err := history.Verify(ctx, j, history.VerifyOptions{
		Index:   history.Options{Log: silent(), Builder: builderOf},
		Scratch: folder, Last: last, Progress: bar.show})
	bar.end()
	if err != nil {
		return cli.Hint(fmt.Errorf("verify the index: %w", err),
			"if there is no room for another index, --scratch names another place")
	}
	if v.Sequence > 0 {
		r.say("index", "up to Sequence %d, %d rows compared with a fresh one", v.Sequence, v.Rows)
	}
	r.all(v.Findings, v.Notes)
	return nil
}

func (r *report) catalog(data string) {
	v, err := catalog.Verify(filepath.Join(data, "catalog"))
	for i := range v.Cuts {
		r.cut(&v.Cuts[i])
	}
	if err != nil {
		r.find(journal.Finding{Where: filepath.Join(data, "catalog"), What: err.Error(),
			Hint: "the next start goes on with what is before that, keeps the rest beside and reads its " +
				"source again: start with --catalog, or restore the folder from a copy"})
		return
	}
	r.say("catalog", "%d records in %d bytes", v.Records, v.Bytes)
}

func (r *report) cut(c *catalog.Cut) {
	if c.Torn {
		r.say("note", "%s: %d bytes of the catalog were torn off in the middle of a record, as when a "+
			"load is killed: its source is read again", c.File, c.Bytes)
		return
	}
	r.find(journal.Finding{Where: c.File, What: fmt.Sprintf("%d bytes of the catalog did not check "+
		"out at a start and were put aside, %d whole records among them", c.Bytes, c.Records),
		Hint: "its source is read again, with --catalog: when what is missing is back, delete the file"})
}

func (r *report) secrets(data string) {
	r.masters(data)
	file := filepath.Join(data, "admin.token")
	if !exists(file) {
		r.say("note", "admin.token is not in the folder")
	} else if _, err := auth.ReadSecret(file); err != nil {
		r.find(journal.Finding{Where: file, What: err.Error(), Hint: hintToken})
	} else {
		r.say("secret", "admin.token")
	}
}

// masters looks at the master secrets in the folder, if there are any.
func (r *report) masters(data string) {
	files := masterFiles(filepath.Join(data, masterName))
	if len(files) == 0 {
		r.say("note", "%s is not in the folder", masterName)
		return
	}
	check, err := readSecretCheck(data)
	for _, file := range files {
		name := filepath.Base(file.path)
		secret, bad := auth.ReadSecret(file.path)
		if bad == nil {
			bad = err
		}
		if known := check[file.number]; bad == nil && known != "" && known != secretCheck(secret) {
			bad = badCheck(data)
		}
		switch {
		case bad != nil:
			r.find(journal.Finding{Where: file.path, What: bad.Error(), Hint: hintSecret})
		case check[file.number] == "":
			r.say("note", "nobody knows whether %s is what it was", name)
		default:
			r.say("secret", "%s", name)
		}
	}
}

// evidence checks the signatures of orders, on all processors.
type evidence struct {
	verifier *auth.Verifier
	names    *names
	jobs     chan *claim
	running  sync.WaitGroup

	mu      sync.Mutex
	checked uint64
	count   int      // orders with wrong evidence
	wrong   []string // the first wrongOrders of them
}

// claim is a Place and what its evidence must prove. The evidence does not cover the replaced
// order, because clients do not sign cancellations.
type claim struct {
	engine.Command
	seq           engine.Sequence
	wallet, owner engine.Address
	token         engine.Token
}

const wrongOrders = 10

func newEvidence(chain uint64, exchanges []string) (*evidence, error) {
	domains := auth.Domains(chain)
	for _, text := range exchanges {
		d, err := auth.ParseDomain(text, chain)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		domains = append(domains, d)
	}
	e := &evidence{verifier: auth.NewVerifier(domains), names: newNames(),
		jobs: make(chan *claim, 1024)}
	for range runtime.GOMAXPROCS(0) {
		e.running.Go(func() {
			for c := range e.jobs {
				why := e.check(c)
				e.note(c, why)
			}
		})
	}
	return e, nil
}

func (e *evidence) frame(f *engine.Frame) error {
	for i := range f.Commands {
		c := &f.Commands[i]
		if c.Kind != engine.Place {
			continue
		}
		job := &claim{Command: *c, seq: f.First + engine.Sequence(i),
			wallet: e.names.wallets[c.Wallet], owner: e.names.wallets[c.Owner]}
		job.Proof = bytes.Clone(c.Proof)
		if l := e.names.markets[c.Market]; l != nil {
			job.token = l.Tokens[c.Outcome]
		}
		e.jobs <- job
	}
	e.names.learn(f)
	return nil
}

// check returns why the evidence of an order is wrong, or nil.
func (e *evidence) check(c *claim) error {
	if len(c.Proof) == 0 {
		return errors.New("there is no evidence")
	}
	p, err := auth.ParseProof(c.Proof)
	if err != nil {
		return err
	}
	if _, known := e.verifier.Find(p.Separator); !known {
		return fmt.Errorf("signed for an exchange that is not known, with separator 0x%x", p.Separator)
	}
	id, err := p.Verify(c.wallet, c.owner, c.token, c.Side)
	if err == nil && id != c.ID {
		err = errors.New("the evidence is of order " + id.Hex())
	}
	return err
}

func (e *evidence) note(c *claim, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checked++; why == nil {
		return
	}
	if e.count++; e.count <= wrongOrders {
		e.wrong = append(e.wrong, fmt.Sprintf("Sequence %d, order %s: %v", c.seq, c.ID.Hex(), why))
	}
}

func (e *evidence) end(r *report) {
	close(e.jobs)
	e.running.Wait()
	r.say("signatures", "%d orders, %d wrong", e.checked, e.count)
	for _, text := range e.wrong {
		r.find(journal.Finding{Where: "evidence", What: text, Hint: "--chain-id and --exchange name " +
			"what orders were signed for; clobd inspect --order shows the order"})
	}
	if more := e.count - len(e.wrong); more > 0 {
		r.findings += more
		r.say("signatures", "%d more are wrong", more)
	}
}
