package wire

import "clobd/engine"

// CancelReason says in a word why an order, or its remainder, was cancelled.
func CancelReason(why engine.Reason) string {
	switch why {
	case engine.ByOwner:
		return "user"
	case engine.SelfTrade:
		return "self_trade"
	case engine.Unfilled:
		return "unfilled"
	case engine.Expired:
		return "expired"
	case engine.Timeout:
		return "heartbeat"
	case engine.MarketClosed:
		return "market_closed"
	case engine.MarketResolved:
		return "market_resolved"
	case engine.ByOwnerAll:
		return "all"
	case engine.ByOwnerMarket:
		return "market"
	}
	return "operator"
}
