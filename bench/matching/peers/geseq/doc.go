// Command geseq replays mixes against the order book of github.com/geseq/orderbook, as a peer of
// "clobench matching". The folder above is a module of its own: neither the build nor
// the tests of the repository around it need it.
//
//	clobench ──FILE──► ../mix   the file, the clocks, a turn for each line of standard input
//	         ◄──JSON── main.go  the operations in the peer's own words
//
// Build it where the peer can be had, and name the program to clobench:
//
//	cd bench/matching/peers
//	go get github.com/geseq/orderbook@88e80980c691
//	go build -o /tmp/geseq ./geseq
//	bin/clobench matching --peer geseq=/tmp/geseq
//
// go.mod names no version of the peer: the date that belongs into it is not known here, and
// "go get" writes it. An older commit than 8bf1381 fills beyond a taker's limit, and the
// comparison ends with an error.
//
// Contract: what is doubtful is decided in the peer's favour. Its decimals are made ahead of the
// clock, its notifications cost an addition, its pool and its index have the sizes with which it
// was fastest, its memory lies in huge pages, and no garbage is collected under the clock. With
// -own ahead of the file's name it has the sizes and pages it takes by itself, for one book: a
// two-line script can be such a peer.
package main
