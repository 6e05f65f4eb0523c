// Package pages keeps finished answers that many callers want, so that the node makes each of them
// once. Whoever asks for a page that is kept gets the same bytes as everybody else, without a copy.
//
//	request ── key: what the page shows ──► Cache ── as new as its Version? ──► the bytes
//	                                          │ no
//	                                          ▼
//	                        one request makes the page, others like it wait
//
// The contract:
//
//   - A page is never older than the request that it answers. Only the prices of a page of 32 KiB
//     and more may be: by at most a quarter of a second. States of markets never are.
//   - However many ask at once for one page, one of them makes it.
//   - HEAD and a fitting If-None-Match cost a look-up while the page is new enough.
//   - The kept bytes have a bound. A page is kept from the second time on that it is asked for, and
//     drives out only pages that are asked for less.
//   - Nobody changes the bytes of a page, so slow readers of one page share them.
//
// Reading order: version.go (what is new enough), cache.go (the story), asked.go (how often).
package pages
