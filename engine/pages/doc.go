// Package pages has the kernel keep this process's memory in huge pages, of 2 MiB on amd64.
//
//	heap, as the kernel mapped it        what is done with each 2 MiB
//	┌────┬────┬────┬────┬────┬────┐
//	│████│█·██│·█··│████│····│████│      nearly all in use: gathered into one page, by copying
//	└────┴────┴────┴────┴────┴────┘      else: left as it is, so that no memory is added for nothing
//
// Before a processor reads memory it must know where that lies, and it remembers that of some 2,000
// pages. The orders of a large exchange lie on hundreds of thousands of small ones: half of what an
// operation among 10,000,000 orders took was spent on finding out.
//
// Contract:
//
//   - Nothing but the time that memory takes is changed. Where the kernel refuses, for want of
//     memory or since it is told never to keep huge pages, all stays as it was.
//   - An area is gathered only if nine tenths of it are there already, in memory of its own: the
//     rest is what the process grows by at most.
//   - Who needs an area while it is copied, or fresh memory beside it, waits: about a millisecond.
//     So it is done before anybody is served, and later with rests as long as each copy.
//   - Where the kernel has none to give, it is not asked on and on.
//   - The kernel's own gathering (khugepaged) is not asked for: it would also fill what the Go
//     runtime has given back.
package pages
