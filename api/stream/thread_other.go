//go:build !linux

package stream

import "runtime"

// giveWay does nothing: on other systems the priority belongs to the whole process.
func giveWay() {}

// yield lets other goroutines run.
func yield() { runtime.Gosched() }
