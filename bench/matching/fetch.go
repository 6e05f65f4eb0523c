//go:build amd64 || arm64

package matching

import "unsafe"

// fetchLine prefetches the cache line of p, which may be nil. The processor does not wait for it.
//
//go:noescape
func fetchLine(p unsafe.Pointer)

// fetchNear fetches the links and the records of the orders of a bare that lie in one piece: links
// and orders point to record 0. It skips ids beyond handles.
//
//go:noescape
func fetchNear(handles, ids []uint32, links, orders unsafe.Pointer)

// fetchHandles fetches the handles of these ids, which the caller of a bare will read or write,
// bareAhead at a time.
//
//go:noescape
func fetchHandles(handles, ids []uint32)
