// The steps that both order-book clients take. A kit says what differs between them: how a client
// is made and an order posted, and what its types promise beyond the shapes below.
import { deepStrictEqual, notStrictEqual, ok, rejects, strictEqual } from "node:assert";
import {
  address, aside, covered, decimal, digits, either, fund, hex32, like, methods, need, pick, record,
  recent, refused, settle, skip, sleep, step, until, uuid, watched,
} from "./house.mjs";

export const chain = 80002;
const end = "LTE=";
const unknownOrder = `0x${"00".repeat(32)}`;

// What the types of both clients promise. Texts that hold numbers are decimals without exponent.
const bookKeys = [
  "market", "asset_id", "timestamp", "hash", "bids", "asks",
  "min_order_size", "tick_size", "neg_risk", "last_trade_price",
];
const level = { price: decimal, size: decimal };
const book = {
  market: hex32, asset_id: digits, timestamp: digits, bids: [level], asks: [level],
  min_order_size: decimal, tick_size: decimal, neg_risk: Boolean, hash: /^[0-9a-f]{40}$/,
  last_trade_price: either("", decimal),
};
const creds = { key: uuid, secret: /^[A-Za-z0-9_-]{43}=$/, passphrase: /^[0-9a-f]{64}$/ };
const side = /^(BUY|SELL)$/;
const orderStates = /^(LIVE|MATCHED|CANCELED|CANCELED_MARKET_RESOLVED|DELAYED|INVALID)$/;
const openOrder = {
  id: hex32, status: orderStates, owner: uuid, maker_address: address, market: hex32,
  asset_id: digits, side, original_size: decimal, size_matched: decimal, price: decimal,
  associate_trades: [uuid], outcome: String, created_at: Number, expiration: digits,
  order_type: /^(GTC|GTD|FOK|FAK)$/,
};
const makerOrder = {
  order_id: hex32, owner: uuid, maker_address: address, matched_amount: decimal, price: decimal,
  fee_rate_bps: decimal, asset_id: digits, outcome: String, side,
};
const trade = {
  id: uuid, taker_order_id: hex32, market: hex32, asset_id: digits, side, size: decimal,
  fee_rate_bps: decimal, price: decimal, status: "CONFIRMED", match_time: digits,
  last_update: digits, outcome: String, bucket_index: Number, owner: uuid, maker_address: address,
  maker_orders: [makerOrder], transaction_hash: hex32, trader_side: /^(TAKER|MAKER)$/,
};
const page = { limit: Number, count: Number, next_cursor: String, data: [{}] };
const tradePage = { limit: Number, count: Number, next_cursor: String, trades: [trade] };
const amount = either("", decimal);
const orderResponse = {
  success: true, errorMsg: "", orderID: hex32, status: /^(live|matched)$/, takingAmount: amount,
  makingAmount: amount, "transactionsHashes?": [hex32], "tradeIDs?": [uuid],
};
const cancelResponse = { canceled: [hex32], not_canceled: record(hex32, String) };
const marketToken = { token_id: digits, outcome: String, price: Number, winner: Boolean };
const rewards = { rates: [{}], min_size: Number, max_spread: Number };
const simpleMarket = {
  condition_id: hex32, tokens: [marketToken], rewards, active: Boolean, closed: Boolean,
  archived: Boolean, accepting_orders: Boolean,
};
const fullMarket = {
  ...simpleMarket, enable_order_book: Boolean, minimum_order_size: Number,
  minimum_tick_size: Number, question_id: String, question: String, description: String,
  market_slug: String, end_date_iso: either(null, String), game_start_time: either(null, String),
  accepting_order_timestamp: either(null, String), seconds_delay: Number, fpmm: String,
  maker_base_fee: Number, taker_base_fee: Number, notifications_enabled: Boolean,
  neg_risk: Boolean, neg_risk_market_id: String, neg_risk_request_id: String, icon: String,
  image: String, is_50_50_outcome: Boolean, tags: either(null, [String]),
};
const tradeEvent = {
  event_type: String,
  market: { condition_id: hex32, asset_id: digits, question: String, icon: String, slug: String },
  user: {
    address, username: String, profile_picture: String, optimized_profile_picture: String,
    pseudonym: String,
  },
  side, size: decimal, fee_rate_bps: decimal, price: decimal, outcome: String,
  outcome_index: Number, transaction_hash: hex32, timestamp: digits,
};

// trading runs every step with the client of a kit, and ends the run.
export async function trading(kit) {
  const called = new Set();
  const { Side, OrderType, AssetType } = kit;
  const open = (options = {}) => watched(kit.open(options), called);
  const reader = open();
  const market = await pick(false);
  ok(market, "no plain market with an empty book in the catalog");
  const quiet = await pick(false); // for what runs aside
  const [token, other] = market.tokens;
  const t = { kit, called, open, reader, market, token, other, quiet, Side, OrderType, AssetType };

  await step("service", () => service(t));
  await step("lists of markets", () => marketLists(t));
  await step("one market", () => oneMarket(t));
  await step("an empty book", () => emptyBook(t));
  await need("keys", () => keys(t));
  await step("money", () => money(t));
  await step("a stranger is refused", () => strangerIsRefused(t));
  await step("forgeries are refused", () => forgeriesAreRefused(t));
  aside("heartbeats", () => heartbeats(t));
  aside("an order expires", () => expires(t));
  await need("an order rests", () => rests(t));
  await step("one sent twice", () => sentTwice(t));
  await need("another crosses it", () => crosses(t));
  await step("trades of both sides", () => trades(t));
  await step("balances", () => balances(t));
  await step("quotes", () => quotes(t));
  await step("post-only", () => postOnly(t));
  await step("cancel", () => cancels(t));
  await step("fill or kill", () => fillOrKill(t));
  await step("fill and kill", () => fillAndKill(t));
  await step("mint", () => mints(t));
  await step("a batch", () => batch(t));
  await step("cancel many", () => cancelMany(t));
  await step("live activity", () => activity(t));
  await step("price history", () => history(t));
  await step("nothing to reward", () => nothing(t));
  await step("read-only keys", () => readonlyKeys(t));
  await step("builder keys", () => kit.builder(t));
  await step("what else it has", () => kit.more(t));
  await negRisk(t);
  await step("keys come and go", () => revoked(t));
  await step("every method was called", () => covered(methods(kit.open()), called, kit.left));
  await settle();
}

async function service({ reader }) {
  strictEqual(await reader.getOk(), "OK");
  const time = await reader.getServerTime();
  ok(Number.isInteger(time), `server time ${JSON.stringify(time)} is not a number of seconds`);
  recent(time, "server time");
}

// find looks through the pages of a list for the market.
async function find(list, shape, condition) {
  let cursor, pages = 0;
  do {
    const answer = like(await list(cursor), { ...page, data: [shape] });
    strictEqual(answer.count, answer.data.length);
    const found = answer.data.find((m) => m.condition_id === condition);
    if (found) return found;
    cursor = answer.next_cursor;
    ok(++pages < 200, "the list does not end");
  } while (cursor !== end);
  throw new Error(`${condition} is not in the list`);
}

async function marketLists({ reader, market }) {
  const simple = [
    (c) => reader.getSimplifiedMarkets(c), (c) => reader.getSamplingSimplifiedMarkets(c),
  ];
  for (const list of simple) await find(list, simpleMarket, market.condition);
  const full = await find((c) => reader.getMarkets(c), fullMarket, market.condition);
  deepStrictEqual(full.tokens.map((x) => x.token_id), market.tokens);
  deepStrictEqual(full.tokens.map((x) => x.outcome), market.outcomes);
  await find((c) => reader.getSamplingMarkets(c), fullMarket, market.condition);
  deepStrictEqual((await reader.getMarkets(end)).data, [], "a page behind the end");
}

async function oneMarket({ reader, market, token }) {
  const one = like(await reader.getMarket(market.condition), fullMarket);
  strictEqual(one.condition_id, market.condition);
  strictEqual(one.question, market.question);
  strictEqual(one.accepting_orders, true);
  strictEqual(await reader.getTickSize(token), "0.01");
  strictEqual(one.minimum_tick_size, 0.01);
  strictEqual(await reader.getNegRisk(token), market.negRisk);
  const rate = await reader.getFeeRateBps(token);
  ok(Number.isInteger(rate) && rate >= 0, `fee rate ${JSON.stringify(rate)}`);
  like(await reader.getMarket(unknownOrder), { error: String, status: 404 });
}

// bookOf reads the book and checks what holds for every one: its keys, and its hash, which the
// client computes from what it received.
async function bookOf({ reader }, token) {
  const answer = like(await reader.getOrderBook(token), book);
  deepStrictEqual(Object.keys(answer), bookKeys);
  strictEqual(answer.asset_id, token);
  const served = answer.hash;
  strictEqual(await reader.getOrderBookHash({ ...answer }), served, "the book's hash differs");
  return answer;
}

async function emptyBook(t) {
  const { reader, market, token, other, Side } = t;
  const answer = await bookOf(t, token);
  strictEqual(answer.market, market.condition);
  deepStrictEqual([answer.bids, answer.asks], [[], []]);
  const asked = [{ token_id: token, side: Side.BUY }, { token_id: other, side: Side.SELL }];
  const both = like(await reader.getOrderBooks(asked), [book]);
  deepStrictEqual(both.map((b) => b.asset_id), [token, other]);
  refused(await reader.getOrderBook("12345"), 404, "No orderbook exists");
  refused(await reader.getOrderBook("x"), 400, "Invalid token id");
  refused(await reader.getMidpoint(token), 404, "No orderbook exists");
  refused(await reader.getSpread(token), 404, "No orderbook exists");
  refused(await reader.getLastTradePrice(token), 404, "no last trade price");
  deepStrictEqual(await reader.getPrice(token, Side.BUY), { price: "0" });
  deepStrictEqual(await reader.getMidpoints(asked), {});
  deepStrictEqual(await reader.getSpreads(asked), {});
  deepStrictEqual(await reader.getLastTradesPrices(asked), []);
}

async function keys(t) {
  const trader = async (options) => {
    const signer = t.kit.Wallet.createRandom();
    const first = t.open({ signer });
    const trio = like(await first.createOrDeriveApiKey(), creds);
    deepStrictEqual(await first.deriveApiKey(), trio, "deriving again gives another trio");
    deepStrictEqual(await first.createApiKey(), trio, "creating again gives another trio");
    notStrictEqual((await first.deriveApiKey(1)).key, trio.key, "another nonce, the same key");
    return { client: t.open({ ...options, signer, creds: trio }), signer, creds: trio };
  };
  t.maker = await trader();
  t.taker = await trader({ useServerTime: true });
  t.idle = await trader();
}

async function money(t) {
  const { maker, taker, idle, token, AssetType } = t;
  const collateral = { asset_type: AssetType.COLLATERAL };
  const shares = { asset_type: AssetType.CONDITIONAL, token_id: token };
  const before = like(await maker.client.getBalanceAllowance(collateral), t.kit.balance);
  strictEqual(before.balance, "0");
  await fund(maker.signer.address, "1000");
  await fund(taker.signer.address, "1000");
  await fund(taker.signer.address, "100", token);
  await fund(idle.signer.address, "500");
  await maker.client.updateBalanceAllowance(collateral);
  const after = like(await maker.client.getBalanceAllowance(collateral), t.kit.balance);
  strictEqual(after.balance, "1000000000");
  const held = like(await taker.client.getBalanceAllowance(shares), t.kit.balance);
  strictEqual(held.balance, "100000000");
}

async function strangerIsRefused(t) {
  const signer = t.kit.Wallet.createRandom();
  const trio = await t.open({ signer }).createOrDeriveApiKey();
  const client = t.open({ signer, creds: trio });
  const order = { tokenID: t.token, side: t.Side.BUY, price: 0.4, size: 20 };
  refused(await client.createAndPostOrder(order), 400, "not enough balance / allowance");
  deepStrictEqual(await client.getOpenOrders(), []);
  deepStrictEqual(await client.getTrades(), []);
}

async function forgeriesAreRefused({ kit, open, maker, token, Side }) {
  const { client, signer } = maker;
  const order = await client.createOrder({ tokenID: token, side: Side.BUY, price: 0.4, size: 20 });
  like(order, kit.signed);
  refused(await client.postOrder({ ...order, makerAmount: "7999999" }), 400, "invalid");
  const salted = { ...order, salt: String(Number(order.salt) + 1) };
  refused(await client.postOrder(salted), 400, "invalid signature");
  const wrong = { ...maker.creds, secret: Buffer.alloc(32, 7).toString("base64") };
  const thief = open({ signer, creds: wrong });
  refused(await thief.getOrder(unknownOrder), 401, "Unauthorized/Invalid api key");
  refused(await client.getOrder(unknownOrder), 404, "order not found");
  await rejects(client.createOrder({ tokenID: token, side: Side.BUY, price: 1, size: 20 }));
  const strict = open({ signer, creds: wrong, throwOnError: true });
  await rejects(strict.getOrder(unknownOrder), (err) => err.status === 401);
}

// place posts an order and insists that it was taken.
async function place(t, who, [buys, price, size], more = {}) {
  const order = {
    tokenID: more.token ?? t.token, side: buys ? t.Side.BUY : t.Side.SELL, price, size,
    ...more.order,
  };
  const type = more.type ?? t.OrderType.GTC;
  const result = await t.kit.place(who.client, order, type, more);
  like(result, orderResponse, `${order.side} ${size} @ ${price}`);
  ok(!("error" in result), "an accepted order has a key error");
  return result;
}

const levels = (...pairs) => pairs.map(([price, size]) => ({ price, size }));

async function rests(t) {
  const { maker, token, market } = t;
  const order = await place(t, maker, [true, 0.4, 20]);
  strictEqual(order.status, "live");
  deepStrictEqual([order.makingAmount, order.takingAmount], ["", ""]);
  deepStrictEqual([order.transactionsHashes, order.tradeIDs], [[], undefined]);
  const lower = await place(t, maker, [true, 0.38, 10]);
  const answer = await bookOf(t, token);
  deepStrictEqual(answer.bids, levels(["0.38", "10"], ["0.4", "20"]), "bids, best last");
  deepStrictEqual(answer.asks, []);
  const one = like(await maker.client.getOrder(order.orderID), openOrder);
  const expected = {
    id: order.orderID, status: "LIVE", original_size: "20", size_matched: "0", price: "0.4",
    side: "BUY", asset_id: token, market: market.condition, owner: maker.creds.key,
    maker_address: maker.signer.address, order_type: "GTC", expiration: "0",
    associate_trades: [], outcome: market.outcomes[0],
  };
  like(one, { ...expected, associate_trades: [() => "is not empty"] });
  recent(one.created_at, "created at");
  const list = like(await maker.client.getOpenOrders(), [openOrder]);
  deepStrictEqual(list.map((o) => o.id), [order.orderID, lower.orderID], "open orders");
  for (const [filter, want] of [
    [{ id: lower.orderID }, 1], [{ market: market.condition }, 2], [{ asset_id: token }, 2],
    [{ asset_id: t.other }, 0], [{ market: unknownOrder }, 0],
  ]) {
    const some = await maker.client.getOpenOrders(filter);
    strictEqual(some.length, want, `open orders of ${JSON.stringify(filter)}`);
  }
  strictEqual((await maker.client.getOpenOrders({}, true)).length, 2, "the first page");
  refused(await t.taker.client.getOrder(order.orderID), 404, "order not found");
  Object.assign(t, { order, lower });
}

async function sentTwice(t) {
  const { maker, kit, token, Side } = t;
  const order = { tokenID: token, side: Side.BUY, price: 0.1, size: 7 };
  const signed = await maker.client.createOrder(order);
  const one = like(await maker.client.postOrder(signed), orderResponse);
  const two = like(await maker.client.postOrder(signed), orderResponse);
  strictEqual(two.orderID, one.orderID);
  strictEqual(two.status, "live");
  const mine = await maker.client.getOpenOrders({ id: one.orderID });
  strictEqual(mine.length, 1);
  const gone = like(await maker.client.cancelOrder({ orderID: one.orderID }), cancelResponse);
  deepStrictEqual(gone.canceled, [one.orderID]);
  const three = await maker.client.postOrder(signed);
  strictEqual(three.orderID, one.orderID, `a canceled order again: ${JSON.stringify(three)}`);
  notStrictEqual(three.status, "live", "a canceled order came back");
  deepStrictEqual(await maker.client.getOpenOrders({ id: one.orderID }), []);
  like(signed, kit.signed);
}

async function crosses(t) {
  const { maker, taker, token, order } = t;
  const result = await place(t, taker, [false, 0.4, 8]);
  strictEqual(result.status, "matched");
  deepStrictEqual([result.makingAmount, result.takingAmount], ["8", "3.2"]);
  strictEqual(result.transactionsHashes?.length, 1, `settlement: ${JSON.stringify(result)}`);
  strictEqual(result.tradeIDs?.length, 1);
  const made = like(await maker.client.getOrder(order.orderID), openOrder);
  deepStrictEqual([made.size_matched, made.status], ["8", "LIVE"]);
  deepStrictEqual(made.associate_trades, result.tradeIDs);
  const taken = like(await taker.client.getOrder(result.orderID), openOrder);
  deepStrictEqual([taken.size_matched, taken.status], ["8", "MATCHED"]);
  deepStrictEqual(await taker.client.getOpenOrders(), []);
  const answer = await bookOf(t, token);
  deepStrictEqual(answer.bids, levels(["0.38", "10"], ["0.4", "12"]));
  strictEqual(answer.last_trade_price, "0.4");
  t.crossed = result;
}

async function trades(t) {
  const { maker, taker, market, token, order, crossed } = t;
  const [id] = crossed.tradeIDs;
  for (const [who, role] of [[taker, "TAKER"], [maker, "MAKER"]]) {
    const list = like(await who.client.getTrades(), [trade]);
    strictEqual(list.length, 1, `trades of the ${role}`);
    like(list[0], {
      id, taker_order_id: crossed.orderID, market: market.condition, asset_id: token,
      side: "SELL", size: "8", price: "0.4", owner: taker.creds.key, bucket_index: 0,
      maker_address: taker.signer.address, transaction_hash: crossed.transactionsHashes[0],
      trader_side: role, outcome: market.outcomes[0],
    });
    strictEqual(list[0].maker_orders.length, 1);
    like(list[0].maker_orders[0], {
      order_id: order.orderID, owner: maker.creds.key, maker_address: maker.signer.address,
      matched_amount: "8", price: "0.4", fee_rate_bps: "0", asset_id: token, side: "BUY",
    });
  }
  const [{ match_time: time }] = await taker.client.getTrades({ id });
  for (const [filter, want] of [
    [{ id }, 1], [{ id: id.replace(/^./, (c) => (c === "0" ? "1" : "0")) }, 0],
    [{ market: market.condition }, 1], [{ market: unknownOrder }, 0], [{ asset_id: token }, 1],
    [{ asset_id: t.other }, 0], [{ maker_address: taker.signer.address }, 1],
    [{ before: time }, 0], [{ after: time }, 0],
    [{ before: String(Number(time) + 1), after: String(Number(time) - 1) }, 1],
  ]) {
    const some = await taker.client.getTrades(filter);
    strictEqual(some.length, want, `trades of ${JSON.stringify(filter)}`);
  }
  const paged = like(await taker.client.getTradesPaginated({ id }), tradePage);
  deepStrictEqual([paged.count, paged.next_cursor, paged.trades.length], [1, end, 1]);
  deepStrictEqual(await t.idle.client.getTrades(), []);
}

const spent = async ({ client }, params) => (await client.getBalanceAllowance(params)).balance;

async function balances({ maker, taker, token, AssetType }) {
  const collateral = { asset_type: AssetType.COLLATERAL };
  const shares = { asset_type: AssetType.CONDITIONAL, token_id: token };
  strictEqual(await spent(maker, collateral), "996800000", "the maker paid 3.2");
  strictEqual(await spent(maker, shares), "8000000", "the maker got 8");
  strictEqual(await spent(taker, collateral), "1003200000", "the taker got 3.2");
  strictEqual(await spent(taker, shares), "92000000", "the taker gave 8");
}

async function quotes(t) {
  const { reader, taker, token, other, Side } = t;
  t.ask = await place(t, taker, [false, 0.5, 10]);
  deepStrictEqual((await bookOf(t, token)).asks, levels(["0.5", "10"]));
  deepStrictEqual(await reader.getMidpoint(token), { mid: "0.45" });
  deepStrictEqual(await reader.getPrice(token, Side.BUY), { price: "0.5" });
  deepStrictEqual(await reader.getPrice(token, Side.SELL), { price: "0.4" });
  deepStrictEqual(await reader.getSpread(token), { spread: "0.1" });
  deepStrictEqual(await reader.getLastTradePrice(token), { price: "0.4", side: "SELL" });
  const asked = [{ token_id: token, side: Side.BUY }, { token_id: other, side: Side.SELL }];
  deepStrictEqual(await reader.getMidpoints(asked), { [token]: "0.45", [other]: "0.55" });
  deepStrictEqual(await reader.getSpreads(asked), { [token]: "0.1", [other]: "0.1" });
  const prices = { [token]: { BUY: "0.5" }, [other]: { SELL: "0.5" } };
  deepStrictEqual(await reader.getPrices(asked), prices);
  const last = like(
    await reader.getLastTradesPrices(asked), [{ token_id: digits, price: decimal, side }]);
  deepStrictEqual(last[0], { token_id: token, price: "0.4", side: "SELL" });
  const mirror = await bookOf(t, other);
  deepStrictEqual(mirror.bids, levels(["0.5", "10"]), "the other outcome mirrors the book");
  deepStrictEqual(mirror.asks, levels(["0.62", "10"], ["0.6", "12"]));
  strictEqual(await reader.calculateMarketPrice(token, Side.BUY, 2), 0.5);
  strictEqual(await reader.calculateMarketPrice(token, Side.SELL, 15), 0.38);
  await rejects(reader.calculateMarketPrice(token, Side.BUY, 1000), /no match/);
}

async function postOnly(t) {
  const { maker, token, Side, OrderType } = t;
  const order = { tokenID: token, side: Side.BUY, price: 0.5, size: 10 };
  const result = await t.kit.place(maker.client, order, OrderType.GTC, { postOnly: true });
  refused(result, 400, "invalid post-only order: order crosses book");
  const quiet = await place(t, maker, [true, 0.3, 6], { postOnly: true });
  strictEqual(quiet.status, "live");
  const deferred = await place(t, maker, [true, 0.29, 6], { deferExec: true });
  strictEqual(deferred.status, "live");
  const ids = [quiet.orderID, deferred.orderID];
  const gone = like(await maker.client.cancelOrders(ids), cancelResponse);
  deepStrictEqual(gone, { canceled: ids, not_canceled: {} });
}

async function cancels(t) {
  const { maker, taker, token, order } = t;
  const { orderID } = order;
  const foreign = like(await taker.client.cancelOrder({ orderID }), cancelResponse);
  deepStrictEqual(foreign.canceled, [], "somebody else's order was canceled");
  deepStrictEqual(foreign.not_canceled, { [orderID]: "order not found" });
  const gone = await maker.client.cancelOrder({ orderID });
  deepStrictEqual(gone, { canceled: [orderID], not_canceled: {} });
  const left = await maker.client.getOrder(orderID);
  deepStrictEqual([left.status, left.size_matched], ["CANCELED", "8"]);
  deepStrictEqual((await bookOf(t, token)).bids, levels(["0.38", "10"]));
  const open = await maker.client.getOpenOrders();
  ok(!open.some((o) => o.id === orderID), "a canceled order is still open");
  const again = like(await maker.client.cancelOrder({ orderID }), cancelResponse);
  deepStrictEqual(again.canceled, []);
  ok(again.not_canceled[orderID]?.includes("already canceled or matched"),
    `the second cancel: ${JSON.stringify(again)}`);
  refused(await maker.client.cancelOrder({ orderID: "x" }), 400, "Invalid orderID");
}

// The book now: 10 bid at 0.38, 10 asked at 0.5.
async function fillOrKill(t) {
  const { maker, token, Side, OrderType } = t;
  const order = { tokenID: token, side: Side.BUY, amount: 20, price: 0.5 };
  const killed = await maker.client.createAndPostMarketOrder(order, {}, OrderType.FOK);
  refused(killed, 400, "order couldn't be fully filled");
  const market = { tokenID: token, side: Side.BUY, amount: 2, orderType: OrderType.FOK };
  const filled = like(
    await maker.client.createAndPostMarketOrder(market, {}, OrderType.FOK), orderResponse);
  strictEqual(filled.status, "matched");
  deepStrictEqual([filled.makingAmount, filled.takingAmount], ["2", "4"]);
  deepStrictEqual((await bookOf(t, token)).asks, levels(["0.5", "6"]));
}

async function fillAndKill(t) {
  const { maker, taker, kit, token, Side, OrderType } = t;
  const market = { tokenID: token, side: Side.BUY, amount: 100, orderType: OrderType.FAK };
  const signed = like(await maker.client.createMarketOrder(market), kit.signed);
  const part = like(await maker.client.postOrder(signed, OrderType.FAK), orderResponse);
  strictEqual(part.status, "matched");
  deepStrictEqual([part.makingAmount, part.takingAmount], ["3", "6"]);
  deepStrictEqual((await bookOf(t, token)).asks, []);
  const ended = await taker.client.getOrder(t.ask.orderID);
  deepStrictEqual([ended.status, ended.size_matched], ["MATCHED", "10"]);
  const order = { tokenID: token, side: Side.BUY, amount: 5, price: 0.5 };
  const none = await maker.client.createAndPostMarketOrder(order, {}, OrderType.FAK);
  refused(none, 400, "no orders found to match with FAK order");
}

// mints: a BUY of one outcome meets a BUY of the other; nobody needs tokens for it.
async function mints(t) {
  const { maker, taker, token, other, lower } = t;
  const result = await place(t, taker, [true, 0.62, 10], { token: other });
  strictEqual(result.status, "matched");
  deepStrictEqual([result.makingAmount, result.takingAmount], ["6.2", "10"]);
  strictEqual((await maker.client.getOrder(lower.orderID)).status, "MATCHED");
  deepStrictEqual((await bookOf(t, token)).bids, []);
  const [{ maker_orders: [made], ...taken }] = await taker.client.getTrades(
    { id: result.tradeIDs[0] });
  like(taken, { asset_id: other, side: "BUY", price: "0.62", size: "10" });
  like(made, { asset_id: token, side: "BUY", price: "0.38", matched_amount: "10" });
}

async function batch(t) {
  const { maker, kit, token, Side, OrderType } = t;
  const sign = (price, size) =>
    maker.client.createOrder({ tokenID: token, side: Side.BUY, price, size });
  const args = [
    { order: await sign(0.2, 10), orderType: OrderType.GTC },
    { order: await sign(0.21, 1_000_000), orderType: OrderType.GTC },
    { order: await sign(0.22, 10), orderType: OrderType.FOK },
    { order: await sign(0.23, 10), orderType: OrderType.GTC },
  ];
  const answers = await kit.postAll(maker.client, args);
  strictEqual(answers.length, args.length, JSON.stringify(answers));
  for (const i of [0, 3]) {
    like(answers[i], orderResponse, `order ${i}`);
    strictEqual(answers[i].status, "live");
  }
  const rejected = { success: false, status: "", takingAmount: "", makingAmount: "" };
  like(answers[1], { ...rejected, errorMsg: /^not enough balance/ });
  like(answers[2], { ...rejected, errorMsg: /FOK orders are fully filled or killed/ });
  ok(answers.every((a) => !("error" in a)), "a result of a batch has a key error");
  deepStrictEqual((await bookOf(t, token)).bids, levels(["0.2", "10"], ["0.23", "10"]));
  const many = Array(16).fill(args[0]);
  refused(await kit.postAll(maker.client, many), 400,
    "Too many orders in payload: 16, max allowed: 15");
  refused(await kit.postAll(maker.client, []), 400, "");
  t.rested = [answers[0].orderID, answers[3].orderID];
}

async function cancelMany(t) {
  const { maker, market, token, other, rested } = t;
  const { client } = maker;
  const some = like(await client.cancelOrders([rested[0], unknownOrder]), cancelResponse);
  deepStrictEqual(some.canceled, [rested[0]]);
  deepStrictEqual(some.not_canceled, { [unknownOrder]: "order not found" });
  const more = await place(t, maker, [true, 0.3, 5], { token: other });
  const byToken = like(await client.cancelMarketOrders({ asset_id: other }), cancelResponse);
  deepStrictEqual(byToken.canceled, [more.orderID]);
  const byMarket = like(
    await client.cancelMarketOrders({ market: market.condition }), cancelResponse);
  deepStrictEqual(byMarket.canceled, [rested[1]]);
  refused(await client.cancelMarketOrders({}), 400, "market or asset_id is required");
  const last = [await place(t, maker, [true, 0.2, 5]), await place(t, maker, [true, 0.21, 5])];
  const all = like(await client.cancelAll(), cancelResponse);
  deepStrictEqual(all.canceled.toSorted(), last.map((o) => o.orderID).toSorted());
  deepStrictEqual(await client.getOpenOrders(), []);
  deepStrictEqual((await bookOf(t, token)).bids, []);
  deepStrictEqual(await client.cancelAll(), { canceled: [], not_canceled: {} });
}

async function expires(t) {
  const { idle, Side, OrderType, kit } = t;
  const [token] = t.quiet.tokens;
  const until3 = Math.floor(Date.now() / 1000) + 3;
  const order = { tokenID: token, side: Side.BUY, price: 0.02, size: 5 };
  refused(await kit.place(idle.client, order, OrderType.GTD, {}), 400, "invalid expiration");
  const dated = { ...order, expiration: until3 };
  refused(await kit.place(idle.client, dated, OrderType.GTC, {}), 400, "invalid expiration");
  const late = { ...order, expiration: until3 - 10 };
  refused(await kit.place(idle.client, late, OrderType.GTD, {}), 400, "invalid expiration");
  const { placed, expiration } = await brief(t, order);
  await until("the order expires", async () => {
    const { status } = await idle.client.getOrder(placed.orderID);
    return status === "CANCELED";
  });
  ok(Date.now() / 1000 >= expiration, "it expired too early");
  deepStrictEqual(await idle.client.getOpenOrders({ id: placed.orderID }), []);
}

// brief places an order that ends soon and reads it while it rests. Where the machine is so slow
// that its time was over before, the next one gets more.
async function brief({ idle, OrderType, kit }, order) {
  for (let seconds = 3; ; seconds *= 2) {
    const expiration = Math.floor(Date.now() / 1000) + seconds;
    const placed = await kit.place(idle.client, { ...order, expiration }, OrderType.GTD, {});
    const [listed] = placed.orderID ? await idle.client.getOpenOrders({ id: placed.orderID }) : [];
    if (!listed && Date.now() / 1000 >= expiration) continue;
    like(placed, { ...orderResponse, status: "live" });
    like(listed, { order_type: "GTD", expiration: String(expiration), status: "LIVE" });
    return { placed, expiration };
  }
}

// heartbeats: once they were started, silence cancels the orders of that key and no others.
async function heartbeats(t) {
  const { idle, open } = t;
  const trio = await open({ signer: idle.signer }).createApiKey(7);
  const beating = { ...idle, client: open({ signer: idle.signer, creds: trio }), creds: trio };
  const [token] = t.quiet.tokens;
  const doomed = await place(t, beating, [true, 0.03, 5], { token });
  const spared = await place(t, idle, [true, 0.03, 5], { token });
  const one = like(await beating.client.postHeartbeat(), { heartbeat_id: String });
  const two = like(await beating.client.postHeartbeat(one.heartbeat_id), { heartbeat_id: String });
  const odd = await beating.client.postHeartbeat("nonsense");
  like(odd, { error: String, error_msg: "Invalid Heartbeat ID", heartbeat_id: two.heartbeat_id });
  strictEqual(odd.status, 400);
  const from = Date.now();
  await beating.client.postHeartbeat(two.heartbeat_id);
  await sleep(8000);
  const { status: after8 } = await idle.client.getOrder(doomed.orderID);
  ok(after8 === "LIVE" || Date.now() - from > 9500, `${after8}: canceled too early`);
  await until("silence cancels", async () => {
    const { status } = await idle.client.getOrder(doomed.orderID);
    return status === "CANCELED";
  });
  ok(Date.now() - from > 9500, "it was canceled before ten seconds had passed");
  strictEqual((await idle.client.getOrder(spared.orderID)).status, "LIVE", "another key's order");
  deepStrictEqual((await idle.client.cancelAll()).canceled, [spared.orderID]);
}

async function activity({ reader, market, taker, maker }) {
  const list = like(await reader.getMarketTradesEvents(market.condition), [tradeEvent]);
  ok(list.length >= 4, `${list.length} trades`);
  const known = [taker.signer.address, maker.signer.address];
  ok(list.every((e) => known.includes(e.user.address)), "a trade of somebody else");
  ok(list.every((e, i) => i === 0 || e.timestamp <= list[i - 1].timestamp), "newest first");
  like(list.at(-1), { side: "SELL", size: "8", price: "0.4", outcome_index: 0 });
}

async function history({ reader, token, other, kit }) {
  const shape = { history: [{ t: Number, p: Number }] };
  const { ONE_DAY, ONE_HOUR, MAX } = kit.PriceHistoryInterval;
  const now = Math.floor(Date.now() / 1000);
  for (const params of [
    { interval: ONE_DAY, fidelity: 1 }, { interval: ONE_HOUR }, { interval: MAX, fidelity: 60 },
    { startTs: now - 600, endTs: now + 60, fidelity: 1 },
  ]) {
    let one, two, asked;
    do { // both within one second: a series may end with the present one
      asked = Math.floor(Date.now() / 1000);
      one = like(await reader.getPricesHistory({ market: token, ...params }), shape).history;
      two = like(await reader.getPricesHistory({ market: other, ...params }), shape).history;
    } while (asked !== Math.floor(Date.now() / 1000));
    ok(one.every((x, i) => i === 0 || x.t > one[i - 1].t), "points in order of time");
    ok(one.every((x) => x.p > 0 && x.p < 1), JSON.stringify(one));
    strictEqual(one.length, two.length, "points of both outcomes");
    if (params.startTs) deepStrictEqual(one.map((x) => x.t), two.map((x) => x.t));
    ok(one.every((x, i) => Math.abs(x.p + two[i].p - 1) < 1e-9), "prices of both add up to 1");
  }
  const day = await reader.getPricesHistory({ market: token, interval: ONE_DAY, fidelity: 1 });
  ok(day.history.length > 0, "a market with quotes on both sides has no point");
  refused(await reader.getPricesHistory({ market: token, interval: "2y" }), 400, "");
}

// nothing: what needs rewards has the shape of none, and notices can be dropped.
async function nothing({ reader, maker, market, order, crossed }) {
  const { client } = maker;
  const day = "2026-01-01";
  deepStrictEqual(await client.isOrderScoring({ order_id: order.orderID }), { scoring: false });
  const orderIds = [order.orderID, crossed.orderID];
  deepStrictEqual(await client.areOrdersScoring({ orderIds }),
    Object.fromEntries(orderIds.map((id) => [id, false])));
  const notices = await client.getNotifications();
  ok(notices.some((n) => n.type === 2 && n.payload.id), JSON.stringify(notices));
  ok(notices.every((n) => Number.isSafeInteger(n.id) && typeof n.owner === "string"));
  await client.dropNotifications({ ids: notices.map((n) => String(n.id)) });
  deepStrictEqual(await client.getNotifications(), []);
  deepStrictEqual(await client.getEarningsForUserForDay(day), []);
  deepStrictEqual(await client.getTotalEarningsForUserForDay(day), []);
  deepStrictEqual(await client.getUserEarningsAndMarketsConfig(day), []);
  deepStrictEqual(await client.getRewardPercentages(), {});
  deepStrictEqual(await reader.getCurrentRewards(), []);
  deepStrictEqual(await reader.getRawRewardsForMarket(market.condition), []);
}

async function readonlyKeys(t) {
  const { maker, taker, kit } = t;
  const { client, signer } = maker;
  const before = like(await client.getReadonlyApiKeys(), [String]);
  const { apiKey } = like(await client.createReadonlyApiKey(), { apiKey: String });
  deepStrictEqual(await client.getReadonlyApiKeys(), [...before, apiKey]);
  const read = (path) => fetch(`${kit.url}${path}`, {
    headers: { POLY_READONLY_API_KEY: apiKey, POLY_ADDRESS: signer.address },
  });
  const orders = await read(`/data/orders?maker_address=${signer.address}`);
  strictEqual(orders.status, 200, await orders.text());
  const list = await (await read("/data/trades")).json();
  ok(list.data.length > 0, "the key of a trader reads no trades");
  strictEqual((await read("/balance-allowance?asset_type=COLLATERAL")).status, 401);
  strictEqual((await read("/auth/api-keys")).status, 401, "a read-only key lists keys");
  await kit.validate?.(t, apiKey, true);
  deepStrictEqual(await taker.client.getReadonlyApiKeys(), [], "somebody else's keys");
  strictEqual(await client.deleteReadonlyApiKey(apiKey), true);
  deepStrictEqual(await client.getReadonlyApiKeys(), before);
  strictEqual((await read("/data/orders")).status, 401, "a deleted key still reads");
  await kit.validate?.(t, apiKey, false);
}

async function negRisk(t) {
  const market = await pick(true);
  if (!market) return skip("a neg-risk market", "the catalog has none with an empty book");
  await step("a neg-risk market", async () => {
    const [token] = market.tokens;
    strictEqual(await t.reader.getNegRisk(token), true);
    const order = await place(t, t.maker, [true, 0.3, 5], { token });
    deepStrictEqual((await bookOf(t, token)).bids, levels(["0.3", "5"]));
    const result = await t.maker.client.cancelOrder({ orderID: order.orderID });
    deepStrictEqual(result.canceled, [order.orderID]);
  });
}

// revoked: a deleted key is refused, and its order stays in the account.
async function revoked(t) {
  const { taker, open, token } = t;
  deepStrictEqual(await taker.client.getClosedOnlyMode(), { closed_only: false });
  const spare = await open({ signer: taker.signer }).createApiKey(3);
  const client = open({ signer: taker.signer, creds: spare });
  const order = await place(t, { client }, [false, 0.9, 5], { token });
  const listed = like(await taker.client.getApiKeys(), { apiKeys: [uuid] });
  ok(listed.apiKeys.includes(taker.creds.key), `keys ${JSON.stringify(listed)}`);
  ok(listed.apiKeys.includes(spare.key), `keys ${JSON.stringify(listed)}`);
  strictEqual(await client.deleteApiKey(), "OK");
  refused(await client.getOpenOrders().catch(() => client.getOrder(order.orderID)), 401,
    "Unauthorized/Invalid api key");
  const left = await taker.client.getApiKeys();
  ok(!left.apiKeys.includes(spare.key), "a deleted key is listed");
  const still = await taker.client.getOpenOrders({ id: order.orderID });
  like(still, [{ id: order.orderID, owner: spare.key, status: "LIVE" }]);
  deepStrictEqual((await taker.client.cancelAll()).canceled, [order.orderID]);
}
