//go:build !linux

package doctor

import "os"

// survey tells nothing: only Linux is asked.
func (m *machine) survey(*Options) {}

// syncContent makes a file durable.
func syncContent(f *os.File) error { return f.Sync() }

// watchHiccups measures nothing: Go's timers are late by themselves.
func watchHiccups(stop <-chan struct{}) *hiccups {
	<-stop
	return nil
}

// watchDemand knows of nobody else.
func watchDemand() func() *demand { return func() *demand { return nil } }
