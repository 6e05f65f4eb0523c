package main

import (
	"os"

	"clobd/bench"
)

// wallet is whose orders the commands of this file are about.
type wallet struct {
	URL     string `name:"url" default:"http://127.0.0.1:8080" help:"The node."`
	Key     string `required:"" help:"Private key: 0x and 64 hex digits, or @FILE."`
	ChainID uint64 `default:"80002" help:"Chain id of the signing domain."`
}

// oneOrder is an order on the command line.
type oneOrder struct {
	wallet
	Token     string `required:"" help:"Outcome token id, decimal."`
	Side      string `required:"" enum:"BUY,SELL,buy,sell" help:"BUY or SELL."`
	Price     string `required:"" help:"Limit price of one share, as 0.51."`
	Size      string `required:"" help:"Shares, as 10 or 21.04."`
	Type      string `default:"GTC" enum:"GTC,GTD,FOK,FAK" help:"Order type."`
	Signature int    `default:"0" enum:"0,1,2,3" help:"Signature type."`
	Wallet    string `help:"Signature types 1 to 3: the wallet that the key trades for."`

	Expiration uint64 `help:"When a GTD ends, in unix seconds."`
	Builder    string `help:"Code of who brings the order: 0x and 64 hex digits."`
}

func (c *oneOrder) order() bench.OneOrder {
	return bench.OneOrder{URL: c.URL, Key: c.Key, Token: c.Token,
		Side: c.Side, Price: c.Price, Size: c.Size, Type: c.Type, Chain: c.ChainID,
		SignatureType: c.Signature, Wallet: c.Wallet, Expiration: c.Expiration, Builder: c.Builder}
}

type orderCommand struct{ oneOrder }

// Run signs, places and prints.
func (c *orderCommand) Run() error { return usage(bench.PlaceOne(os.Stdout, c.order())) }

type signCommand struct {
	Order signOrder `cmd:"" help:"Print the body of POST /order. The node is asked which exchange the token is of."`
	Auth  signAuth  `cmd:"" help:"Print the headers of POST /auth/api-key, one a line."`
}

type signOrder struct {
	oneOrder
	Owner string `required:"" help:"The API key that posts the order."`
}

// Run signs and prints.
func (c *signOrder) Run() error {
	o := c.order()
	o.Owner = c.Owner
	return usage(bench.SignOne(os.Stdout, o))
}

type signAuth struct {
	Key     string `required:"" help:"Private key: 0x and 64 hex digits, or @FILE."`
	ChainID uint64 `default:"80002" help:"Chain id of the signing domain."`
}

// Run signs and prints.
func (c *signAuth) Run() error { return usage(bench.SignAuth(os.Stdout, c.Key, c.ChainID)) }

type keyCommand struct{ wallet }

// Run derives and prints.
func (c *keyCommand) Run() error {
	return usage(bench.DeriveOne(os.Stdout, c.URL, c.Key, c.ChainID))
}

type cancelCommand struct{ wallet }

// Run cancels and prints.
func (c *cancelCommand) Run() error {
	return usage(bench.CancelOnes(os.Stdout, c.URL, c.Key, c.ChainID))
}
