//go:build !linux

package stream

import "runtime"

// giveWay does nothing: elsewhere a priority is that of the whole process.
func giveWay() {}

// yield lets other goroutines run.
func yield() { runtime.Gosched() }
