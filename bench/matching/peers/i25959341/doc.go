// Command i25959341 replays mixes against the order book of github.com/i25959341/orderbook, as a
// peer of "clobench matching". The folder above is a module of its own: neither the build nor
// the tests of the repository around it need it.
//
//	clobench ──FILE──► ../mix   the file, the clocks, a turn for each line of standard input
//	         ◄──JSON── main.go  the operations in the peer's own words
//
// Build it where the peer can be had, and name the program to clobench:
//
//	cd bench/matching/peers
//	go get github.com/i25959341/orderbook@796cb53511f6
//	go build -o /tmp/i25959341 ./i25959341
//	bin/clobench matching --peer i25959341=/tmp/i25959341
//
// go.mod names no version of the peer: the date that belongs into it is not known here, and
// "go get" writes it. Later commits have a go.mod of another name ("orderbook"), with which
// "go get" refuses them.
//
// Contract: what is doubtful is decided in the peer's favour. Its decimals and the texts of its
// ids are made ahead of the clock, its memory lies in huge pages, and no garbage is collected under
// the clock. With -own ahead of the file's name it has the pages and the collections that Go gives
// it by itself: a two-line script can be such a peer.
package main
