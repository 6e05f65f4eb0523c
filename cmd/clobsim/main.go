package main

import (
	"fmt"
	"os"

	"clobd/cmd/cli"
	"clobd/cmd/clobsim/vectors"
)

// version is stamped by the build.
var version = "dev"

type commands struct {
	Run         runCommand         `cmd:"" help:"Run the node's inside in virtual time against disks that crash, from a seed."`
	Cluster     clusterCommand     `cmd:"" help:"Run a whole cluster in virtual time, through crashes, partitions and damage, from a seed."`
	Reliability reliabilityCommand `cmd:"" help:"Carry out the fault tests at full size, in a checkout, and write down what came of them."`
	Vectors     vectorsCommand     `cmd:"" help:"Check signature vectors: orders, key derivations, request digests."`
	Scenarios   scenariosCommand   `cmd:"" help:"Replay matching scenarios and settlements through the engine."`
	Flow        flowCommand        `cmd:"" help:"Replay order flows with their true fills and books through the engine."`
}

func main() {
	os.Exit(cli.Run("clobsim", "Simulates the node from seeds, and replays what others wrote.", &commands{}, os.Args[1:]))
}

type vectorsCommand struct {
	Files []string `arg:"" type:"existingfile" help:"Files of vectors: valid and invalid ones."`
}

// Run checks every file and names each disagreement.
func (c *vectorsCommand) Run() error {
	agree, disagree := 0, 0
	for _, name := range c.Files {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("open vectors: %w", err)
		}
		a, d, err := vectors.Check(name, f, func(line string) { fmt.Println(line) })
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if a+d == 0 {
			return cli.Hint(fmt.Errorf("%s: no vector in it that can be checked", name),
				"a vector of an order has order, domain, signature and its hash")
		}
		agree, disagree = agree+a, disagree+d
	}
	fmt.Printf("%d agree, %d disagree\n", agree, disagree)
	if disagree > 0 {
		return fmt.Errorf("%d of %d vectors disagree", disagree, agree+disagree)
	}
	return nil
}
