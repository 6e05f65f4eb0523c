package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/cmd/clobd/role"
	"clobd/journal"
	"clobd/journal/disk"
)

// Joining makes the folder of a new member for a Token.
type Joining struct {
	Token   *papers.Token
	From    string // address of the token's issuer
	Name    string
	Address string
	Data    string
	Journal func(data string) journal.Options

	step func() error // a test's, as in a Founding
}

// Run applies to the token's issuer and makes the folder. It returns the settings that all members
// share, or nil if an earlier Run had received them. After an error it can be called again: the key
// of the first call stays, and the token is good for that key.
func (j *Joining) Run(ctx context.Context) (settings map[string]string, err error) {
	if who, err := papers.ReadPassport(papers.Folder(j.Data)); err == nil {
		return nil, cli.Hint(fmt.Errorf("%s is the folder of %s in cluster %s already", j.Data, who.Name,
			who.ClusterText()), "if it joins that one: clobd serve --cluster; if it was removed, or joins "+
			"another one, it needs a new folder")
	} else if !errors.Is(err, papers.ErrNone) {
		return nil, err
	}
	if err := disk.MakeFolder(nil, j.Data); err != nil {
		return nil, err
	}
	claim, err := disk.TakeClaim(j.Data) // so that no other process uses the folder
	if err != nil {
		return nil, role.Advised(err)
	}
	defer claim.Release()
	f := &Founding{All: []papers.Founder{{Data: j.Data, Fellow: papers.Fellow{Name: j.Name,
		Address: j.Address}}}, Others: j.Journal, step: j.step}
	part := papers.Part(j.Data)
	who, err := papers.ReadPassport(part)
	if errors.Is(err, papers.ErrNone) {
		if who, settings, err = j.equip(ctx, f); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if who.Name != j.Name || who.Address != j.Address {
		return nil, cli.Hint(fmt.Errorf("clobd cluster join has begun for %s@%s here", who.Name,
			who.Address), "repeat it with the same words, and it goes on")
	}
	cluster, err := who.JournalNumber()
	if err != nil {
		return nil, err
	}
	f.All[0].ID = who.ID
	if err := f.publish(&f.All[0], cluster); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", j.Name, err)
	}
	return settings, nil
}

// equip applies to the issuer and makes the part. The papers are its last files.
func (j *Joining) equip(ctx context.Context, f *Founding) (*papers.Passport, map[string]string,
	error) {
	part := papers.Part(j.Data)
	if err := empty(j.Data); err != nil {
		return nil, nil, err
	}
	request, err := papers.Request(part)
	if err == nil {
		err = f.stop()
	}
	if err != nil {
		return nil, nil, err
	}
	given, err := j.Token.Apply(ctx, j.From, &papers.Application{Name: j.Name, Address: j.Address,
		Request: request})
	if err != nil {
		return nil, nil, cli.Hint(err, "--from is the address in --cluster of the member that was asked "+
			"for the token; this can be repeated")
	}
	defer clear(given.Secrets)
	if given.Refused != "" {
		return nil, nil, cli.Hint(fmt.Errorf("%s refuses: %s", j.From, given.Refused), "%s",
			cmp.Or(given.Hint, "clobd cluster invite makes another token"))
	}
	if given.Passport == nil || given.Passport.Name != j.Name || given.Passport.Address != j.Address {
		return nil, nil, errors.New("the answer is for another member")
	}
	cluster, err := given.Passport.JournalNumber()
	if err != nil {
		return nil, nil, err
	}
	f.Secrets = map[string][]byte{}
	for name, text := range given.Secrets {
		f.Secrets[name] = text
		if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
			return nil, nil, fmt.Errorf("the answer holds a file called %q", name)
		}
	}
	err = errors.Join(f.stop(), os.RemoveAll(filepath.Join(part, home)))
	if err == nil {
		err = f.equip(filepath.Join(part, home), cluster)
	}
	if err == nil {
		err = f.stop()
	}
	if err == nil {
		err = j.Token.Accept(part, given)
	}
	return given.Passport, given.Settings, err
}
