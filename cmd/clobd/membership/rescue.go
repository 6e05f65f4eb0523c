package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/journal"
)

// Rescue makes a new cluster of one member's folder when its cluster has lost the majority for
// good.
type Rescue struct {
	Data    string
	Name    string // of the new cluster's first voter; "": the member's name
	Address string // of that voter; "": the member's address
	Open    func() (*journal.Journal, error)
	// Agree decides, from what the folder holds, whether to go on. Its error ends Run.
	Agree func(who *papers.Passport, r *role.Remains) error

	step func() error // a test's, as in a Founding
}

// Run makes the new cluster, or completes one of an earlier Run that was interrupted, and returns
// the passport of its only voter.
func (r *Rescue) Run(ctx context.Context) (who *papers.Passport, err error) {
	part, folder := papers.Part(r.Data), papers.Folder(r.Data)
	old, err := papers.ReadPassport(folder)
	made, wrong := papers.ReadPassport(part)
	if errors.Is(err, papers.ErrNone) && wrong == nil {
		old = made // an earlier Run has put the old papers aside
	} else if err != nil {
		return nil, err
	}
	j, err := r.Open()
	if err != nil {
		return nil, err
	}
	id := j.ID
	remains, err := role.Examine(ctx, j)
	switch {
	case err != nil || wrong == nil && isOf(remains, made): // an earlier Run has written
	case slices.Equal(remains.Voters, []uint64{old.ID}):
		err = cli.Hint(fmt.Errorf("%s is the only voter of its cluster", old.Name),
			"it needs nobody else: clobd serve --data %s --cluster %s@%s", r.Data, old.Name, old.Address)
	default:
		if err = r.Agree(old, remains); err == nil {
			made, err = r.found(j, old, remains)
		}
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return nil, err
	}
	if err := r.putAside(folder, made); err != nil {
		return nil, err
	}
	f := &Founding{step: r.step}
	return made, f.publish(&papers.Founder{Data: r.Data, Fellow: papers.Fellow{ID: made.ID,
		Name: made.Name}}, id)
}

// isOf reports whether a journal already belongs to the new cluster whose voter is who.
func isOf(r *role.Remains, who *papers.Passport) bool {
	return len(r.Voters) == 1 && r.Voters[0] == who.ID && r.Highest == who.ID
}

// found makes the papers of the new cluster, and then turns the journal into its own, in one write.
func (r *Rescue) found(j *journal.Journal, old *papers.Passport, remains *role.Remains) (
	*papers.Passport, error) {
	first := papers.Fellow{Name: cmp.Or(r.Name, old.Name), Address: cmp.Or(r.Address, old.Address),
		ID: max(remains.Highest, old.ID) + 1}
	for _, n := range old.Members { // the journal may end before the change that named them
		first.ID = max(first.ID, n.ID+1)
	}
	cluster := papers.NewClusterID()
	authority, err := papers.NewAuthority(cluster)
	if err != nil {
		return nil, err
	}
	who := &papers.Passport{Name: first.Name, ID: first.ID, Address: first.Address,
		Journal: papers.JournalID(j.ID), Cluster: papers.JournalID(cluster),
		Members: []papers.Fellow{first}}
	part := papers.Part(r.Data)
	for _, step := range []func() error{
		r.stop, func() error { return os.RemoveAll(part) },
		r.stop, func() error { return authority.Write(part, who, true) },
		func() error { return sync(r.Data) },
		r.stop, func() error { return remains.Refound(j, first) }, r.stop} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return who, nil
}

// putAside renames the papers of the old cluster. No program reads them under the new name.
func (r *Rescue) putAside(folder string, made *papers.Passport) error {
	was, err := papers.ReadPassport(folder)
	if errors.Is(err, papers.ErrNone) || err == nil && was.ClusterText() == made.ClusterText() {
		return nil
	} else if err != nil {
		return err
	}
	err = r.stop()
	if err == nil {
		err = os.Rename(folder, folder+".of-"+was.ClusterText())
	}
	if err == nil {
		err = sync(r.Data)
	}
	return err
}

func (r *Rescue) stop() error { return (&Founding{step: r.step}).stop() }
