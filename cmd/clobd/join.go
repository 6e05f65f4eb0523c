package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"clobd/journal"
	"clobd/journal/disk"
)

type clusterInvite struct {
	client.Operator
	Place string `arg:"" name:"member" placeholder:"NAME@HOST:PORT" help:"What the new member is to be called, and where the others will reach it."`
}

// Run prints the token, and what to do with it.
func (c *clusterInvite) Run() error {
	text, err := c.Post("/admin/cluster/invite", map[string]string{"node": c.Place}, time.Minute)
	if err != nil {
		return err
	}
	var i role.Invitation
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	fmt.Printf("good once, until %s, and unless the node that was asked is started again; on the "+
		"machine of %s:\n  clobd cluster join --data FOLDER --cluster %s@%s --from %s --token %s\n",
		i.Until.UTC().Format(time.RFC3339), i.Name, i.Name, i.Address, i.From, i.Token)
	return nil
}

type clusterJoin struct {
	Data    string `default:"clobd-data" help:"The new folder of the new member."`
	Cluster string `required:"" placeholder:"NAME@HOST:PORT" help:"What it is called, and where the others reach it: as in the invitation."`
	From    string `required:"" placeholder:"HOST:PORT" help:"Where the member that was asked for the invitation takes connections of other members."`
	Token   string `required:"" help:"What clobd cluster invite has printed; - reads it from standard input."`
}

// Run makes the folder.
func (c *clusterJoin) Run(ctx context.Context) error {
	name, address, err := papers.Place(c.Cluster)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--cluster %w", err)}
	}
	if c.Token == "-" {
		line, err := bufio.NewReader(io.LimitReader(os.Stdin, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the token: %w", err)
		}
		c.Token = line
	}
	token, err := papers.ParseToken(c.Token)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--token: %w", err)}
	}
	j := &folders.Joining{Token: token, From: c.From, Name: name, Address: address, Data: c.Data,
		Journal: func(data string) journal.Options { return (&offline{Data: data}).options(false) }}
	common, err := j.Run(ctx)
	if err != nil {
		return failed(err)
	}
	fmt.Printf("%s is a member without a vote; start it:\n  clobd serve --data %s --cluster %s\n",
		name, c.Data, c.Cluster)
	if len(common) > 0 {
		fmt.Println("with what all members have in common:")
		for _, name := range slices.Sorted(maps.Keys(common)) {
			fmt.Printf("  %s %s\n", name, common[name])
		}
	}
	fmt.Printf("once it keeps up, at the member that leads: clobd cluster promote %s\n", name)
	return nil
}

type clusterRestore struct {
	From    string `required:"" placeholder:"DATA" help:"Folder of a member of the old cluster, which does not run: of the one that has most."`
	To      string `placeholder:"FOLDER" help:"New folder to be made, which leaves the old one as it is. Without it the old one is changed."`
	Cluster string `placeholder:"NAME@HOST:PORT" help:"Name and address of the new cluster's first voter, if not as before."`
	Yes     bool   `help:"Do it, whatever may be lost. Without it that is only told."`
}

// Run makes a cluster of one voter.
func (c *clusterRestore) Run(ctx context.Context) error {
	r := &folders.Rescue{Data: c.From, Agree: c.agree}
	if c.Cluster != "" {
		var err error
		if r.Name, r.Address, err = papers.Place(c.Cluster); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--cluster %w", err)}
		}
	}
	finish := func() error { return nil }
	if c.To != "" && c.Yes {
		claim, err := disk.TakeClaim(c.From)
		if err != nil {
			return failed(role.Advised(err))
		}
		defer claim.Release()
		s, err := (&restoreCommand{From: c.From, Data: c.To}).stage()
		if err != nil {
			return err
		}
		r.Data, finish = s.part, s.finish
		if err := copyTree(c.From, s.part, nil); err != nil {
			return errors.Join(fmt.Errorf("copy %s: %w", c.From, err), s.discard())
		}
		defer s.discard()
	}
	r.Open = func() (*journal.Journal, error) { return (&offline{Data: r.Data}).open(!c.Yes) }
	who, err := r.Run(ctx)
	if err == nil {
		err = finish()
	}
	if err != nil {
		return failed(err)
	}
	data := c.From
	if c.To != "" {
		data = c.To
	}
	fmt.Printf("cluster %s has one voter; start it, then others can join: clobd cluster invite\n"+
		"  clobd serve --data %s --cluster %s@%s\n", who.ClusterText(), data, who.Name, who.Address)
	return nil
}

// agree tells what may be lost.
func (c *clusterRestore) agree(who *papers.Passport, r *role.Remains) error {
	at := func(t engine.Time) string {
		if t == 0 {
			return "the beginning"
		}
		return time.UnixMilli(int64(t)).UTC().Format("2006-01-02 15:04:05.000 UTC")
	}
	members := r.Members
	if len(members) == 0 { // the log has not got as far
		for _, n := range who.Members {
			members = append(members, n.Name+"@"+n.Address)
		}
	}
	fmt.Printf("%s of cluster %s, whose members were %s\n", who.Name, who.ClusterText(),
		strings.Join(members, " "))
	fmt.Printf("kept: up to Sequence %d, of %s; entry %d of term %d is the last one here\n",
		r.Head.Sequence, at(r.Head.Time), r.Last.Index, r.Last.Term)
	fmt.Printf("known to be committed: up to Sequence %d, entry %d; this member knows of term %d\n",
		r.Agreed.Sequence, r.Commit, r.Term)
	if n := r.Last.Index - r.Commit; n > 0 {
		fmt.Printf("not known to be committed, and kept: %d entries behind it, with %d commands", n,
			r.Head.Sequence-r.Agreed.Sequence)
		if r.Unknown > 0 {
			fmt.Printf(", since %s", at(r.Unknown))
		}
		fmt.Println("; what others were told of is among them, or lost")
	}
	fmt.Printf("lost: all that the others have acknowledged behind that, since %s; nobody here knows "+
		"how much\n", at(r.Head.Time))
	if c.Yes {
		return nil
	}
	return cli.Hint(errors.New("nothing was changed"), "compare with clobd cluster restore --from on "+
		"each folder that is left: the one with the highest term of the last entry, and then the highest "+
		"entry, has most. A cluster in which a majority starts again needs none of this. Else make sure "+
		"that no other old member ever starts again, and add --yes")
}

// secretFiles are the master secrets that live, as files by the names that they have in a folder.
func (s *settings) secretFiles() (files map[string][]byte, err error) {
	found, err := s.masterSecrets()
	if err != nil {
		return nil, err
	}
	defer forget(found)
	first, _ := s.masterFile()
	files = map[string][]byte{}
	for _, m := range found {
		name := filepath.Base(masterPath(masterName, m.number))
		if files[name], err = os.ReadFile(masterPath(first, m.number)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// inviteRoute answers with a token.
func (n membership) inviteRoute(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Node string }
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&asked)
	var made *role.Invitation
	if err == nil {
		made, err = n.role.Invite(asked.Node)
	}
	if err != nil {
		tellConflict(w, err)
		return
	}
	tell(w, http.StatusOK, made)
}

// tellConflict answers why the cluster stays as it is.
func tellConflict(w http.ResponseWriter, err error) {
	hint := "clobd cluster status tells who is a member, and who leads"
	if advised := new(cli.HintError); errors.As(err, &advised) {
		hint = advised.Hint
	}
	tell(w, http.StatusConflict, problem{err.Error(), hint})
}
