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
	"strings"
	"text/tabwriter"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/raft"
)

type clusterCommand struct {
	Init     clusterInit     `cmd:"" help:"Make a cluster: of a node's folder, new or used, and of new folders for the other members, all on this machine. Each folder can then be moved to its own machine, whole and before its first start."`
	Status   clusterStatus   `cmd:"" help:"Print how a running member sees its cluster."`
	StepDown clusterStepDown `cmd:"" help:"Let another voter lead, without a failed request: before an upgrade of the node that leads."`
}

type clusterInit struct {
	Data     string   `default:"clobd-data" help:"Folder of the first voter. What was traded in it stays, and all others get it."`
	Cluster  string   `required:"" placeholder:"NAME@HOST:PORT" help:"Name of the first voter, and where the other members reach it."`
	Peers    []string `placeholder:"NAME@HOST:PORT=FOLDER" help:"Further voters, each with the new folder to be made for it. With the first one there must be 1, 3 or 5."`
	Gateways []string `placeholder:"NAME@HOST:PORT=FOLDER" help:"Members without a vote, each with its new folder: they answer reads, and pass writes on to whoever leads."`
}

// founder is one of the first members.
type founder struct {
	papers.Member
	data string
}

// Run makes certificates, keys and journals.
func (c *clusterInit) Run() error {
	all, err := c.founders()
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	for _, f := range all[1:] {
		if entries, err := os.ReadDir(f.data); err == nil && len(entries) > 0 {
			return cli.Hint(fmt.Errorf("%s is not empty", f.data), "a voter or gateway that begins needs a "+
				"new folder")
		}
	}
	first := &settings{serveCommand: &serveCommand{Data: all[0].data}}
	if err := disk.MakeFolder(nil, first.Data); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	found, err := first.masterSecrets()
	if err != nil {
		return err
	}
	forget(found)
	cluster, err := c.enroll(all)
	if err != nil {
		return err
	}
	authority, err := papers.NewAuthority(cluster)
	if err != nil {
		return fmt.Errorf("make the cluster's authority: %w", err)
	}
	var members []papers.Member
	for i := range all {
		members = append(members, all[i].Member)
	}
	for i := len(all) - 1; i >= 0; i-- { // the first one last: without its papers init begins again
		f := &all[i]
		if i > 0 {
			if err := f.equip(cluster, first.Data); err != nil {
				return fmt.Errorf("make %s: %w", f.data, err)
			}
		}
		who := &papers.Identity{Name: f.Name, ID: f.ID, Address: f.Address, Members: members}
		if err := authority.Write(f.data, cluster, who, i == 0); err != nil {
			return fmt.Errorf("make the papers of %s: %w", f.Name, err)
		}
	}
	fmt.Printf("cluster %016x; start each member, here or where its folder has been moved to:\n", cluster)
	for _, f := range all {
		fmt.Printf("  clobd serve --data %s --cluster %s@%s\n", f.data, f.Name, f.Address)
	}
	return nil
}

// founders reads the flags.
func (c *clusterInit) founders() (all []founder, err error) {
	add := func(text string, gateway bool) {
		name, rest, is := strings.Cut(text, "@")
		address, data, has := strings.Cut(rest, "=")
		if len(all) == 0 {
			data, has = c.Data, true
		}
		if !is || !has || name == "" || address == "" || data == "" {
			err = errors.Join(err, fmt.Errorf("%q is not NAME@HOST:PORT=FOLDER", text))
		}
		for _, f := range all {
			if f.Name == name || f.Address == address || f.data == data {
				err = errors.Join(err, fmt.Errorf("%q has the name, the address or the folder of %s", text,
					f.Name))
			}
		}
		all = append(all, founder{papers.Member{Name: name, ID: uint64(len(all) + 1),
			Address: address, Gateway: gateway}, data})
	}
	add(c.Cluster, false)
	for _, text := range c.Peers {
		add(text, false)
	}
	if n := len(all); n != 1 && n != 3 && n != 5 {
		err = errors.Join(err, fmt.Errorf("%d voters: there must be 1, 3 or 5", n))
	}
	for _, text := range c.Gateways {
		add(text, true)
	}
	return all, err
}

// enroll makes the first folder's journal that of a cluster, and returns its id.
func (c *clusterInit) enroll(all []founder) (cluster uint64, err error) {
	o := offline{Data: all[0].data}
	j, err := journal.Open(o.options(false))
	if err != nil {
		return 0, o.explain(err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if journal.Member(j) != nil {
		return 0, cli.Hint(fmt.Errorf("%s is the folder of a member already", all[0].data),
			"start it: clobd serve --cluster")
	}
	r, err := j.Restore(context.Background(), role.Fresh)
	if err != nil {
		return 0, failed(role.Advised(err))
	}
	var founders []raft.Founder
	for _, f := range all {
		founders = append(founders, raft.Founder{ID: f.ID, Learns: f.Gateway,
			Name: role.FounderName(f.Name, f.Address)})
	}
	words, ballot, err := raft.Found(r.Head, founders)
	if err == nil {
		_, err = journal.Enroll(j, words, ballot)
	}
	return j.ID, err
}

// equip makes the folder of a further member: an empty journal, and the master secrets of the first
// one.
func (f *founder) equip(cluster uint64, first string) error {
	if err := disk.MakeFolder(nil, f.data); err != nil {
		return err
	}
	for _, m := range masterFiles(filepath.Join(first, masterName)) {
		text, err := os.ReadFile(m.path)
		if err != nil {
			return err
		}
		if err := writeDurably(filepath.Join(f.data, filepath.Base(m.path)), string(text)); err != nil {
			return err
		}
	}
	o := (&offline{Data: f.data}).options(false)
	o.ID = cluster
	j, err := journal.Open(o)
	if err != nil {
		return err
	}
	_, err = j.Recover(engine.NewExchange(0), nil)
	if err == nil {
		_, err = journal.Enroll(j, nil, journal.Ballot{})
	}
	return errors.Join(err, j.Close())
}

type clusterStatus struct {
	Admin string `default:"127.0.0.1:8081" help:"The admin listener of a member."`
}

// Run prints a table.
func (c *clusterStatus) Run() error {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + c.Admin + "/cluster")
	if err != nil {
		return cli.Hint(fmt.Errorf("reach the node: %w", err), "is it running, and is --admin %s its "+
			"admin listener?", c.Admin)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer.StatusCode, body)
	}
	var s role.Standing
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	leader := s.Leader
	if leader == "" {
		leader = "nobody"
	}
	fmt.Printf("%s says: %s leads in term %d; entry %d is committed, Sequence %d is shown\n", s.Node,
		leader, s.Term, s.Commit, s.Sequence)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tROLE\tADDRESS\tHAS ENTRY\tLAG\tSENT TO IT")
	for _, n := range s.Nodes {
		has, lag := "?", "?" // only the leader knows
		if n.Match > 0 {
			has, lag = fmt.Sprint(n.Match), fmt.Sprint(n.Lag)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\n", n.Name, n.Role, n.Address, has, lag, n.Sent)
	}
	return w.Flush()
}

type clusterStepDown struct{ operator }

// Run asks the node that leads.
func (c *clusterStepDown) Run() error {
	_, err := c.post("/admin/cluster/step-down", map[string]string{}, time.Minute)
	if err == nil {
		fmt.Println("another node leads")
	}
	return err
}

// readCluster reads the papers of a member, if the node is to be one.
func (n *node) readCluster(context.Context) error {
	if n.Cluster == "" {
		return nil
	}
	name, address, is := strings.Cut(n.Cluster, "@")
	if !is || name == "" || address == "" {
		return &cli.UsageError{Err: fmt.Errorf("--cluster %q is not NAME@HOST:PORT", n.Cluster)}
	}
	who, secure, err := papers.Read(n.Data)
	switch {
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
	c := &role.Cluster{Name: name, ID: who.ID, Listen: address, TLS: secure, Faucet: n.faucet,
		Links: n.Demo, Addresses: map[string]string{name: address}, Led: n.ledNow,
		Heard: func(o engine.WalletNo, key uint32) { n.door.Heard(o, key) }}
	for _, m := range who.Members {
		c.Known = append(c.Known, role.Node{Name: m.Name, ID: m.ID, Address: m.Address})
	}
	for _, text := range n.Peers {
		name, address, is := strings.Cut(text, "@")
		if !is || name == "" || address == "" {
			return &cli.UsageError{Err: fmt.Errorf("--peers %q is not NAME@HOST:PORT", text)}
		}
		c.Addresses[name] = address
	}
	n.cluster = c
	return nil
}

// ledNow remembers that this node has begun to lead.
func (n *node) ledNow() {
	select {
	case n.led <- struct{}{}:
	default:
	}
}

// listAsLeader lists the catalog whenever this node begins to lead, until ctx is done: nobody else
// does.
func (n *node) listAsLeader(ctx context.Context) {
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
func (n *node) handOver() {
	if n.cluster == nil || !n.role.Leads() {
		return
	}
	if err := n.role.StepDown(context.Background()); err != nil {
		n.log.Warn("the lead is not handed over: the others elect a leader", "error", err)
	}
}

// clusterRoute answers how this node sees its cluster.
func (n *node) clusterRoute(w http.ResponseWriter, _ *http.Request) {
	var s *role.Standing
	if n.ready.Load() {
		s = n.role.Standing()
	}
	switch {
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
func (n *node) stepDownRoute(w http.ResponseWriter, r *http.Request) {
	if err := n.role.StepDown(r.Context()); err != nil {
		tell(w, http.StatusConflict, problem{err.Error(), "clobd cluster status tells who leads"})
		return
	}
	tell(w, http.StatusOK, n.role.Standing())
}
