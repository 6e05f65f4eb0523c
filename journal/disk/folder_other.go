//go:build !unix || solaris || illumos || aix

package disk

import "os"

// holdFolder locks nothing: this system has no locks of folders.
func holdFolder(string) (*os.File, error) { return nil, nil }
