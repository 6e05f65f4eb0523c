// The official SDK against a running node, through its fork of the environment: it checks each
// answer with a schema and throws where one differs. Arguments: see ../house.mjs.
import { createServer } from "node:http";
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert";
import {
  buildHmacSignature, createPublicClient, createSecureClient, forkEnvironmentConfig, OrderSide,
  OrderType, PriceHistoryInterval, production, remoteBuilderSigning,
} from "@polymarket/client";
import * as actions from "@polymarket/client/actions";
import { privateKey } from "@polymarket/client/viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  catalog, covered, decimal, fund, hex32, like, methods, need, pick, publicURL, recent, settle,
  skip, soon, step, uuid, watched,
} from "../house.mjs";
import { WebSocket } from "ws";

globalThis.WebSocket ??= WebSocket; // that of browsers, which newer versions of Node have
const { BUY, SELL } = OrderSide;
const builderCode = `0x${"0c".repeat(32)}`;
const called = new Set();

// All other hosts are a port that nobody listens on: what asks them fails.
const rest = "http://127.0.0.1:9", ws = "ws://127.0.0.1:9";
const feed = publicURL.replace(/^http/, "ws");
const environment = forkEnvironmentConfig({
  name: "e2e", chainId: 80002, rpc: rest,
  clob: { rest: publicURL, market: { ws: `${feed}/ws/market` }, user: { ws: `${feed}/ws/user` } },
  relayer: { rest }, gamma: { rest: publicURL }, data: { rest: publicURL }, rtds: { ws },
  sports: { ws },
  combos: { rest, ws, collateralReturn: { rest } }, perps: { rest, ws },
});

// reasons are those for which a method is not called.
const reasons = {
  "downloads an archive that is not made": "downloadAccountingSnapshot",
  "asks the host of combinations": `listComboMarkets planCollateralReturn
    executeCollateralReturnPlan`,
  "asks for quotes": "openRfqSession",
  "trades perpetuals": `depositToPerps withdrawFromPerps openPerpsSession revokePerpsCredentials
    fetchPerpsBook fetchPerpsFees fetchPerpsInstruments fetchPerpsTicker fetchPerpsTickers
    listPerpsCandles listPerpsFundingHistory listPerpsTrades`,
  "sends a transaction to a chain": `approveErc1155ForAll approveErc20 mergePositions
    redeemPositions setupTradingApprovals splitPosition transferErc20`,
  internal: `rememberDecorator resolveClobHeaders resolveRelayerHeaders
    endAuthenticationLifecycle`,
};
const left = Object.fromEntries(Object.entries(reasons)
  .flatMap(([why, names]) => names.trim().split(/\s+/).map((name) => [name, why])));

const reader = watched(createPublicClient({ environment }), called);

// refused insists that a call is refused with that status and text.
function refused(call, status, text) {
  return rejects(call, (err) => {
    strictEqual(err.status, status, String(err));
    ok(err.message.includes(text), `refused with ${err.message}, not ${text}`);
    return true;
  });
}

// all are the items of all pages.
async function all(pages) {
  const items = [];
  for await (const page of pages) items.push(...page.items);
  return items;
}

async function trader(apiKey) {
  const key = generatePrivateKey();
  const wallet = privateKeyToAccount(key).address;
  const signer = privateKey(key);
  const client = await createSecureClient({ environment, signer, wallet, apiKey });
  like(client.credentials, { key: uuid, passphrase: /^[0-9a-f]{64}$/, secret: String });
  strictEqual(client.account.walletType, 0);
  return { client: watched(client, called), plain: client, signer, wallet };
}

async function authentication({ maker }) {
  const workflow = await reader.beginAuthentication({ wallet: maker.wallet }, maker.signer);
  let { value: request } = await workflow.next();
  ({ value: request } = await workflow.next(maker.wallet));
  const signature = await maker.signer.signTypedData(request.payload);
  const { value: client, done } = await workflow.next(signature);
  ok(done, "the workflow goes on");
  deepStrictEqual(client.credentials, maker.plain.credentials);
  strictEqual(watched(client, called).isSecureClient(), true);
  strictEqual(watched(client, called).isPublicClient(), false);
  const again = await createSecureClient({
    environment, signer: maker.signer, wallet: maker.wallet, credentials: client.credentials,
  });
  deepStrictEqual(again.credentials, client.credentials, "known credentials were not taken");
  const wider = createPublicClient({ environment }).extend(() => ({ answer: () => 42 }));
  reader.extend(() => ({}));
  strictEqual(wider.answer(), 42);
}

const collateral = { assetType: "COLLATERAL" };

async function money({ maker, taker, token }) {
  const shares = { assetType: "CONDITIONAL", tokenId: token };
  await fund(maker.wallet, "1000");
  await fund(taker.wallet, "1000");
  await fund(taker.wallet, "100", token);
  const cash = await actions.fetchBalanceAllowance(maker.plain, collateral);
  strictEqual(cash.balance, "1000000000");
  const { standardExchange } = production.contracts;
  ok(cash.allowances[standardExchange] > 10n ** 30n, `allowances ${Object.keys(cash.allowances)}`);
  const held = await actions.updateBalanceAllowance(taker.plain, shares);
  strictEqual(held.balance, "100000000");
}

async function markets({ market, token }) {
  strictEqual(await actions.fetchTickSize(reader, { tokenId: token }), 0.01);
  strictEqual(await actions.fetchNegRisk(reader, { tokenId: token }), false);
  const { condition: conditionId } = market;
  strictEqual(await actions.resolveConditionByToken(reader, { tokenId: token }), conditionId);
  const { tokens } = await actions.fetchMarketInfo(reader, { conditionId });
  deepStrictEqual(tokens.map((x) => x.tokenId), market.tokens);
  const fees = await actions.fetchBuilderFeeRates(reader, { builderCode });
  deepStrictEqual(fees, { maker: 0, taker: 0 });
  const empty = await reader.fetchOrderBook({ tokenId: token });
  deepStrictEqual([empty.bids, empty.asks], [[], []]);
  await refused(reader.fetchMidpoint({ tokenId: token }), 404, "No orderbook exists");
  await refused(reader.fetchOrderBook({ tokenId: "12345" }), 404, "No orderbook exists");
}

const accepted = {
  ok: true, orderId: hex32, status: /^(live|matched)$/, makingAmount: decimal,
  takingAmount: decimal, transactionsHashes: [hex32], tradeIds: [uuid],
};

async function limit(t) {
  const { maker, taker, market, token } = t;
  const quote = { tokenId: token, price: 0.4, size: 20, side: BUY };
  const placed = like(await maker.client.placeLimitOrder(quote), accepted);
  strictEqual(placed.status, "live");
  const expiration = Math.floor(Date.now() / 1000) + 600;
  const dated = await maker.client.createLimitOrder({ ...quote, price: 0.3, expiration });
  const rested = like(await maker.client.postOrder(dated), accepted);
  const open = await all(maker.client.listOpenOrders({ market: market.condition }));
  deepStrictEqual(open.map((o) => o.id), [placed.orderId, rested.orderId]);
  like(open[1], {
    orderType: "GTD", price: "0.3", originalSize: "20", sizeMatched: "0", side: "BUY",
    tokenId: token, conditionId: market.condition, status: "LIVE", makerAddress: maker.wallet,
    owner: maker.plain.credentials.key, createdAt: String, expiresAt: String,
  });
  const one = await maker.client.fetchOrder({ orderId: placed.orderId });
  deepStrictEqual(one, open[0]);
  const crossing = { ...quote, side: SELL, size: 5, postOnly: true };
  await refused(taker.client.placeLimitOrder(crossing), 400, "order crosses book");
  await refused(maker.client.placeLimitOrder({ ...quote, size: 100_000 }), 400,
    "not enough balance / allowance");
  t.placed = placed;
  t.rested = rested;
}

async function quotes({ taker, token, other, placed, rested }) {
  const ask = { tokenId: token, price: 0.5, size: 10, side: SELL, postOnly: true };
  like(await taker.client.placeLimitOrder(ask), { ...accepted, status: "live" });
  const book = await reader.fetchOrderBook({ tokenId: token });
  deepStrictEqual(book.bids.map((l) => l.price), ["0.3", "0.4"]);
  deepStrictEqual(book.asks, [{ price: "0.5", size: "10" }]);
  const both = [{ tokenId: token }, { tokenId: other }];
  deepStrictEqual((await reader.fetchOrderBooks(both)).map((b) => b.tokenId), [token, other]);
  strictEqual(await reader.fetchMidpoint({ tokenId: token }), "0.45");
  deepStrictEqual(await reader.fetchMidpoints(both), { [token]: "0.45", [other]: "0.55" });
  strictEqual(await reader.fetchPrice({ tokenId: token, side: BUY }), "0.5");
  const sided = [{ tokenId: token, side: BUY }, { tokenId: token, side: SELL }];
  deepStrictEqual(await reader.fetchPrices(sided), { [token]: { BUY: "0.5", SELL: "0.4" } });
  strictEqual(await reader.fetchSpread({ tokenId: token }), "0.1");
  deepStrictEqual(await reader.fetchSpreads(both), { [token]: "0.1", [other]: "0.1" });
  strictEqual(await reader.estimateMarketPrice({ tokenId: token, side: BUY, amount: 2 }), 0.5);
  const orderIds = [placed.orderId, rested.orderId];
  deepStrictEqual(await taker.client.fetchOrdersScoring({ orderIds }),
    Object.fromEntries(orderIds.map((id) => [id, false])));
  strictEqual(await taker.client.fetchOrderScoring({ orderId: placed.orderId }), false);
}

async function market(t) {
  const { maker, taker, token, placed } = t;
  const sale = { tokenId: token, side: SELL, shares: 8, orderType: OrderType.FOK };
  const sold = like(await taker.client.placeMarketOrder(sale), accepted);
  deepStrictEqual([sold.status, sold.makingAmount, sold.takingAmount], ["matched", "8", "3.2"]);
  const hashes = await taker.client.waitForOrderFillSettlement(sold, { timeoutMs: 180_000 });
  deepStrictEqual(hashes, sold.transactionsHashes);
  for (const [who, role] of [[taker, "TAKER"], [maker, "MAKER"]]) {
    const [trade] = await all(who.client.listAccountTrades({ id: sold.tradeIds[0] }));
    like(trade, {
      id: sold.tradeIds[0], takerOrderId: sold.orderId, traderSide: role, side: "SELL",
      price: "0.4", size: "8", status: "TRADE_STATUS_CONFIRMED", transactionHash: hashes[0],
      makerOrders: [{ orderId: placed.orderId, matchedAmount: "8", price: "0.4", side: "BUY" }],
    });
    recent(Date.parse(trade.matchedAt) / 1000, "matched at");
  }
  deepStrictEqual(await reader.fetchLastTradePrice({ tokenId: token }),
    { price: "0.4", side: "SELL" });
  const last = await reader.fetchLastTradePrices([{ tokenId: token }]);
  deepStrictEqual(last, [{ tokenId: token, price: "0.4", side: "SELL" }]);
  const purchase = { tokenId: token, side: BUY, amount: 2, maxSpend: 2, builderCode };
  const signed = await maker.client.createMarketOrder(purchase);
  strictEqual(signed.builder, builderCode);
  const bought = like(await maker.client.postOrder(signed), accepted);
  deepStrictEqual([bought.makingAmount, bought.takingAmount], ["2", "4"]);
  const dear = { ...purchase, maxSpend: undefined, amount: 50, maxPrice: 0.45 };
  await refused(maker.client.placeMarketOrder(dear), 400, "no orders found to match with FAK");
  const whole = { ...dear, maxPrice: 0.5, orderType: OrderType.FOK };
  await refused(maker.client.placeMarketOrder(whole), 400, "couldn't be fully filled");
  const cash = await actions.fetchBalanceAllowance(maker.plain, collateral);
  strictEqual(cash.balance, "994800000");
}

async function batch({ maker, token }) {
  const quote = { tokenId: token, size: 10, side: BUY };
  const orders = [
    await maker.client.createLimitOrder({ ...quote, price: 0.2 }),
    await maker.client.createLimitOrder({ ...quote, price: 0.21, size: 1_000_000 }),
    await maker.client.createLimitOrder({ ...quote, price: 0.49, postOnly: true }),
    await maker.client.createLimitOrder({ ...quote, price: 0.5, postOnly: true }),
  ];
  const answers = await maker.client.postOrders(orders);
  like(answers[0], { ...accepted, status: "live" });
  like(answers[1], { ok: false, code: "insufficient_balance_or_allowance" });
  like(answers[2], { ...accepted, status: "live" });
  like(answers[3], { ok: false, code: "post_only_would_cross" });
  const orderIds = [answers[0].orderId, answers[2].orderId];
  const gone = await maker.client.cancelOrders({ orderIds });
  deepStrictEqual(gone, { canceled: orderIds, notCanceled: {} });
}

async function cancels({ maker, taker, market, token, placed, rested }) {
  const { orderId } = placed;
  const foreign = await taker.client.cancelOrder({ orderId });
  deepStrictEqual(foreign, { canceled: [], notCanceled: { [orderId]: "order not found" } });
  deepStrictEqual(await maker.client.cancelOrder({ orderId }),
    { canceled: [orderId], notCanceled: {} });
  const again = await maker.client.cancelOrder({ orderId });
  ok(again.notCanceled[orderId].includes("already canceled or matched"), JSON.stringify(again));
  const byMarket = await maker.client.cancelMarketOrders({ market: market.condition });
  deepStrictEqual(byMarket, { canceled: [rested.orderId], notCanceled: {} });
  const byToken = await taker.client.cancelMarketOrders({ tokenId: token });
  strictEqual(byToken.canceled.length, 1);
  deepStrictEqual(await taker.client.cancelAll(), { canceled: [], notCanceled: {} });
  deepStrictEqual(await all(maker.client.listOpenOrders()), []);
}

async function nothing({ maker, market }) {
  const { client } = maker;
  const date = "2026-01-01";
  const { condition: conditionId } = market;
  deepStrictEqual(await all(reader.listCurrentRewards()), []);
  deepStrictEqual(await all(reader.listMarketRewards({ conditionId })), []);
  const built = await all(reader.listBuilderTrades({ builderCode }));
  like(built, [{ builder: builderCode, tradeType: "TAKER", side: BUY, transactionHash: hex32 }]);
  deepStrictEqual(built.map((t) => [t.size, t.sizeUsdc]), [["4", "2"]]);
  deepStrictEqual(await all(client.listUserEarningsForDay({ date })), []);
  deepStrictEqual(await all(client.listUserEarningsAndMarketsConfig({ date })), []);
  deepStrictEqual(await client.fetchTotalEarningsForUserForDay({ date }), []);
  deepStrictEqual(await client.fetchRewardPercentages(), {});
  const notices = await client.fetchNotifications();
  ok(notices.some((n) => n.type === 2), JSON.stringify(notices));
  await client.dropNotifications({ ids: notices.map((n) => String(n.id)) });
  deepStrictEqual(await client.fetchNotifications(), []);
  strictEqual(await client.fetchClosedOnlyMode(), false);
}

async function history({ token }) {
  const interval = PriceHistoryInterval.ONE_DAY;
  const points = await reader.fetchPriceHistory({ tokenId: token, interval, fidelity: 1 });
  ok(points.length > 0, "a market with quotes on both sides has no point");
  ok(points.every((x) => x.p > 0 && x.p < 1), JSON.stringify(points));
}

// unique insists that each row came once and gives their ids.
function unique(rows) {
  const ids = new Set(rows.map((row) => row.id));
  strictEqual(ids.size, rows.length, "a row came twice");
  return ids;
}

async function catalogMarkets({ market, token, other }) {
  let mine;
  await soon("the market as it is now", async () => {
    ({ items: [mine] } = await reader.listMarkets({
      conditionIds: [market.condition], clobTokenIds: [token], closed: false, order: "volume",
    }).firstPage());
    like(mine, {
      conditionId: market.condition, question: market.question,
      state: { closed: false, acceptingOrders: true }, trading: { minimumTickSize: 0.01 },
      prices: { bestBid: "0.4", bestAsk: "0.5", lastTradePrice: "0.5", spread: "0.1" },
      metrics: { volume: "5.2", volumeNum: "5.2", liquidity: decimal },
      outcomes: { yes: { tokenId: token, price: "0.45" }, no: { tokenId: other, price: "0.55" } },
    });
  });
  for (const wanted of [{ id: mine.id }, { slug: mine.slug }]) {
    const one = await reader.fetchMarket(wanted);
    deepStrictEqual([one.id, one.conditionId], [mine.id, market.condition]);
  }
  ok(Array.isArray(await reader.fetchMarketTags({ id: mine.id })));
  const ids = unique(await all(reader.listMarkets({ pageSize: 100 })));
  const two = (m) => JSON.parse(m.outcomes).length === 2;
  const want = catalog.flatMap((e) => e.markets ?? []).filter(two);
  ok(want.every((m) => ids.has(String(m.id))), `${ids.size} markets of ${want.length}`);
  await refused(reader.fetchMarket({ slug: "no-such-market" }), 404, "slug not found");
}

async function catalogEvents() {
  const [sample] = catalog;
  for (const wanted of [{ id: sample.id }, { slug: sample.slug }]) {
    const one = await reader.fetchEvent(wanted);
    deepStrictEqual([one.id, one.slug, one.title], [sample.id, sample.slug, sample.title]);
    ok(one.markets.length > 0, "an event without markets");
  }
  const tags = await reader.fetchEventTags({ id: sample.id });
  deepStrictEqual(tags.map((x) => x.id), (sample.tags ?? []).map((x) => String(x.id)));
  const open = await all(reader.listEvents({ pageSize: 100, order: "endDate", ascending: true }));
  const closed = await all(reader.listEvents({ pageSize: 100, closed: true }));
  const ids = unique([...open, ...closed]);
  ok(catalog.every((e) => ids.has(e.id)), `${ids.size} events of ${catalog.length}`);
  ok(open.every((e) => e.state.closed === false), "a closed event among the open ones");
}

async function seriesAndTags() {
  const [series] = catalog.flatMap((e) => e.series ?? []);
  const [tag] = catalog.flatMap((e) => e.tags ?? []);
  const rows = unique(await all(reader.listSeries()));
  const tags = unique(await all(reader.listTags()));
  if (!series || !tag) {
    for (const name of ["fetchSeries", "fetchTag"]) called.add(name);
    return skip("one series, one tag", "the catalog has none");
  }
  ok(rows.has(String(series.id)) && tags.has(String(tag.id)), "a list lacks a row");
  strictEqual((await reader.fetchSeries({ id: String(series.id) })).slug, series.slug);
  strictEqual((await reader.fetchTag({ id: String(tag.id) })).slug, tag.slug);
  strictEqual((await reader.fetchTag({ slug: tag.slug })).id, String(tag.id));
  return undefined;
}

// relations: tags that events have together go with each other, most often first.
async function relations() {
  const event = catalog.find((e) => (e.tags ?? []).length > 1);
  const { id, slug } = event?.tags[0] ?? { id: "1", slug: "none" };
  const calls = () => [
    reader.fetchRelatedTags({ id: String(id) }), reader.fetchRelatedTags({ slug }),
    reader.fetchRelatedTagResources({ id: String(id), status: "all", omitEmpty: true }),
    reader.fetchRelatedTagResources({ slug }),
  ];
  if (!event) {
    await Promise.allSettled(calls());
    return skip("related tags", "the catalog has none");
  }
  const [byId, bySlug, tags, tagsBySlug] = await Promise.all(calls());
  ok(tags.some((x) => x.id === String(event.tags[1].id)), "a tag of the same event is missing");
  deepStrictEqual(byId.map((x) => [x.rank, String(x.tagId), String(x.relatedTagId)]),
    tags.map((x, i) => [i + 1, String(id), x.id]));
  deepStrictEqual([bySlug, tagsBySlug], [byId, tags]);
  return undefined;
}

// absent: what there is none of comes in the shapes that the schemas want.
async function absent({ maker: { wallet } }) {
  deepStrictEqual(await reader.listSports(), []);
  deepStrictEqual(await reader.fetchSportsMarketTypes(), { marketTypes: [] });
  deepStrictEqual(await all(reader.listTeams({ league: ["nba"] })), []);
  const parent = { parentEntityType: "Event", parentEntityId: 1 };
  deepStrictEqual(await all(reader.listComments(parent)), []);
  deepStrictEqual(await reader.fetchCommentsById({ id: "1" }), []);
  deepStrictEqual(await all(reader.listCommentsByUserAddress({ address: wallet })), []);
  deepStrictEqual(await all(reader.listMarketClarifications({ marketId: "1" })), []);
  deepStrictEqual(await all(reader.listTraderLeaderboard({ timePeriod: "ALL" })), []);
  deepStrictEqual(await all(reader.listBuilderLeaderboard()), []);
  deepStrictEqual(await reader.fetchBuilderVolume({ timePeriod: "DAY" }), []);
  deepStrictEqual(await all(reader.listComboPositions({ user: wallet })), []);
  deepStrictEqual(await all(reader.listComboActivity({ user: wallet })), []);
  strictEqual(await reader.fetchPublicProfile({ address: wallet }), null);
}

async function search() {
  const [{ title: q }] = catalog;
  const { items } = await reader.search({ q, searchTags: true }).firstPage();
  const [found] = Array.isArray(items) ? items : [items];
  ok(found.events.some((e) => e.title === q), `"${q}" does not find itself`);
}

async function portfolio({ maker, taker, market, token }) {
  const user = maker.wallet;
  const [held] = await all(reader.listPositions({ user, market: [market.condition] }));
  like(held, {
    wallet: user, conditionId: market.condition, size: "12", avgPrice: "0.433333",
    initialValue: "5.2", title: market.question, outcomeIndex: 0,
  });
  deepStrictEqual(await all(reader.listClosedPositions({ user })), []);
  const [value] = await reader.fetchPortfolioValue({ user });
  deepStrictEqual(value, { user, value: held.currentValue });
  const traded = await reader.fetchTradedMarketCount({ user });
  strictEqual(Number(traded.traded), 1, JSON.stringify(traded));
  const trades = await all(reader.listTrades({ market: [market.condition] }));
  deepStrictEqual(trades.map((x) => [x.side, x.price, x.size, x.wallet]),
    [["BUY", "0.5", "4", maker.wallet], ["SELL", "0.4", "8", taker.wallet]]);
  const did = await all(reader.listActivity({ user, type: ["TRADE"] }));
  deepStrictEqual(did.map((x) => x.side), ["BUY", "BUY"]);
  const groups = await reader.listMarketHolders({ market: [market.condition] });
  deepStrictEqual(groups[0].holders.map((x) => x.amount), ["88", "12"]);
  const interest = await reader.listOpenInterest({ market: [market.condition] });
  deepStrictEqual(interest, [{ market: market.condition, value: "100" }]);
  deepStrictEqual(await reader.listOpenInterest(), []);
  const event = catalog.find((e) => e.markets?.some((m) => m.conditionId === market.condition));
  const [{ total, markets }] = await reader.fetchEventLiveVolume({ id: event.id });
  strictEqual(total, "5.2");
  ok(markets.some((m) => m.market === market.condition && m.value === "5.2"), String(markets));
  const standing = { market: market.condition, sortBy: "TOKENS", pageSize: 1 };
  const holdings = (await all(reader.listMarketPositions(standing))).flatMap((x) => x.positions);
  deepStrictEqual(holdings.map((x) => [x.wallet, x.size, x.outcomeIndex]),
    [[taker.wallet, "88", 0], [maker.wallet, "12", 0]]);
  strictEqual(token, market.tokens[0]);
}

// builder: requests that another process signs for the builder.
async function builder({ maker }) {
  const trio = await actions.createBuilderApiKey(maker.plain);
  like(trio, { key: uuid, secret: String, passphrase: String });
  const listed = await actions.fetchBuilderApiKeys(maker.plain);
  ok(listed.some((k) => k.key === trio.key), JSON.stringify(listed));
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const { body, method, path } = JSON.parse(text);
    const time = Math.floor(Date.now() / 1000);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({
      POLY_BUILDER_API_KEY: trio.key, POLY_BUILDER_PASSPHRASE: trio.passphrase,
      POLY_BUILDER_TIMESTAMP: String(time),
      POLY_BUILDER_SIGNATURE: await buildHmacSignature(trio.secret, time, method, path, body),
    }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${server.address().port}/sign`;
    const apiKey = remoteBuilderSigning({ url });
    const other = await trader(apiKey);
    await fund(other.wallet, "10");
    deepStrictEqual(await all(other.client.listOpenOrders()), []);
    await actions.revokeBuilderApiKey(createPublicClient({ environment, apiKey }));
  } finally {
    server.close();
  }
  const after = await actions.fetchBuilderApiKeys(maker.plain);
  ok(!after.some((k) => k.key === trio.key && !k.revokedAt), JSON.stringify(after));
}

// stream keeps the best price of a token as its stream tells it. The client checks each message
// with a schema.
async function stream({ maker, token, other }) {
  const feed = await reader.subscribe([{ topic: "market", tokenIds: [token, other] }]);
  const events = feed[Symbol.asyncIterator]();
  const next = async (type, fits) => {
    for (;;) {
      const late = new Promise((_, no) => setTimeout(no, 20_000, new Error(`no ${type}`)).unref());
      const { value, done } = await Promise.race([events.next(), late]);
      ok(!done, `the stream ended before a ${type}`);
      if (value.type === type && fits(value.payload)) return value.payload;
    }
  };
  await next("book", (book) => book.tokenId === token || book.assetId === token);
  const quote = { tokenId: token, price: 0.07, size: 11, side: BUY };
  const { orderId } = like(await maker.client.placeLimitOrder(quote), accepted);
  const of = (change) => change.priceChanges.find((c) => c.tokenId === token);
  const told = of(await next("price_change", (change) => Number(of(change)?.price) === 0.07));
  strictEqual(Number(told.size), 11);
  strictEqual(told.hash, (await reader.fetchOrderBook({ tokenId: token })).hash);
  await maker.client.cancelOrder({ orderId });
  const gone = of(await next("price_change", (change) => Number(of(change)?.price) === 0.07));
  strictEqual(Number(gone.size), 0);
  await feed.close();
}

// orders follows what happens to the orders of two traders who meet. The client checks each message
// with a schema.
async function orders({ maker, taker, market, token, other }) {
  const feeds = [];
  const follow = async (who, topic) => {
    const feed = await who.client.subscribe([topic]);
    feeds.push(feed);
    const events = feed[Symbol.asyncIterator]();
    return async (fits) => {
      for (;;) {
        const why = new Error(`no ${fits}`);
        const late = new Promise((_, no) => setTimeout(no, 20_000, why).unref());
        const { value, done } = await Promise.race([events.next(), late]);
        ok(!done, "the stream ended");
        if (value.topic === "user" && fits(value.payload, value.type)) return value.payload;
      }
    };
  };
  const made = await follow(maker, { topic: "user" });
  const took = await follow(taker, { topic: "user", markets: [market.condition] });
  await new Promise((yes) => setTimeout(yes, 500)); // the client does not tell when it is logged in
  await maker.client.cancelAll(); // what rests would be met first
  const quote = { tokenId: token, price: 0.07, size: 11, side: BUY };
  const { orderId } = like(await maker.client.placeLimitOrder(quote), accepted);
  const mine = (kind) => (o) => o.id === orderId && o.orderEventType === kind;
  strictEqual(Number((await made(mine("PLACEMENT"))).originalSize), 11);
  const against = { tokenId: other, price: 0.93, size: 5, side: BUY }; // together they mint pairs
  const meets = like(await taker.client.placeLimitOrder(against), accepted);
  const trade = (status) => (o, type) => type === "trade" && o.status === `TRADE_STATUS_${status}`;
  const told = await took(trade("MATCHED"));
  strictEqual(told.takerOrderId, meets.orderId);
  strictEqual((await made(trade("MATCHED"))).id, told.id);
  strictEqual((await made(trade("CONFIRMED"))).id, told.id);
  const update = await made(mine("UPDATE"));
  strictEqual(Number(update.sizeMatched), 5);
  deepStrictEqual(update.associateTrades, [told.id]);
  await maker.client.cancelOrder({ orderId });
  strictEqual((await made(mine("CANCELLATION"))).status, "CANCELED");
  for (const feed of feeds) await feed.close();
}

async function negRisk({ maker }) {
  const grouped = await pick(true);
  if (!grouped) return skip("a neg-risk market", "the catalog has none with an empty book");
  return step("a neg-risk market", async () => {
    const quote = { tokenId: grouped.tokens[0], price: 0.3, size: 5, side: BUY };
    const placed = like(await maker.client.placeLimitOrder(quote), accepted);
    strictEqual((await maker.client.cancelAll()).canceled[0], placed.orderId);
  });
}

async function ended({ taker }) {
  const keys = await actions.fetchApiKeys(taker.plain);
  deepStrictEqual(keys, [taker.plain.credentials.key]);
  const { credentials } = taker.plain;
  const client = watched(await taker.client.endAuthentication(), called);
  strictEqual(client.isPublicClient(), true);
  const { wallet, signer } = taker;
  const workflow = await client.beginAuthentication({ wallet, credentials }, signer);
  await workflow.next();
  const { value } = await workflow.next(wallet);
  strictEqual(value.kind, "signAuthMessage", "a deleted key was taken");
  await client.closeSubscriptions();
}

const picked = await pick(false);
ok(picked, "no plain market with an empty book in the catalog");
const [token, other] = picked.tokens;
const t = { market: picked, token, other };
await need("keys", async () => { t.maker = await trader(); t.taker = await trader(); });
await step("authentication", () => authentication(t));
await step("money", () => money(t));
await step("markets", () => markets(t));
await need("limit orders", () => limit(t));
await step("quotes", () => quotes(t));
await step("market orders", () => market(t));
await step("a batch", () => batch(t));
await step("price history", () => history(t));
await step("catalog: markets", () => catalogMarkets(t));
await step("catalog: events", catalogEvents);
await step("catalog: series and tags", seriesAndTags);
await step("catalog: which tags go together", relations);
await step("catalog: search", search);
await step("what there is none of", () => absent(t));
await step("a wallet's positions and trades", () => portfolio(t));
await step("a stream of a market", () => stream(t));
await step("cancels", () => cancels(t));
await step("streams of users", () => orders(t));
await step("nothing to reward", () => nothing(t));
await step("builder keys", () => builder(t));
await negRisk(t);
await step("keys come and go", () => ended(t));
await step("every method was called", () => {
  const names = new Set([...methods(reader), ...methods(t.maker.plain)]);
  covered([...names].sort(), called, left);
});
await settle();
