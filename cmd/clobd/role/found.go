package role

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/raft"
)

// Found turns a node's journal, with all that is in it, into that of a cluster's first member.
func Found(ctx context.Context, j *journal.Journal, members []papers.Fellow) error {
	if journal.Member(j) != nil {
		return cli.Hint(fmt.Errorf("%s is the folder of a member already", j.Dir),
			"start it: clobd serve --cluster")
	}
	r, err := j.Restore(ctx, Fresh)
	if err != nil {
		return Advised(err)
	}
	var founders []raft.Founder
	for _, n := range members {
		founders = append(founders, raft.Founder{ID: n.ID, Learns: n.Gateway,
			Name: n.Name + at + n.Address})
	}
	words, ballot, err := raft.Found(r.Head, founders)
	if err == nil {
		_, err = journal.Enroll(j, words, ballot)
	}
	return err
}

// Remains is what a member's folder tells of a cluster that has lost its majority.
type Remains struct {
	Members []string        // each as NAME@HOST:PORT
	Highest uint64          // id that any of them ever had
	Voters  []uint64        // ids
	Term    uint64          // that the member knows of
	Commit  uint64          // index of the last entry that it knows to be committed
	Last    journal.EntryID // in its log
	Agreed  engine.Head     // of the frames that are committed
	Head    engine.Head     // of all frames
	Unknown engine.Time     // of the first frame that is not known to be committed; 0: there is none
}

// Examine replays the journal of a member. It includes entries that are not known to be committed:
// they may have been acknowledged, and nobody was told that they did not happen.
func Examine(ctx context.Context, j *journal.Journal) (*Remains, error) {
	a := journal.Member(j)
	if a == nil {
		return nil, cli.Hint(fmt.Errorf("the journal in %s is that of no cluster", j.Dir),
			"it needs no other members: start it without --cluster")
	}
	restored, err := j.Restore(ctx, Fresh)
	if err != nil {
		return nil, Advised(err)
	}
	conf, names, highest, err := raft.Members(a)
	if err != nil {
		return nil, Advised(err)
	}
	r := &Remains{Highest: highest, Voters: conf.GetVoters(), Term: a.Ballot().Term, Last: a.Last()}
	for _, id := range slices.Concat(conf.GetVoters(), conf.GetLearners()) {
		r.Members = append(r.Members, names[id])
	}
	r.Commit, r.Agreed = a.Committed()
	r.Head = r.Agreed
	for i := r.Commit + 1; i <= r.Last.Index; i++ {
		all, err := a.Entries(i, i+1, 1)
		if err != nil {
			return nil, Advised(err)
		}
		if all[0].Kind != 0 || len(all[0].Data) == 0 {
			continue
		}
		var f engine.Frame
		if err = engine.DecodeFrame(all[0].Data, &f); err == nil {
			err = restored.State.Exchange.ApplyFrame(&f)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d, which is not known to be committed: %w", i, err)
		}
		if r.Head = f.Head(); r.Unknown == 0 {
			r.Unknown = f.Time
		}
	}
	return r, nil
}

// Refound turns the examined journal, with all its frames, into that of a new cluster's first
// member. The caller can only close the journal afterwards.
func (r *Remains) Refound(j *journal.Journal, first papers.Fellow) error {
	words, ballot, err := raft.Found(r.Head, []raft.Founder{{ID: first.ID,
		Name: first.Name + at + first.Address}})
	if err != nil {
		return err
	}
	ballot.Term = max(r.Term, r.Last.Term) + 1 // behind whatever this member has promised
	for i := range words {
		words[i].Term = ballot.Term
	}
	return journal.Refound(j, words, ballot)
}

// Follow makes an empty journal for a further member, which the others will fill.
func Follow(o journal.Options, cluster uint64) error {
	o.ID = cluster
	j, err := journal.Open(o)
	if err != nil {
		return Advised(err)
	}
	_, err = j.Recover(engine.NewExchange(0), nil)
	if err == nil {
		_, err = journal.Enroll(j, nil, journal.Ballot{})
	}
	return errors.Join(err, j.Close())
}

// Ask returns the view that a running member has of its cluster, by its admin listener.
func Ask(admin string) (*Standing, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + admin + "/cluster")
	if err != nil {
		return nil, fmt.Errorf("reach the node: %w", err)
	}
	defer answer.Body.Close()
	var told struct {
		Standing
		Error string
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&told)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(told.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("the node answered %d: %w", answer.StatusCode, err)
	}
	return &told.Standing, nil
}

// Print prints a member's view of its cluster as a table.
func (s *Standing) Print(to io.Writer) error {
	leader := s.Leader
	if leader == "" {
		leader = "nobody"
	}
	fmt.Fprintf(to, "%s says: %s leads in term %d; entry %d is committed, Sequence %d is shown, and "+
		"version %d of the rules is in force\n", s.Node, leader, s.Term, s.Commit, s.Sequence, s.Rules)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tROLE\tADDRESS\tHAS ENTRY\tLAG\tSENT TO IT\tKNOWS RULES")
	for _, n := range s.Nodes {
		has, lag, rules := "?", "?", "?" // only the leader knows
		if n.Match > 0 {
			has, lag = fmt.Sprint(n.Match), fmt.Sprint(n.Lag)
		}
		if n.Rules > 0 {
			rules = fmt.Sprint(n.Rules)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", n.Name, n.Role, n.Address, has, lag, n.Sent, rules)
	}
	return w.Flush()
}
