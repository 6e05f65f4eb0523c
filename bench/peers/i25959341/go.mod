module clobd/bench/peers/i25959341

go 1.26

require (
	github.com/emirpasic/gods v1.18.1 // indirect
	github.com/shopspring/decimal v1.4.0
)
