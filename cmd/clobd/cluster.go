package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
	folders "clobd/cmd/clobd/membership"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/disk"
)

type clusterCommand struct {
	Init     clusterInit     `cmd:"" help:"Make a cluster: of a node's folder, new or used, and of new folders for the other members, all on this machine. Each folder can then be moved to its own machine, whole and before its first start."`
	Invite   clusterInvite   `cmd:"" help:"Make a token with which a new member can join, once and within an hour, while the cluster runs. Ask the voter that has cluster/ca.key in its folder: the first one, unless you have copied it."`
	Join     clusterJoin     `cmd:"" help:"Make the folder of a new member, with a token: it begins as a gateway, and clobd cluster promote gives it a vote."`
	Restore  clusterRestore  `cmd:"" help:"When a majority is lost for good: make a new cluster of what one member has. Tells what may be lost."`
	Status   clusterStatus   `cmd:"" help:"Print how a running member sees its cluster."`
	StepDown clusterStepDown `cmd:"" help:"Let another voter lead, without a failed request: before an upgrade of the node that leads."`
	Promote  clusterPromote  `cmd:"" help:"Give a gateway a vote, while the cluster runs. Ask the member that leads."`
	Remove   clusterRemove   `cmd:"" help:"Take a member out of the cluster, for ever, while it runs. Ask the member that leads, and stop the removed one."`
}

type clusterInit struct {
	Data     string   `default:"clobd-data" help:"Folder of the first voter. What was traded in it stays, and all others get it."`
	Cluster  string   `required:"" placeholder:"NAME@HOST:PORT" help:"Name of the first voter, and where the other members reach it."`
	Peers    []string `placeholder:"NAME@HOST:PORT=FOLDER" help:"Further voters, each with the new folder to be made for it. With the first one there must be 1, 3 or 5."`
	Gateways []string `placeholder:"NAME@HOST:PORT=FOLDER" help:"Members without a vote, each with its new folder: they answer reads, and pass writes on to whoever leads."`
}

// Run makes certificates, keys and journals.
func (c *clusterInit) Run(ctx context.Context) error {
	all, err := papers.Founders(c.Cluster, c.Data, c.Peers, c.Gateways)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	first := &settings{serveCommand: &serveCommand{Data: all[0].Data}}
	if err := disk.MakeFolder(nil, first.Data); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	secrets, err := first.secretFiles()
	if err != nil {
		return err
	}
	founding := &folders.Founding{All: all, Secrets: secrets,
		Open:   func() (*journal.Journal, error) { return (&offline{Data: c.Data}).open(false) },
		Others: func(data string) journal.Options { return (&offline{Data: data}).options(false) }}
	cluster, err := founding.Run(ctx)
	if err != nil {
		return failed(err)
	}
	fmt.Printf("cluster %016x; start each member, here or where its folder has been moved to:\n", cluster)
	for _, f := range all {
		fmt.Printf("  clobd serve --data %s --cluster %s@%s\n", f.Data, f.Name, f.Address)
	}
	return nil
}

type clusterStatus struct {
	Admin string `default:"127.0.0.1:8081" help:"The admin listener of a member."`
}

// Run prints a table.
func (c *clusterStatus) Run() error {
	s, err := role.Ask(c.Admin)
	if err != nil {
		return cli.Hint(err, "is a member running, and is --admin %s its admin listener?", c.Admin)
	}
	return s.Print(os.Stdout)
}

type clusterStepDown struct{ client.Operator }

// Run asks the node that leads.
func (c *clusterStepDown) Run() error {
	_, err := c.Post("/admin/cluster/step-down", map[string]string{}, time.Minute)
	if err == nil {
		fmt.Println("another node leads")
	}
	return err
}

type clusterPromote struct {
	client.Operator
	Name string `arg:"" help:"What the gateway is called."`
}

// Run asks the node that leads.
func (c *clusterPromote) Run() error { return change(&c.Operator, role.Promote, c.Name) }

type clusterRemove struct {
	client.Operator
	Name string `arg:"" help:"What the member is called."`
}

// Run asks the node that leads.
func (c *clusterRemove) Run() error { return change(&c.Operator, role.Remove, c.Name) }

func change(o *client.Operator, what role.Change, name string) error {
	_, err := o.Post("/admin/cluster/"+string(what), map[string]string{"node": name}, time.Minute)
	if err == nil {
		fmt.Printf("done: %s %s\n", what, name)
	}
	return err
}

// membership is what a node does as a member of a cluster.
type membership struct{ *node }

// readCluster reads the papers of a member, if the node is to be one.
func (n membership) readCluster(ctx context.Context) error {
	if n.Cluster == "" {
		return nil
	}
	name, address, err := papers.Place(n.Cluster)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--cluster %w", err)}
	}
	var id uint64
	keep := func(reload func() error) {
		onHangup(ctx, func() {
			if err := reload(); err != nil {
				n.log.Error("the new certificate of this member is refused, the old one stays", "error", err)
				return
			}
			n.log.Info("certificate of this member read again")
		})
	}
	who, secure, err := papers.Keep(n.Data, n.log, keep)
	switch {
	case exists(papers.Part(n.Data)) && (err == nil || errors.Is(err, papers.ErrNone)):
		return cli.Hint(fmt.Errorf("%s is not made yet", papers.Folder(n.Data)),
			"clobd cluster init, join or restore was interrupted: repeat it with the same words")
	case errors.Is(err, papers.ErrNone):
		return cli.Hint(err, "clobd cluster init makes a cluster of it")
	case err != nil:
		return err
	case who.Name != name:
		return cli.Hint(fmt.Errorf("%s is the folder of %s, and --cluster names %s", n.Data, who.Name,
			name), "one of the two is wrong")
	case n.Durability != "fsync":
		return &cli.UsageError{Err: errors.New("a cluster's member needs --durability fsync")}
	}
	if _, err := fmt.Sscanf(who.Journal, "%x", &id); err != nil {
		return fmt.Errorf("the papers of a member name the cluster %q: %w", who.Journal, err)
	}
	n.cluster = &role.Cluster{Name: name, ID: who.ID, Journal: id, Listen: address, TLS: secure,
		Faucet: n.faucet, Passport: who, Secrets: n.secretFiles,
		Links: n.Demo, Settings: n.common, Known: who.Members, Led: n.ledNow,
		Addresses: map[string]string{name: address}, Priority: n.Priority,
		Heard:       func(o engine.WalletNo, key uint32) { n.door.Heard(o, key) },
		Quarantined: func(c *engine.Command) bool { return n.poison.holds(c) },
		Shun:        func(f [32]byte) error { return n.poison.shun(f) }, Proved: n.proved,
		Windows: n.windows}
	for _, text := range n.Peers {
		name, address, err := papers.Place(text)
		if err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--peers %w", err)}
		}
		n.cluster.Addresses[name] = address
	}
	return nil
}

// proved returns why the evidence of an order is none. Of what this node does not know it says
// nothing: the engine refuses that.
func (n membership) proved(c *engine.Command) error {
	d := n.role.Board.Directory
	wallet, known := d.Address(c.Wallet)
	owner, owns := d.Address(c.Owner)
	m := d.Market(c.Market)
	if !known || !owns || m == nil {
		return nil
	}
	p, err := auth.ParseProof(c.Proof)
	if err != nil {
		return err
	}
	if _, known := n.verifier.Find(p.Separator); !known {
		return errors.New("it is signed for another exchange")
	}
	id, err := p.Verify(wallet, owner, m.Tokens[c.Outcome], c.Side)
	if err == nil && id != c.ID {
		err = errors.New("the evidence is of order " + id.Hex())
	}
	return err
}

// common are the settings that all members must have in common. Files of limits are not among them:
// an operator changes them one node at a time. Over all doors together the leader's count.
func (n membership) common() map[string]string {
	var domains []string
	for i := range n.domains {
		d := &n.domains[i]
		domains = append(domains, fmt.Sprintf("%s,%s,%#x,%v,%v", d.Name, d.Version, d.Contract, d.NegRisk,
			d.Both))
	}
	slices.Sort(domains)
	return map[string]string{"--chain-id": fmt.Sprint(n.ChainID), "--faucet": n.faucet.String(),
		"--demo": fmt.Sprint(n.Demo), "--limits": n.Limits, "exchanges": strings.Join(domains, " ")}
}

// damaged reports whether a member's next start makes a part anew.
func (n membership) damaged() bool {
	return role.Noted(n.Data, role.JournalPart) != nil || role.Noted(n.Data, role.IndexPart) != nil
}

// dropIndex lets a member make its index anew if a part of it was found to be damaged.
func (n membership) dropIndex() error {
	why := role.Noted(n.Data, role.IndexPart)
	if why == nil || n.cluster == nil {
		return nil
	}
	n.log.Warn("the index is made anew", "damage", why.Error())
	if err := os.RemoveAll(filepath.Join(n.Data, "index")); err != nil {
		return err
	}
	return role.Renewed(n.Data, role.IndexPart)
}

// scrubIndex reads the index.
func (n membership) scrubIndex(note func(int) error) (err error) {
	paced := error(nil)
	err = n.index.Scrub(func(bytes int) error {
		paced = note(bytes)
		return paced
	})
	if err != nil && paced == nil {
		n.role.Damaged(role.IndexPart, err)
	}
	return err
}

// renews notes how a member gets on that heals its journal, or takes a copy.
func (n membership) renews(how, metric string) {
	if how == "" {
		n.renewing.Store(nil)
	} else {
		n.renewing.Store(&symptom{What: how, Metric: metric})
	}
}

// ledNow remembers that this node has begun to lead.
func (n membership) ledNow() {
	select {
	case n.led <- struct{}{}:
	default:
	}
}

// listAsLeader lists the catalog whenever this node begins to lead, until ctx is done: nobody else
// does.
func (n membership) listAsLeader(ctx context.Context) {
	for {
		select {
		case <-n.led:
		case <-ctx.Done():
			return
		}
		if err := n.beginCatalog(); err != nil {
			n.log.Warn("the catalog is not listed: the next leader does", "error", err)
		}
	}
}

// handOver lets another node lead before this one stops, while its door still takes orders.
func (n membership) handOver() {
	if n.cluster == nil || !n.role.Leads() {
		return
	}
	if err := n.role.StepDown(context.Background()); err != nil {
		n.log.Warn("the lead is not handed over: the others elect a leader", "error", err)
	}
}

// clusterRoute answers how this node sees its cluster.
func (n membership) clusterRoute(w http.ResponseWriter, _ *http.Request) {
	var s *role.Standing
	if n.ready.Load() {
		s = n.role.Standing()
	}
	switch renewing := n.renewing.Load(); {
	case renewing != nil:
		tell(w, http.StatusServiceUnavailable, problem{renewing.What, "try again"})
	case s != nil:
		tell(w, http.StatusOK, s)
	case n.Cluster != "":
		tell(w, http.StatusServiceUnavailable, problem{"service not ready",
			"the journal is being recovered: try again"})
	default:
		tell(w, http.StatusNotFound, problem{"the node is alone",
			"clobd cluster init makes a cluster of a node that is stopped"})
	}
}

// stepDownRoute answers once another node leads.
func (n membership) stepDownRoute(w http.ResponseWriter, r *http.Request) {
	if err := n.role.StepDown(r.Context()); err != nil {
		tell(w, http.StatusConflict, problem{err.Error(), "clobd cluster status tells who leads"})
		return
	}
	tell(w, http.StatusOK, n.role.Standing())
}

// changeRoute answers once a change of the members is in force.
func (n membership) changeRoute(what role.Change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Node string }
		err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&asked)
		if err == nil {
			err = n.role.Change(r.Context(), what, asked.Node)
		}
		if err == nil {
			tell(w, http.StatusOK, n.role.Standing())
			return
		}
		tellConflict(w, err)
	}
}
