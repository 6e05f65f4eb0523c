package engine

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Reject is why a Command was refused. The numbers are part of the journal's format.
type Reject uint16

// The reasons, some with the values that Args hold.
const (
	Accepted           Reject = iota
	RejectDuplicate           // First: the Sequence that bound the id
	RejectRecheck             // First: the floor that the index must reach before ingress looks again
	RejectMarket              // unknown market number
	RejectUnopened            // the market accepts no orders yet
	RejectTick                // price in 1/10,000, tick in 1/10,000
	RejectMinSize             // size and minimum in base units
	RejectBalance             // balance, sum of active orders, order amount: base units of the asset
	RejectWalletOrders        // limit of open orders per wallet
	RejectMarketOrders        // limit of open orders per market
	RejectAmount              // an amount outside its range, or too little for a lot
	RejectNotFound            // no live order with that id for that owner
	RejectListing             // contradicts the condition as listed, or a token listed elsewhere
	RejectLink                // the wallet is linked to another owner
	RejectWallet              // unknown wallet number
	RejectType                // order type, or Command, not offered
	RejectPaused              // the market is paused
	RejectClosed              // the market is closed or resolved
	RejectCancelOnly          // the exchange, or the market, accepts only cancels
	RejectPostOnlyMode        // the exchange, or the market, accepts only post-only orders
	RejectBanned              // the wallet may only cancel: its address in 20 bytes of Args
	RejectCrosses             // a post-only order would trade at once
	RejectFOK                 // cannot be filled whole
	RejectFAK                 // nothing to match with
	RejectExpiry              // not in the future, or not a GTD
	RejectStale               // came after its deadline: deadline and now, in unix milliseconds
	RejectFee                 // signed fee rate and the market's, in basis points
	RejectMinBuy              // collateral and minimum, in base units
	RejectState               // the market's state does not allow it
	RejectPayout              // outside [0, 1], or the market was resolved with another one
	RejectNothing             // nothing to redeem
	RejectRules               // tick, minimums or fee out of range, or levels off the tick
	RejectKeys                // the owner has too many good keys, or armed ones: the limit
	RejectKeyRecords          // the owner has too many keys on record: the limit
	RejectKeyGone             // revoked, and not a trading key, which could be restored
	RejectPostWallet          // the wallet may only post: its address in 20 bytes of Args
	RejectReplaced            // the order to replace is not live, or of another wallet or owner
)

// Rule is one row of the reject table.
type Rule struct {
	Code string // stable word for machines
	Text string // Receipt.Text replaces {id} {a} {p0} {p1} {s0} {s1} {0} {1} {2}
	HTTP int    // status class of the answer
	// A Final reject binds the order's id; after any other one the order may be sent again.
	Final bool
}

// Rejects is the table of rules, by Reject.
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
	RejectPaused:       {"market_paused", "the market is not yet ready to process new orders", 400, false},
	RejectClosed:       {"market_closed", "market not yet accepting orders", 400, false},
	RejectCancelOnly:   {"cancel_only", "Trading is currently cancel-only. New orders are not accepted, but cancels are allowed.", 503, false},
	RejectPostOnlyMode: {"post_only_mode", "post-only mode: only post-only orders and cancels are allowed", 503, false},
	RejectBanned:       {"banned", "'{a}' address in closed only mode", 400, false},
	RejectCrosses:      {"post_only_cross", "invalid post-only order: order crosses book", 400, true},
	RejectFOK:          {"fok_unfilled", "order couldn't be fully filled. FOK orders are fully filled or killed.", 400, true},
	RejectFAK:          {"fak_unfilled", "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.", 400, true},
	RejectExpiry:       {"expiration", "invalid expiration", 400, false},
	RejectStale:        {"stale_order", "the order came at {1}, after its deadline {0}", 400, false},
	RejectFee:          {"fee_rate", "invalid fee rate ({0}), current market's taker fee: {1}", 400, false},
	RejectMinBuy:       {"min_notional", "invalid amount for a marketable BUY order (${s0}), min size: ${s1}", 400, false},
	RejectState:        {"market_state", "the market's state does not allow it", 400, false},
	RejectPayout:       {"payout", "invalid payout, or the market was resolved with another one", 400, false},
	RejectNothing:      {"nothing_to_redeem", "nothing to redeem", 400, false},
	RejectRules:        {"invalid_rules", "the market cannot have these rules", 400, false},
	RejectKeys:         {"too_many_keys", "too many API keys at once, max allowed: {0}; give one up first", 400, false},
	RejectKeyRecords:   {"too_many_keys", "too many API keys on record, deleted ones included, max allowed: {0}; keep to those that are good, or create a deleted trading key again", 400, false},
	RejectKeyGone:      {"key_deleted", "the API key was deleted for good; create another one", 400, false},
	RejectPostWallet:   {"post_only_wallet", "'{a}' address in post-only mode: only post-only orders and cancels are allowed", 400, false},
	RejectReplaced:     {"not_replaced", "order not found", 400, false},
}

// Text returns the reject's text with its values, "" if the Command was accepted.
func (r *Receipt) Text() string {
	if r.Reject == Accepted || int(r.Reject) >= len(Rejects) {
		return ""
	}
	return string(r.AppendText(nil))
}

// AppendText appends Text.
func (r *Receipt) AppendText(dst []byte) []byte {
	text, value, more := strings.Cut(Rejects[r.Reject].Text, "{")
	for dst = append(dst, text...); more; dst = append(dst, text...) {
		name, rest, _ := strings.Cut(value, "}")
		dst = r.appendValue(dst, name)
		text, value, more = strings.Cut(rest, "{")
	}
	return dst
}

func packAddress(a *Address) [3]int64 {
	be := binary.BigEndian
	return [3]int64{int64(be.Uint64(a[0:])), int64(be.Uint64(a[8:])), int64(be.Uint32(a[16:]))}
}

func unpackAddress(args *[3]int64) (a Address) {
	be := binary.BigEndian
	be.PutUint64(a[0:], uint64(args[0]))
	be.PutUint64(a[8:], uint64(args[1]))
	be.PutUint32(a[16:], uint32(args[2]))
	return a
}

// appendValue appends the value that a Rule's Text names in braces: id for the order's id, a for
// the address in Args, p0 for Args[0] as a price, s0 for Args[0] as a size, 0 for Args[0] itself.
func (r *Receipt) appendValue(dst []byte, name string) []byte {
	v := int64(0)
	if name != "id" && name != "a" {
		v = r.Args[name[len(name)-1]-'0']
	}
	switch name[0] {
	case 'i':
		return AppendHex(dst, r.Order[:])
	case 'a':
		a := unpackAddress(&r.Args)
		return AppendHex(dst, a[:])
	case 'p':
		return AppendDecimal(dst, v, 4)
	case 's':
		return AppendDecimal(dst, v, 6)
	}
	return strconv.AppendInt(dst, v, 10)
}
