// Package pages asks the kernel to keep this process's memory in huge pages, of 2 MiB on amd64.
//
//	heap, as the kernel mapped it        each area of 2 MiB
//	┌────┬────┬────┬────┬────┬────┐
//	│████│█·██│·█··│████│····│████│      nearly all in use: gathered into one page, by copying
//	└────┴────┴────┴────┴────┴────┘      else: left alone, because a huge page would add memory
//
// A processor remembers the addresses of some 2,000 pages and must look up all others. The orders
// of a large exchange lie on hundreds of thousands of small pages: with 10,000,000 orders, half of
// the time of an operation was spent on these look-ups.
//
// Contract:
//
//   - Only the speed of memory changes. If the kernel refuses, because memory is short or huge
//     pages are switched off, everything stays as it was.
//   - An area is gathered only if the process already uses nine tenths of it: so memory grows by at
//     most one tenth.
//   - A goroutine that needs an area during its copy waits about a millisecond. So Gather runs
//     before the node serves anybody, and Keep rests after each copy for as long as the copy took.
//   - A pass ends after a few refusals for want of pages.
//   - The kernel's own gathering (khugepaged) is not used: it would also fill memory that the Go
//     runtime has returned.
package pages
