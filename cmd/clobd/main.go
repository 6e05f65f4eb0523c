// Names are looked up in Go: a program that is linked as a whole cannot call the system's resolver.

//go:debug netdns=go
package main

import (
	"os"
	"syscall"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
)

// version is stamped by the build.
var version = "dev"

type commands struct {
	Serve serveCommand `cmd:"" help:"Run the node."`
	client.Commands
	Ready      client.Ready      `cmd:"" help:"Tell whether a node takes orders: code 0 if it does. For health checks and scripts."`
	Verify     verifyCommand     `cmd:"" help:"Check all that a data folder, or a backup, promises."`
	Inspect    inspectCommand    `cmd:"" help:"Print what is in the journal: by Sequence, order, wallet or trade."`
	Backup     backupCommand     `cmd:"" help:"Let a running node make a copy of its data folder."`
	Restore    restoreCommand    `cmd:"" help:"Make a data folder of a backup, and check it."`
	Recover    recoverCommand    `cmd:"" help:"Tell why a start is refused; accept the loss; make the index anew."`
	Checkpoint checkpointCommand `cmd:"" help:"Write a checkpoint at the journal's end, as a stop does: before an upgrade after a crash. A node that runs is asked to write one."`
	Scrub      scrubCommand      `cmd:"" help:"Read the whole data folder, and tell what is damaged. A node that runs does so itself each --scrub-interval, and is asked to do so at once."`
	Doctor     doctorCommand     `cmd:"" help:"Tell what this machine will carry, what a node cannot promise on it, and what to change."`
	Secret     secretCommand     `cmd:"" help:"Change the master secret that API keys derive from, while the node runs."`
	Tail       client.Tail       `cmd:"" help:"Print the changes of markets as they come, and go on by itself after a break."`
	Cluster    clusterCommand    `cmd:"" help:"Several machines that keep one exchange: make a cluster, look at it, hand the lead over."`
	Completion cli.Completion    `cmd:"" help:"Print the completion of this program for a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

func main() {
	syscall.Umask(0o077) // the database would let a group change its files if the shell does
	all := &commands{Commands: client.New()}
	os.Exit(cli.Run("clobd", "The matching node of a prediction market.", all, os.Args[1:]))
}

type versionCommand struct{}

func (versionCommand) Run() error {
	_, err := os.Stdout.WriteString("clobd " + version + "\n")
	return err
}
