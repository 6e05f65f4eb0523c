package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"clobd/cmd/cli"
	"clobd/ingress/limits"
)

// readLimits makes the windows, and reads --limits-file. A bad file refuses the start.
func (n *node) readLimits(context.Context) (err error) {
	if n.Limits == "on" {
		n.windows = limits.New(time.Now)
	}
	if n.LimitsFile == "" {
		return nil
	}
	n.policy, err = parseLimits(n.LimitsFile)
	return cli.Hint(err, "each line is limit NAME REQUESTS/PERIOD, tier NAME xFACTOR, "+
		"tier NAME LIMIT REQUESTS/PERIOD or wallet ADDRESS TIER")
}

func parseLimits(name string) (*limits.Policy, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--limits-file: %w", err)
	}
	defer f.Close() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, limits.FileMost+1))
	if err != nil {
		return nil, fmt.Errorf("--limits-file: %w", err)
	}
	policy, err := limits.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("--limits-file %s: %w", name, err)
	}
	return policy, nil
}

// followLimits reads the file again after each SIGHUP, until ctx is done. While it is bad, the
// limits stay as they are.
func (n *node) followLimits(ctx context.Context) {
	for {
		select {
		case <-n.reread:
		case <-ctx.Done():
			return
		}
		policy, err := parseLimits(n.LimitsFile)
		if err != nil {
			n.log.Error("the limits stay as they were: the file is bad", "error", err)
			continue
		}
		n.door.SetLimits(policy)
		tiers, wallets := policy.Count()
		n.log.Info("limits", "file", n.LimitsFile, "tiers", tiers, "wallets", wallets)
	}
}
