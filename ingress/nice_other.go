//go:build !linux

package ingress

// setNice does nothing where priorities belong to processes.
func setNice(int) {}
