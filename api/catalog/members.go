package catalog

import (
	"iter"

	"clobd/api/wire/scan"
)

// recordKey is a member of a record that matters here.
type recordKey uint8

const (
	noField recordKey = iota
	fieldID
	fieldSlug
	fieldTitle
	fieldTicker
	fieldLabel
	fieldQuestion
	fieldIcon
	fieldCondition
	fieldBookCondition
	fieldBookSlug
	fieldOutcomes
	fieldTokens
	fieldBookTokens
	fieldActive
	fieldClosed
	fieldArchived
	fieldFeatured
	fieldOrderBook
	fieldAccepting
	fieldNegRisk
	fieldNegRiskMarket
	fieldTick
	fieldMinimum
	fieldStart
	fieldEnd
	fieldCreated
	fieldUpdated
	fieldVolume
	fieldVolumeNumber
	fieldLiquidity
	fieldLiquidityNumber
	fieldVolumeDay
	fieldVolumeWeek
	fieldVolumeMonth
	fieldVolumeYear
	fieldEvents
	fieldMarkets
	fieldTags
	fieldSeries
	fieldSeriesType
	fieldRecurrence
	fieldCreator
	fieldSubmitter
	fieldData
	fieldCount
)

// fieldOf is the field of a key.
func fieldOf(key []byte) recordKey {
	switch string(key) {
	case "id":
		return fieldID
	case "slug":
		return fieldSlug
	case "title":
		return fieldTitle
	case "ticker":
		return fieldTicker
	case "label":
		return fieldLabel
	case "question":
		return fieldQuestion
	case "icon":
		return fieldIcon
	case "conditionId":
		return fieldCondition
	case "condition_id":
		return fieldBookCondition
	case "market_slug":
		return fieldBookSlug
	case "outcomes":
		return fieldOutcomes
	case "clobTokenIds":
		return fieldTokens
	case "tokens":
		return fieldBookTokens
	case "events":
		return fieldEvents
	case "markets":
		return fieldMarkets
	case "tags":
		return fieldTags
	case "series":
		return fieldSeries
	case "seriesType":
		return fieldSeriesType
	case "recurrence":
		return fieldRecurrence
	case "creator":
		return fieldCreator
	case "submitted_by":
		return fieldSubmitter
	case "data":
		return fieldData
	}
	return stateOf(key)
}

// stateOf is the field of a key that is about a market's state and rules.
func stateOf(key []byte) recordKey {
	switch string(key) {
	case "active":
		return fieldActive
	case "closed":
		return fieldClosed
	case "archived":
		return fieldArchived
	case "featured":
		return fieldFeatured
	case "enableOrderBook", "enable_order_book":
		return fieldOrderBook
	case "acceptingOrders", "accepting_orders":
		return fieldAccepting
	case "negRisk", "neg_risk":
		return fieldNegRisk
	case "negRiskMarketID", "neg_risk_market_id":
		return fieldNegRiskMarket
	case "orderPriceMinTickSize", "minimum_tick_size":
		return fieldTick
	case "orderMinSize", "minimum_order_size":
		return fieldMinimum
	case "startDate":
		return fieldStart
	case "endDate", "end_date_iso":
		return fieldEnd
	case "createdAt":
		return fieldCreated
	case "updatedAt":
		return fieldUpdated
	case "volume":
		return fieldVolume
	case "volumeNum":
		return fieldVolumeNumber
	case "liquidity":
		return fieldLiquidity
	case "liquidityNum":
		return fieldLiquidityNumber
	case "volume24hr":
		return fieldVolumeDay
	case "volume1wk":
		return fieldVolumeWeek
	case "volume1mo":
		return fieldVolumeMonth
	case "volume1yr":
		return fieldVolumeYear
	}
	return noField
}

// part says where a member of a record is kept.
type part uint8

const (
	dropped part = iota // written from other rows
	core
	rest
	live
)

// partOf is where a member of a record of a kind is kept.
func partOf(k recordKind, key []byte) part {
	switch k {
	case aMarket:
		if string(key) == "events" {
			return dropped
		}
		if liveInMarket(key) {
			return live
		}
	case anEvent:
		switch string(key) {
		case "markets":
			return dropped
		case "series", "eventMetadata", "creationDate":
			return rest
		}
		if liveInGroup(key) {
			return live
		}
	case aSeries:
		if string(key) == "events" {
			return dropped
		}
		if liveInGroup(key) {
			return live
		}
	case aBook:
		switch string(key) {
		case "closed", "accepting_orders", "tokens", "minimum_tick_size", "minimum_order_size",
			"taker_base_fee", "is_50_50_outcome":
			return live
		}
	}
	return core
}

func liveInMarket(key []byte) bool {
	switch string(key) {
	case "outcomePrices", "closed", "acceptingOrders", "volume", "volumeNum", "volume24hr",
		"volume1wk", "volume1mo", "volume1yr", "volumeClob", "volume24hrClob", "volume1wkClob",
		"volume1moClob", "volume1yrClob", "liquidity", "liquidityNum", "liquidityClob",
		"lastTradePrice", "bestBid", "bestAsk", "spread", "oneHourPriceChange",
		"oneDayPriceChange", "oneWeekPriceChange", "oneMonthPriceChange", "oneYearPriceChange",
		"orderPriceMinTickSize", "orderMinSize", "volumeAmm", "volume24hrAmm", "volume1wkAmm",
		"volume1moAmm", "volume1yrAmm", "liquidityAmm":
		return true
	}
	return false
}

func liveInGroup(key []byte) bool {
	switch string(key) {
	case "closed", "volume", "volume24hr", "volume1wk", "volume1mo", "volume1yr", "liquidity",
		"liquidityClob", "liquidityAmm", "openInterest":
		return true
	}
	return false
}

// Members walks through a part of a Record: keys without their quotes and values, both as written.
func Members(part []byte) iter.Seq2[[]byte, []byte] { return scan.Each(part) }
