package main

import (
	"context"

	"clobd/api/wallets"
	"clobd/cmd/cli"
)

// readProfiles reads what the operator says of wallets, and goes on reading it whenever the file
// changes, until ctx is done.
func (n *node) readProfiles(ctx context.Context) (err error) {
	if n.Profiles == "" {
		return nil
	}
	if n.profiles, err = wallets.OpenProfiles(n.Profiles, n.log); err != nil {
		return cli.Hint(err, "--profiles takes a JSON array of objects like "+
			`{"proxyWallet":"0x and 40 hex digits","name":"…"}`)
	}
	go n.profiles.Run(ctx)
	return nil
}
