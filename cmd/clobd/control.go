package main

// stateCommand is open, pause and close.
type stateCommand struct {
	operator
	Market string `required:"" help:"Condition id of the market, or one of its token ids."`
	state  string // open, pause or close
}

func (c *stateCommand) Run() error {
	return c.call("/admin/state", map[string]string{"market": c.Market, "state": c.state})
}

type resolveCommand struct {
	operator
	Market  string `required:"" help:"Condition id of the market, or one of its token ids."`
	Payouts string `required:"" help:"What each outcome pays, in the order of the tokens: 1,0 or 0.5,0.5. They add up to 1."`
	Ref     string `help:"Your reference: the same one is carried out once only, ever."`
}

func (c *resolveCommand) Run() error {
	return c.call("/admin/resolve", map[string]string{
		"market": c.Market, "payouts": c.Payouts, "ref": c.Ref})
}

type adjustCommand struct {
	operator
	Market  string `required:"" help:"Condition id of the market, or one of its token ids."`
	Tick    string `help:"Price step: 0.1, 0.01, 0.005, 0.0025, 0.001 or 0.0001."`
	MinSize string `help:"Least size of an order that may rest, in shares."`
	MinBuy  string `help:"Least that a BUY that trades at once must pay, in collateral; 0: anything."`
	Fee     string `help:"Taker fee: the rate in basis points, and its exponent after ^, such as 441 or 700^2."`
}

func (c *adjustCommand) Run() error {
	return c.call("/admin/adjust", map[string]string{
		"market": c.Market, "tick": c.Tick, "min_size": c.MinSize, "min_buy": c.MinBuy,
		"fee": c.Fee})
}

type modeCommand struct {
	operator
	Mode   string `arg:"" enum:"normal,post-only,cancel-only" help:"What is taken: normal, post-only or cancel-only."`
	Market string `help:"Only in this market: its condition id, or one of its token ids."`
	Wallet string `help:"Only of this wallet."`
}

func (c *modeCommand) Run() error {
	return c.call("/admin/mode", map[string]string{
		"mode": c.Mode, "market": c.Market, "wallet": c.Wallet})
}

type stpCommand struct {
	operator
	Wallet  string `required:"" help:"Address of the wallet."`
	Expires string `arg:"" enum:"resting,arriving,both,none" help:"What expires when the wallet meets itself: resting, arriving, both or none."`
}

func (c *stpCommand) Run() error {
	return c.call("/admin/stp", map[string]string{"wallet": c.Wallet, "mode": c.Expires})
}

type collectCommand struct {
	operator
	Wallet string `required:"" help:"Address of the wallet that gets the fees."`
	Amount string `required:"" help:"Units of collateral, with up to 6 decimals."`
	Ref    string `help:"Your reference: the same one is carried out once only, ever."`
}

func (c *collectCommand) Run() error {
	return c.call("/admin/collect", map[string]string{
		"wallet": c.Wallet, "amount": c.Amount, "ref": c.Ref})
}
