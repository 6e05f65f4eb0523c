package role

import (
	"errors"
	"testing"

	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
	"clobd/journal"
)

// TestWriterFails: when the writer can no longer make anything durable the process ends with 70.
func TestWriterFails(t *testing.T) {
	full := errors.New("disk full")
	writer, err := sequencer.New(engine.NewExchange(1), view.NewBoard(),
		&memory.Journal{OnWait: func(uint64) error { return full }}, sequencer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	a := &Alone{writer: writer, Common: &Common{
		options: Options{Failed: func(_ string, err error) { failed <- err }}}}
	go a.write()
	if _, err := writer.Submit(&engine.Command{Kind: engine.Started, Seen: 1}); err == nil {
		t.Error("answered, and not durable")
	}
	err = <-failed
	var broken *cli.BrokenError
	var hint *cli.HintError
	if !errors.As(err, &broken) || !errors.As(err, &hint) || !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if journal.ExitJournal != cli.Broken {
		t.Errorf("the journal ends the process with %d", journal.ExitJournal)
	}
}
