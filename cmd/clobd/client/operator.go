package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clobd/cmd/cli"
)

// Commands are the operator's commands to a running node: a program embeds them.
type Commands struct {
	Fund     transferCommand `cmd:"" help:"Credit a wallet with collateral or with outcome tokens."`
	Withdraw transferCommand `cmd:"" help:"Take free collateral or tokens away from a wallet."`
	Link     linkCommand     `cmd:"" help:"Let an owner's key trade for a wallet."`
	Collect  collectCommand  `cmd:"" help:"Move fees that were taken to a wallet."`
	Open     stateCommand    `cmd:"" help:"Let a market take orders."`
	Pause    stateCommand    `cmd:"" help:"Make a market refuse orders; its book stays."`
	Close    stateCommand    `cmd:"" help:"End trading in a market and cancel its orders."`
	Resolve  resolveCommand  `cmd:"" help:"Say what the outcomes of a market pay, for good."`
	Adjust   adjustCommand   `cmd:"" help:"Change a market's tick, minimums or fee."`
	Mode     modeCommand     `cmd:"" help:"Take only cancels, only post-only orders, or everything again."`
	Stp      stpCommand      `cmd:"" help:"Set what prevents self-trades of a wallet."`
}

// New returns the commands, of which some share a type and differ in what they ask for.
func New() Commands {
	return Commands{Fund: transferCommand{path: "/admin/fund"},
		Withdraw: transferCommand{path: "/admin/withdraw"}, Open: stateCommand{State: "open"},
		Pause: stateCommand{State: "pause"}, Close: stateCommand{State: "close"}}
}

// Operator is the flags of every command to a running node.
type Operator struct {
	Admin string `default:"127.0.0.1:8081" help:"The node's admin listener."`
	Data  string `default:"clobd-data" help:"The node's data folder: its admin.token is read."`
}

func (o *Operator) call(path string, request any) error {
	text, err := o.Post(path, request, 15*time.Second)
	if err == nil {
		fmt.Println(text)
	}
	return err
}

// Post posts a request to the admin listener and returns the answer, which must come within limit.
func (o *Operator) Post(path string, request any, limit time.Duration) (string, error) {
	base, err := adminURL(o.Admin)
	if err != nil {
		return "", err
	}
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
	r, err := http.NewRequest(http.MethodPost, base+path, bytes.NewReader(body))
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

// adminURL is the base of the addresses of an admin listener.
func adminURL(admin string) (string, error) {
	scheme, address, named := strings.Cut(strings.TrimSuffix(admin, "/"), "://")
	if !named {
		scheme, address = "http", scheme
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.Contains(address, "/") || scheme != "http" && scheme != "https" {
		return "", &cli.UsageError{Err: cli.Hint(fmt.Errorf("--admin %q is no address", admin),
			"write HOST:PORT of the node's admin listener, with https:// before it if it speaks TLS")}
	}
	// What listens on all addresses of this machine is asked at one that only this machine has.
	own := map[string]string{"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}[host]
	return scheme + "://" + net.JoinHostPort(cmp.Or(own, host), port), nil
}

// LoopbackOnly reports whether only this machine can reach an address.
func LoopbackOnly(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // opening it says what is wrong
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func refusal(status int, body []byte) error {
	var told struct{ Error, Hint string }
	if json.Unmarshal(body, &told) != nil || told.Error == "" {
		return fmt.Errorf("the node answered %d: %s", status, strings.TrimSpace(string(body)))
	}
	err := fmt.Errorf("the node answered %d: %s", status, told.Error)
	if told.Hint == "" {
		return err
	}
	return cli.Hint(err, "%s", told.Hint)
}

// transferCommand is fund and withdraw.
type transferCommand struct {
	Operator `json:"-"`
	Wallet   string `json:"wallet,omitempty" required:"" help:"Address of the wallet, 0x and 40 hex digits."`
	Amount   string `json:"amount,omitempty" required:"" help:"Units of collateral, or shares of --token, with up to 6 decimals."`
	Token    string `json:"token,omitempty" help:"Outcome token id; without it collateral is moved."`
	Ref      string `json:"ref,omitempty" help:"Your reference: the same one is carried out once only, ever."`
	path     string // of the admin route
}

func (c *transferCommand) Run() error { return c.call(c.path, c) }

type linkCommand struct {
	Operator `json:"-"`
	Wallet   string `json:"wallet,omitempty" required:"" help:"Address of the wallet that holds the assets."`
	Owner    string `json:"owner,omitempty" required:"" help:"Address behind the API key that may trade for it."`
}

func (c *linkCommand) Run() error { return c.call("/admin/link", c) }

// stateCommand is open, pause and close.
type stateCommand struct {
	Operator `json:"-"`
	Market   string `json:"market,omitempty" required:"" help:"Condition id of the market, or one of its token ids."`
	State    string `kong:"-" json:"state"` // open, pause or close
}

func (c *stateCommand) Run() error { return c.call("/admin/state", c) }

type resolveCommand struct {
	Operator `json:"-"`
	Market   string `json:"market,omitempty" required:"" help:"Condition id of the market, or one of its token ids."`
	Payouts  string `json:"payouts,omitempty" required:"" help:"What each outcome pays, in the order of the tokens: 1,0 or 0.5,0.5. They add up to 1."`
	Ref      string `json:"ref,omitempty" help:"Your reference: the same one is carried out once only, ever."`
}

func (c *resolveCommand) Run() error { return c.call("/admin/resolve", c) }

type adjustCommand struct {
	Operator `json:"-"`
	Market   string `json:"market,omitempty" required:"" help:"Condition id of the market, or one of its token ids."`
	Tick     string `json:"tick,omitempty" help:"Price step: 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001."`
	MinSize  string `json:"min_size,omitempty" help:"Least size of an order that may rest, in shares."`
	MinBuy   string `json:"min_buy,omitempty" help:"Least that a BUY that trades at once must pay, in collateral; 0: anything."`
	Fee      string `json:"fee,omitempty" help:"Taker fee: the rate in basis points, and its exponent after ^, such as 441 or 700^2."`
}

func (c *adjustCommand) Run() error { return c.call("/admin/adjust", c) }

type modeCommand struct {
	Operator `json:"-"`
	Mode     string `json:"mode,omitempty" arg:"" enum:"normal,post-only,cancel-only" help:"What is taken: normal, post-only or cancel-only."`
	Market   string `json:"market,omitempty" help:"Only in this market: its condition id, or one of its token ids."`
	Wallet   string `json:"wallet,omitempty" help:"Only of this wallet."`
}

func (c *modeCommand) Run() error { return c.call("/admin/mode", c) }

type stpCommand struct {
	Operator `json:"-"`
	Wallet   string `json:"wallet,omitempty" required:"" help:"Address of the wallet."`
	Expires  string `json:"mode,omitempty" arg:"" enum:"resting,arriving,both,none" help:"What expires when the wallet meets itself: resting, arriving, both or none."`
}

func (c *stpCommand) Run() error { return c.call("/admin/stp", c) }

type collectCommand struct {
	Operator `json:"-"`
	Wallet   string `json:"wallet,omitempty" required:"" help:"Address of the wallet that gets the fees."`
	Amount   string `json:"amount,omitempty" required:"" help:"Units of collateral, with up to 6 decimals."`
	Ref      string `json:"ref,omitempty" help:"Your reference: the same one is carried out once only, ever."`
}

func (c *collectCommand) Run() error { return c.call("/admin/collect", c) }
