package role

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/raft"
)

// Found makes a journal, whatever is in it, that of the first of a cluster's members.
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

// Follow makes an empty journal for a further member: it gets everything from the others.
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

// Ask asks a running member, by its admin listener, how it sees its cluster.
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

// Print prints how a member sees its cluster, as a table.
func (s *Standing) Print(to io.Writer) error {
	leader := s.Leader
	if leader == "" {
		leader = "nobody"
	}
	fmt.Fprintf(to, "%s says: %s leads in term %d; entry %d is committed, Sequence %d is shown\n",
		s.Node, leader, s.Term, s.Commit, s.Sequence)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
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
