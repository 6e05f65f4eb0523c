package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/doctor"
	"clobd/ingress"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
)

type doctorCommand struct {
	Data        string   `default:"clobd-data" help:"The data folder. It need not exist yet, and a node may run in it."`
	DiskReserve byteSize `default:"1GiB" help:"As for serve: free space below which only cancels are taken."`
	DiskBallast byteSize `default:"256MiB" help:"As for serve: size of the file that is kept for a full disk."`
	Sockets     int      `default:"16384" help:"As for serve: WebSockets that may be open at once."`
	Lanes       string   `default:"on" enum:"on,off" help:"As for serve: check signatures in the widest registers of the processor."`
	JSON        bool     `name:"json" help:"Print one JSON object."`
}

// Run looks at the machine, prints what it found, and fails if a promise cannot be kept here.
func (c *doctorCommand) Run(ctx context.Context) error {
	if c.Sockets < 1 {
		return &cli.UsageError{Err: errors.New("--sockets must be above 0")}
	}
	d, err := doctor.Examine(ctx, doctor.Options{Data: c.Data, Reserve: int64(c.DiskReserve),
		Ballast: int64(c.DiskBallast), Connections: ingress.Connections, Sockets: c.Sockets,
		SpareFiles: conn.SpareFiles, Window: auth.WindowFuture, Refused: checkFolder(c.Data),
		WithoutLanes: c.Lanes == "off", Seal: seal})
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(os.Stdout).Encode(d)
	} else {
		err = d.WriteText(os.Stdout)
	}
	if broken := d.Broken(); err == nil && len(broken) > 0 {
		return cli.Hint(fmt.Errorf("a promise cannot be kept here: %s", strings.Join(broken, ", ")),
			"each line with FAIL says why, and the list at the end what to change")
	}
	return err
}
