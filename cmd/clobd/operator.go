package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clobd/cmd/cli"
)

// operator is the flags of every command to a running node: the admin listener, and the data folder
// with the token.
type operator struct {
	Admin string `default:"127.0.0.1:8081" help:"The node's admin listener."`
	Data  string `default:"clobd-data" help:"The node's data folder: its admin.token is read."`
}

// call posts a request to the admin listener and prints the answer.
func (o *operator) call(path string, request map[string]string) error {
	text, err := o.post(path, request, 15*time.Second)
	if err == nil {
		fmt.Println(text)
	}
	return err
}

// post posts a request to the admin listener, without its empty values, and returns the answer,
// which must come within limit.
func (o *operator) post(
	path string, request map[string]string, limit time.Duration) (string, error) {
	address := strings.TrimSuffix(strings.TrimPrefix(o.Admin, "http://"), "/")
	if _, _, err := net.SplitHostPort(address); err != nil || strings.Contains(address, "/") {
		return "", &cli.UsageError{Err: cli.Hint(fmt.Errorf("--admin %q is no address", o.Admin),
			"write HOST:PORT of the node's admin listener, which speaks plain HTTP")}
	}
	maps.DeleteFunc(request, func(_, value string) bool { return value == "" })
	file := filepath.Join(o.Data, "admin.token")
	token, err := os.ReadFile(file)
	if err != nil {
		return "", cli.Hint(fmt.Errorf("read admin token: %w", err),
			"--data names the data folder of the running node")
	}
	body, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+address+path, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: limit}
	answer, err := client.Do(r)
	if err != nil {
		return "", cli.Hint(fmt.Errorf("reach the node: %w", err),
			"is it running, and is --admin %s its admin listener?", o.Admin)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", refusal(answer.StatusCode, text)
	}
	return strings.TrimSpace(string(text)), nil
}

func refusal(status int, body []byte) error {
	var told struct{ Error, Hint string }
	if json.Unmarshal(body, &told) != nil || told.Error == "" {
		return fmt.Errorf("the node answered %d: %s", status, strings.TrimSpace(string(body)))
	}
	err := fmt.Errorf("the node answered %d: %s", status, told.Error)
	if told.Hint != "" {
		err = cli.Hint(err, "%s", told.Hint)
	}
	return err
}

// transferCommand is fund and withdraw.
type transferCommand struct {
	operator
	Wallet string `required:"" help:"Address of the wallet, 0x and 40 hex digits."`
	Amount string `required:"" help:"Units of collateral, or shares of --token, with up to 6 decimals."`
	Token  string `help:"Outcome token id; without it collateral is moved."`
	Ref    string `help:"Your reference: the same one is carried out once only, ever."`
	path   string // of the admin route
}

func (c *transferCommand) Run() error {
	return c.call(c.path, map[string]string{"wallet": c.Wallet, "amount": c.Amount,
		"token": c.Token, "ref": c.Ref})
}

type linkCommand struct {
	operator
	Wallet string `required:"" help:"Address of the wallet that holds the assets."`
	Owner  string `required:"" help:"Address behind the API key that may trade for it."`
}

func (c *linkCommand) Run() error {
	return c.call("/admin/link", map[string]string{"wallet": c.Wallet, "owner": c.Owner})
}
