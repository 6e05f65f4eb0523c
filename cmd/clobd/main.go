package main

import (
	"os"

	"clobd/cmd/cli"
)

// version is stamped by the build.
var version = "dev"

type commands struct {
	Serve    serveCommand    `cmd:"" help:"Run the node."`
	Fund     fundCommand     `cmd:"" help:"Credit a wallet with collateral or with outcome tokens."`
	Withdraw withdrawCommand `cmd:"" help:"Take free collateral or tokens away from a wallet."`
	Link     linkCommand     `cmd:"" help:"Let an owner's key trade for a wallet."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

func main() {
	os.Exit(cli.Run("clobd", "The matching node of a prediction market.", &commands{}, os.Args[1:]))
}

type versionCommand struct{}

// Run prints the version that the build stamped.
func (versionCommand) Run() error {
	_, err := os.Stdout.WriteString("clobd " + version + "\n")
	return err
}
