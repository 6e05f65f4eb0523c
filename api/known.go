package api

// The parameters that the routes of a family know. TestKnownParameters holds them against the
// OpenAPI document.
const (
	bookParameters = "after asset_id assetId asset_type assetType before builder_code builderCode " +
		"condition_id conditionId creator date end_ts endTs fidelity id ids interval maker " +
		"maker_address market next_cursor no_competition order_by order_id orderId page_size position " +
		"side sides signature_type signatureType sponsored start_ts startTs taker token_id token_ids " +
		"tokenId"
	catalogParameters = "active after_cursor archived ascending clob_token_ids closed condition_id " +
		"condition_ids conditionId conditionIds creator cursor cyom end_date_max end_date_min event_date " +
		"event_id event_ids event_slug eventSlug exclude_events exclude_tag_id exclude_tag_ids featured " +
		"game_id id ids include_tag limit limit_per_type liquidity_max liquidity_min liquidity_num_max " +
		"liquidity_num_min live market_maker_address next_cursor offset omit_empty order page q " +
		"question_ids recurrence related_tags rewards_min_size search_profiles search_tags series_id " +
		"series_ids series_slug seriesSlug shape slug sports_market_types start_date_max start_date_min " +
		"status tag tag_id tag_ids tag_match tag_slug uma_resolution_status volume_max volume_min " +
		"volume_num_max volume_num_min " +
		"abbreviation get_positions holders_only league market_id name parent_entity_id " +
		"parent_entity_type" // of lists that are empty here
)
