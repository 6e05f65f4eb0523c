package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"clobd/cmd/cli"
)

// Ready is clobd ready: whether a node takes orders.
type Ready struct {
	Admin string        `default:"127.0.0.1:8081" help:"The node's admin listener."`
	Wait  time.Duration `help:"Ask again until it is, but no longer than this."`
}

const (
	readyEvery  = 50 * time.Millisecond
	readyAnswer = 5 * time.Second // for one answer: health checks of containers wait no longer
)

// Run prints what the node says of itself if it is ready, and fails with the reason if it is not.
func (c *Ready) Run(ctx context.Context) error {
	base, err := adminURL(c.Admin)
	if err != nil {
		return err
	}
	for end := time.Now().Add(c.Wait); ; {
		if err = c.ask(ctx, base+"/readyz"); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyEvery):
		}
	}
}

func (c *Ready) ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyAnswer)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return cli.Hint(fmt.Errorf("reach the node: %w", err),
			"is it running, and is --admin %s its admin listener?", c.Admin)
	}
	defer answer.Body.Close()
	var told struct {
		Ready    bool   `json:"ready"`
		Why      string `json:"why"`
		Version  string `json:"version"`
		Sequence uint64 `json:"sequence"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !told.Ready || answer.StatusCode != http.StatusOK {
		return errors.New("not ready: " + told.Why)
	}
	fmt.Printf("ready: clobd %s at Sequence %d\n", told.Version, told.Sequence)
	return nil
}
