package membership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/journal"
	"clobd/journal/disk"
)

// home is the folder in a part for the files that belong beside the papers.
const home = "home"

// Founding makes a cluster of the first founder's folder and new ones for the others.
type Founding struct {
	All []papers.Founder
	// Open opens the first member's journal. Others returns the options for that of a further member.
	Open   func() (*journal.Journal, error)
	Others func(data string) journal.Options
	// Secrets are the files that all members share, by their names.
	Secrets map[string][]byte

	step func() error // a test's: called between steps; an error ends Run as a crash would
}

// Run makes the folders, or completes those of an earlier Run that was interrupted, and returns the
// cluster's id.
func (f *Founding) Run(ctx context.Context) (cluster uint64, err error) {
	if _, _, err := papers.Read(f.All[0].Data); !errors.Is(err, papers.ErrNone) {
		return 0, errors.Join(err, cli.Hint(fmt.Errorf("%s is the folder of a member already",
			f.All[0].Data), "start it: clobd serve --cluster"))
	}
	j, err := f.Open()
	if err != nil {
		return 0, err
	}
	cluster = j.ID
	if journal.Member(j) == nil {
		err = f.begin(ctx, j)
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return 0, err
	}
	if err := f.agrees(cluster); err != nil {
		return 0, err
	}
	for i := len(f.All) - 1; i >= 0; i-- { // the first member's papers, the last, say that all is done
		if err := f.publish(&f.All[i], cluster); err != nil {
			return 0, fmt.Errorf("make the folder of %s: %w", f.All[i].Name, err)
		}
	}
	return cluster, nil
}

func (f *Founding) fellows() (all []papers.Fellow) {
	for i := range f.All {
		all = append(all, f.All[i].Fellow)
	}
	return all
}

// begin makes all parts, and then turns the first folder's journal into a member's.
func (f *Founding) begin(ctx context.Context, j *journal.Journal) error {
	for i := range f.All[1:] {
		if err := empty(f.All[i+1].Data); err != nil {
			return err
		}
	}
	authority, err := papers.NewAuthority(j.ID)
	if err != nil {
		return fmt.Errorf("make the cluster's authority: %w", err)
	}
	for i := range f.All {
		part := papers.Part(f.All[i].Data)
		if err := errors.Join(f.stop(), os.RemoveAll(part)); err != nil {
			return err
		}
		if err := disk.MakeFolder(nil, part); err != nil {
			return err
		}
		if i > 0 {
			if err := f.equip(filepath.Join(part, home), j.ID); err != nil {
				return fmt.Errorf("make the journal of %s: %w", f.All[i].Name, err)
			}
		}
		who := &papers.Passport{Name: f.All[i].Name, ID: f.All[i].ID, Address: f.All[i].Address,
			Journal: papers.JournalID(j.ID), Members: f.fellows()}
		if err := errors.Join(f.stop(), authority.Write(part, who, i == 0)); err != nil {
			return fmt.Errorf("make the papers of %s: %w", f.All[i].Name, err)
		}
	}
	if err := f.stop(); err != nil {
		return err
	}
	return errors.Join(role.Found(ctx, j, f.fellows()), f.stop())
}

// empty returns an error if a folder holds anything but a part.
func empty(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != filepath.Base(papers.Part(data)) && name != "lost+found" {
			return cli.Hint(fmt.Errorf("%s is not empty", data), "a voter or gateway that begins needs a "+
				"new folder")
		}
	}
	return nil
}

// equip makes the secrets and the empty journal of a further member.
func (f *Founding) equip(to string, cluster uint64) error {
	if err := disk.MakeFolder(nil, to); err != nil {
		return err
	}
	for name, text := range f.Secrets {
		if err := papers.Put(filepath.Join(to, name), text); err != nil {
			return err
		}
	}
	if err := f.stop(); err != nil {
		return err
	}
	return role.Follow(f.Others(to), cluster)
}

// agrees returns an error unless an earlier Run began with the same founders.
func (f *Founding) agrees(cluster uint64) error {
	first := f.All[0].Data
	who, err := papers.ReadPassport(papers.Part(first))
	if errors.Is(err, papers.ErrNone) {
		return cli.Hint(fmt.Errorf("%s has the journal of a member, and no papers of one", first),
			"put its folder cluster back, or make the cluster of a copy of the folder that is older")
	} else if err != nil {
		return err
	}
	if who.Journal != papers.JournalID(cluster) || !slices.Equal(who.Members, f.fellows()) {
		text := ""
		for _, n := range who.Members {
			text += " " + n.Name + "@" + n.Address
		}
		return cli.Hint(fmt.Errorf("clobd cluster init has begun with other members here:%s", text),
			"repeat it with the same words, and it goes on")
	}
	return nil
}

// publish moves the files of a part to their places, unless they are there already.
func (f *Founding) publish(x *papers.Founder, cluster uint64) error {
	part := papers.Part(x.Data)
	who, err := papers.ReadPassport(part)
	if errors.Is(err, papers.ErrNone) {
		who, err = papers.ReadPassport(papers.Folder(x.Data))
	}
	switch {
	case errors.Is(err, papers.ErrNone):
		return cli.Hint(fmt.Errorf("%s has nothing of what was made for %s", x.Data, x.Name),
			"repeat clobd cluster init with the same words, and it goes on")
	case err != nil:
		return err
	case who.ID != x.ID || who.Journal != papers.JournalID(cluster):
		return fmt.Errorf("%s is the folder of %s in cluster %s", x.Data, who.Name, who.Journal)
	}
	entries, err := os.ReadDir(filepath.Join(part, home))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := f.stop(); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(part, home, e.Name()),
			filepath.Join(x.Data, e.Name())); err != nil {
			return err
		}
	}
	if err := sync(x.Data); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(part, home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.stop(); err != nil {
		return err
	}
	err = os.Rename(part, papers.Folder(x.Data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an earlier call moved it
		return err
	}
	return sync(x.Data)
}

func sync(dir string) error { return disk.SyncFolder(disk.Filesystem(nil), dir) }

func (f *Founding) stop() error {
	if f.step == nil {
		return nil
	}
	return f.step()
}
