package catalog

import (
	"iter"

	"clobd/api/wire/scan"
)

// recordKey is a field that is read from the member of a record.
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
	fieldQuestionID
	fieldGame
	fieldSport
	fieldResolution
	fieldMaker
	fieldCYOM
	fieldRewards
	fieldClosedTime
	fieldCompetitive
	fieldFeaturedOrder
	fieldLive
	fieldEventDate
	fieldCount
)

// keyUse is what the catalog does with a member: read a field of it, and in records of some kinds
// (a bit each) keep it elsewhere than in the core, or not at all.
type keyUse struct {
	field               recordKey
	live, rest, dropped uint8
}

const (
	inMarket = 1 << aMarket
	inEvent  = 1 << anEvent
	inSeries = 1 << aSeries
	inGroup  = inEvent | inSeries
	inBook   = 1 << aBook
)

// memberUses are the uses of all members that are not just kept in the core.
var memberUses = map[string]keyUse{
	"id":                    {field: fieldID},
	"slug":                  {field: fieldSlug},
	"title":                 {field: fieldTitle},
	"ticker":                {field: fieldTicker},
	"label":                 {field: fieldLabel},
	"question":              {field: fieldQuestion},
	"icon":                  {field: fieldIcon},
	"conditionId":           {field: fieldCondition},
	"condition_id":          {field: fieldBookCondition},
	"market_slug":           {field: fieldBookSlug},
	"outcomes":              {field: fieldOutcomes},
	"clobTokenIds":          {field: fieldTokens},
	"tokens":                {field: fieldBookTokens, live: inBook},
	"events":                {field: fieldEvents, dropped: inMarket | inSeries},
	"markets":               {field: fieldMarkets, dropped: inEvent},
	"tags":                  {field: fieldTags},
	"series":                {field: fieldSeries, rest: inEvent},
	"seriesType":            {field: fieldSeriesType},
	"recurrence":            {field: fieldRecurrence},
	"creator":               {field: fieldCreator},
	"submitted_by":          {field: fieldSubmitter},
	"data":                  {field: fieldData},
	"active":                {field: fieldActive},
	"closed":                {field: fieldClosed, live: inMarket | inGroup | inBook},
	"archived":              {field: fieldArchived},
	"featured":              {field: fieldFeatured},
	"enableOrderBook":       {field: fieldOrderBook},
	"enable_order_book":     {field: fieldOrderBook},
	"acceptingOrders":       {field: fieldAccepting, live: inMarket},
	"accepting_orders":      {field: fieldAccepting, live: inBook},
	"negRisk":               {field: fieldNegRisk},
	"neg_risk":              {field: fieldNegRisk},
	"negRiskMarketID":       {field: fieldNegRiskMarket},
	"neg_risk_market_id":    {field: fieldNegRiskMarket},
	"orderPriceMinTickSize": {field: fieldTick, live: inMarket},
	"minimum_tick_size":     {field: fieldTick, live: inBook},
	"orderMinSize":          {field: fieldMinimum, live: inMarket},
	"minimum_order_size":    {field: fieldMinimum, live: inBook},
	"startDate":             {field: fieldStart},
	"endDate":               {field: fieldEnd},
	"end_date_iso":          {field: fieldEnd},
	"createdAt":             {field: fieldCreated},
	"updatedAt":             {field: fieldUpdated},
	"volume":                {field: fieldVolume, live: inMarket | inGroup},
	"volumeNum":             {field: fieldVolumeNumber, live: inMarket},
	"liquidity":             {field: fieldLiquidity, live: inMarket | inGroup},
	"liquidityNum":          {field: fieldLiquidityNumber, live: inMarket},
	"volume24hr":            {field: fieldVolumeDay, live: inMarket | inGroup},
	"volume1wk":             {field: fieldVolumeWeek, live: inMarket | inGroup},
	"volume1mo":             {field: fieldVolumeMonth, live: inMarket | inGroup},
	"volume1yr":             {field: fieldVolumeYear, live: inMarket | inGroup},
	"outcomePrices":         {live: inMarket},
	"volumeClob":            {live: inMarket},
	"volume24hrClob":        {live: inMarket},
	"volume1wkClob":         {live: inMarket},
	"volume1moClob":         {live: inMarket},
	"volume1yrClob":         {live: inMarket},
	"liquidityClob":         {live: inMarket | inGroup},
	"lastTradePrice":        {live: inMarket},
	"bestBid":               {live: inMarket},
	"bestAsk":               {live: inMarket},
	"spread":                {live: inMarket},
	"oneHourPriceChange":    {live: inMarket},
	"oneDayPriceChange":     {live: inMarket},
	"oneWeekPriceChange":    {live: inMarket},
	"oneMonthPriceChange":   {live: inMarket},
	"oneYearPriceChange":    {live: inMarket},
	"volumeAmm":             {live: inMarket},
	"volume24hrAmm":         {live: inMarket},
	"volume1wkAmm":          {live: inMarket},
	"volume1moAmm":          {live: inMarket},
	"volume1yrAmm":          {live: inMarket},
	"liquidityAmm":          {live: inMarket | inGroup},
	"openInterest":          {live: inGroup},
	"taker_base_fee":        {live: inBook},
	"is_50_50_outcome":      {live: inBook},
	"questionID":            {field: fieldQuestionID},
	"question_id":           {field: fieldQuestionID},
	"gameId":                {field: fieldGame},
	"sportsMarketType":      {field: fieldSport},
	"umaResolutionStatus":   {field: fieldResolution},
	"marketMakerAddress":    {field: fieldMaker},
	"cyom":                  {field: fieldCYOM},
	"rewardsMinSize":        {field: fieldRewards},
	"closedTime":            {field: fieldClosedTime},
	"competitive":           {field: fieldCompetitive},
	"featuredOrder":         {field: fieldFeaturedOrder},
	"live":                  {field: fieldLive},
	"eventDate":             {field: fieldEventDate},
	"eventMetadata":         {rest: inEvent},
	"creationDate":          {rest: inEvent},
}

// part says where a member of a record is kept.
type part uint8

const (
	dropped part = iota // written from other rows
	core
	rest
	live
)

// partOf returns where a member of a record of a kind is kept.
func (u keyUse) partOf(k recordKind) part {
	switch in := uint8(1) << k; {
	case u.dropped&in != 0:
		return dropped
	case u.rest&in != 0:
		return rest
	case u.live&in != 0:
		return live
	}
	return core
}

// Members walks through a part of a Record: keys without quotes, and values, both as written.
func Members(part []byte) iter.Seq2[[]byte, []byte] { return scan.Each(part) }

// MembersOf walks through the members of an object inside a record, as written.
func MembersOf(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		members, _ := scan.Object(object, nil)
		for i := range members {
			if !yield(members[i].Key, members[i].Value) {
				return
			}
		}
	}
}
