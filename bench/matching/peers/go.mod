module clobd/bench/matching/peers

go 1.26

require (
	github.com/geseq/udecimal v0.0.0-20211126195629-659dde5a92d8
	github.com/shopspring/decimal v1.4.0
)

require github.com/emirpasic/gods v1.18.1 // indirect
