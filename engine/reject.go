package engine

// Reject is the reason why a valid request was refused: a normal result, journaled. The numbers
// are part of the journal's format.
type Reject uint16

// The reasons. What Args hold is written beside those that use them.
const (
	Accepted           Reject = iota
	RejectDuplicate           // First: the Sequence that bound the id
	RejectRecheck             // First: the Floor that the index must reach before the door looks again
	RejectMarket              // unknown market number
	RejectUnopened            // the market takes no orders yet
	RejectTick                // price in 1/10,000, tick in 1/10,000
	RejectMinSize             // size and minimum in base units
	RejectBalance             // balance, sum of active orders, order amount: base units of the asset
	RejectWalletOrders        // limit of open orders per wallet
	RejectMarketOrders        // limit of open orders per market
	RejectAmount              // an amount outside [1, MaxAmount], or a supply beyond MaxSupply
	RejectNotFound            // no live order with that id for that owner
	RejectListing             // contradicts the condition as listed, or a token listed elsewhere
	RejectLink                // the wallet is linked to another owner
	RejectWallet              // unknown wallet number
	RejectType                // order type not offered
)

// Rule is one row of the reject table.
type Rule struct {
	Code string // stable word for machines
	Text string // the peers' text; {id} {p0} {p1} {s0} {s1} {0} {1} {2} are replaced by Render
	HTTP int    // status class of the answer
	// Final rejects bind the order's id for ever; all others are judged anew when sent again.
	Final bool
}

// Rejects is the one table of reasons, by Reject.
var Rejects = [...]Rule{
	Accepted:           {"", "", 200, false},
	RejectDuplicate:    {"duplicate", "the order was placed before", 200, false},
	RejectRecheck:      {"recheck", "service not ready", 503, false},
	RejectMarket:       {"not_found", "No orderbook exists for the requested token id", 404, false},
	RejectUnopened:     {"market_closed", "market not yet accepting orders", 400, false},
	RejectTick:         {"tick_size", "order {id} is invalid. Price ({p0}) breaks minimum tick size rule: {p1}", 400, false},
	RejectMinSize:      {"min_size", "order {id} is invalid. Size ({s0}) lower than the minimum: {s1}", 400, false},
	RejectBalance:      {"balance", "not enough balance / allowance: the balance is not enough -> balance: {0}, sum of active orders: {1}, sum of matched orders: 0, order amount (inc. fees): {2}", 400, false},
	RejectWalletOrders: {"too_many_orders", "too many open orders for this wallet, max allowed: {0}", 400, false},
	RejectMarketOrders: {"too_many_orders", "too many open orders in this market, max allowed: {0}", 400, false},
	RejectAmount:       {"bad_payload", "invalid amount: outside the range this exchange can hold", 400, false},
	RejectNotFound:     {"not_found", "order not found", 404, false},
	RejectListing:      {"listing_conflict", "the condition is listed with other tokens or rules", 400, false},
	RejectLink:         {"link_conflict", "the wallet is linked to another owner", 400, false},
	RejectWallet:       {"not_found", "unknown wallet", 404, false},
	RejectType:         {"order_type", "order type is not offered", 400, false},
}
