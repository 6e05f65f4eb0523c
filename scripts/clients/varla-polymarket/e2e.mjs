// The two reading clients of this package against a running node: that of the data interface and
// that of the catalog. Arguments: see ../house.mjs.
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert";
import { DataApiClient, GammaClient } from "@varla/polymarket";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  catalog, covered, hex32, like, methods, need, publicURL, settle, skip, step, watched,
} from "../house.mjs";
import { held, lost, play } from "../portfolio.mjs";

const called = new Set();
const data = watched(
  new DataApiClient({ baseUrl: `${publicURL}/data-api`, maxAttempts: 1 }), called);
const gamma = watched(new GammaClient({ baseUrl: `${publicURL}/gamma`, maxAttempts: 1 }), called);

// reasons are those for which a method is not called.
const reasons = {
  "is its own": "request isRetryable acquireRateLimitPermit fetchFn",
  "downloads an archive that is not made": "getAccountingSnapshot",
  "asks the data interface for books, which has none": `getPriceHistory getOrderBookSummary
    getOrderBookSummaries getSpreads`,
  "reads a text as JSON": "healthCheck",
};
const left = Object.fromEntries(Object.entries(reasons)
  .flatMap(([why, names]) => names.trim().split(/\s+/).map((name) => [name, why])));

async function positions(t) {
  const { buyer: { address }, seller, market } = t;
  const mine = await data.getCurrentPositions({ address });
  strictEqual(mine.length, 1);
  like(mine[0], { ...held(t), timestamp: Number });
  const both = await data.getCurrentPositions({
    address: seller.address, market: [market.condition], mergeable: false, redeemable: false,
    sizeThreshold: 96, sortBy: "PRICE", sortDirection: "DESC",
  });
  deepStrictEqual(both.map((p) => p.outcomeIndex), [1]);
  const closed = await data.getClosedPositions({ address, sortBy: "REALIZEDPNL" });
  strictEqual(closed.length, 1);
  like(closed[0], lost(t));
  ok(!("negativeRisk" in closed[0]), JSON.stringify(closed[0]));
  deepStrictEqual(await data.getAllClosedPositions({ address, title: "no such title" }), []);
  await rejects(data.getCurrentPositions({ address, limit: 501 }), /400/);
}

async function worth({ buyer: { address }, market }) {
  deepStrictEqual(await data.getTotalPositionValue(address, market.condition),
    [{ user: address, value: 2.25 }]);
  deepStrictEqual(await data.getTotalMarketsTraded(address), { user: address, traded: 1 });
}

async function holders({ buyer, seller, market }) {
  const groups = await data.getTopHolders({ market: [market.condition], minBalance: 5 });
  deepStrictEqual(groups.map((g) => g.holders.map((h) => h.proxyWallet)),
    [[seller.address, buyer.address], [seller.address]]);
}

async function trades({ buyer: { address }, market }) {
  const all = await data.getTrades({ market: market.condition, takerOnly: false });
  strictEqual(all.length, 8);
  const mine = await data.getTrades({ address, side: "SELL", filterType: "TOKENS",
    filterAmount: 20 });
  deepStrictEqual(mine.map((x) => [x.asset, x.price]), [[`${market.condition}:1`, 0.45]]);
  like(mine[0], { transactionHash: hex32, outcome: market.outcomes[1] });
  const did = await data.getUserActivity({ address, limit: 3, offset: 1, type: ["TRADE"] });
  deepStrictEqual(did.map((x) => x.size), [24, 15, 20]);
}

async function markets({ market }) {
  const page = await gamma.listMarkets({ limit: 10, closed: false });
  ok(page.length > 0 && page.length <= 10, `${page.length} markets`);
  const [mine] = await gamma.getMarketsByConditionIds([market.condition]);
  deepStrictEqual([mine.conditionId, mine.question], [market.condition, market.question]);
  for (const one of [await gamma.getMarketById(mine.id), await gamma.getMarketBySlug(mine.slug)]) {
    deepStrictEqual([one.id, one.conditionId], [mine.id, market.condition]);
    deepStrictEqual(JSON.parse(one.clobTokenIds), market.tokens);
  }
  ok(Array.isArray(await gamma.getMarketTags(mine.id)));
  await rejects(gamma.getMarketBySlug("no-such-market"), /404/);
  const ids = await keyset((q) => gamma.listMarketsKeyset(q));
  const want = new Set(catalog.flatMap((e) => e.markets ?? []).map((m) => String(m.id)));
  ok(ids.size >= want.size, `${ids.size} markets in all pages, ${want.size} in the catalog`);
}

// keyset walks all pages and gives the ids, each of which must come once.
async function keyset(list) {
  const ids = new Set();
  let cursor, rows = 0;
  do {
    const page = await list({ limit: 100, after_cursor: cursor });
    for (const row of page.data) ids.add(row.id);
    rows += page.data.length;
    cursor = page.next_cursor;
  } while (cursor);
  strictEqual(ids.size, rows, "a row came twice");
  return ids;
}

async function events() {
  const [sample] = catalog.filter((e) => /^[0-9]+$/.test(e.id));
  const page = await gamma.listEvents({ limit: 5 });
  strictEqual(page.length, Math.min(5, catalog.length));
  const byId = await gamma.getEventById(sample.id);
  deepStrictEqual([byId.id, byId.slug, byId.title], [sample.id, sample.slug, sample.title]);
  deepStrictEqual((await gamma.getEventBySlug(sample.slug)).id, sample.id);
  const tags = await gamma.getEventTags(sample.id);
  deepStrictEqual(tags.map((x) => x.id), (sample.tags ?? []).map((x) => String(x.id)));
  const ids = await keyset((q) => gamma.listEventsKeyset(q));
  ok(ids.size >= catalog.length, `${ids.size} events of ${catalog.length}`);
}

async function seriesAndTags() {
  const [series] = catalog.flatMap((e) => e.series ?? []);
  const [tag] = catalog.flatMap((e) => e.tags ?? []);
  const [all, tags] = [await gamma.listSeries({ limit: 3 }), await gamma.listTags({ limit: 3 })];
  if (!series || !tag) {
    for (const name of ["getSeriesById", "getTagById", "getTagBySlug"]) called.add(name);
    return skip("one series, one tag", "the catalog has none");
  }
  ok(all.length > 0 && tags.length > 0, "the catalog has series and tags");
  strictEqual((await gamma.getSeriesById(String(series.id))).slug, series.slug);
  strictEqual((await gamma.getTagById(String(tag.id))).slug, tag.slug);
  strictEqual((await gamma.getTagBySlug(tag.slug)).id, String(tag.id));
  return undefined;
}

// sums: what a market owes, what its event traded, and who holds what of it.
async function sums({ buyer, seller, market }) {
  const { condition } = market;
  deepStrictEqual(await data.getOpenInterest({ market: [condition] }),
    [{ market: condition, value: 100 }]);
  const event = catalog.find((e) => e.markets?.some((m) => m.conditionId === condition));
  const [{ total, markets: parts }] = await data.getLiveVolume({ id: Number(event.id) });
  strictEqual(total, 37.4);
  strictEqual(parts.find((m) => m.market === condition).value, 37.4);
  const groups = await data.getMarketPositions({ market: condition, sortBy: "TOKENS" });
  deepStrictEqual(groups.map((g) => g.positions.map((p) => [p.proxyWallet, p.size])),
    [[[seller.address, 95], [buyer.address, 5]], [[seller.address, 100]]]);
  const mine = await data.getMarketPositions({ market: condition, user: buyer.address });
  like(mine, [{ token: String, positions: [{
    proxyWallet: buyer.address, conditionId: condition, verified: false, name: "",
    profileImage: "", currPrice: Number, totalPnl: Number, outcome: String,
  }] }]);
  deepStrictEqual(mine.map((g) => g.positions[0].size), [5, 0]);
  deepStrictEqual(await data.getTraderLeaderboard(), []);
  deepStrictEqual(await data.getBuilderLeaderboard(), []);
  deepStrictEqual(await data.getBuilderVolume({ timePeriod: "DAY" }), []);
}

// beside: tags that go together, and what there is none of.
async function beside({ buyer }) {
  const event = catalog.find((e) => (e.tags ?? []).length > 1);
  const { id, slug } = event?.tags[0] ?? { id: "1", slug: "none" };
  const calls = [gamma.getRelatedTagsById(String(id)), gamma.getRelatedTagsBySlug(slug),
    gamma.getTagRelationshipsById(String(id)), gamma.getTagRelationshipsBySlug(slug)];
  const answers = await Promise.allSettled(calls);
  if (event) {
    const [tags, bySlug, relations, again] = answers.map((a) => a.value);
    deepStrictEqual([bySlug, again], [tags, relations]);
    ok(tags.some((x) => x.id === String(event.tags[1].id)), "a tag of the same event is missing");
    deepStrictEqual(relations.map((x) => String(x.relatedTagID)), tags.map((x) => x.id));
  }
  deepStrictEqual(await gamma.getSports(), []);
  deepStrictEqual(await gamma.listTeams({}), []);
  deepStrictEqual(await gamma.getValidSportsMarketTypes(), { marketTypes: [] });
  deepStrictEqual(await gamma.listComments({}), []);
  deepStrictEqual(await gamma.getCommentById("1"), []);
  deepStrictEqual(await gamma.getCommentsByUser(buyer.address), []);
  await rejects(gamma.getPublicProfile(buyer.address), /404/);
}

async function search() {
  const [event] = catalog;
  const found = await gamma.search(event.title, { search_tags: true });
  ok(found.events.some((e) => e.title === event.title), `"${event.title}" does not find itself`);
}

function wallet() {
  const key = generatePrivateKey();
  return { key, address: privateKeyToAccount(key).address };
}

const t = await need("a history", () => play(wallet));
await step("positions", () => positions(t));
await step("value and markets traded", () => worth(t));
await step("holders", () => holders(t));
await step("trades and activity", () => trades(t));
await step("catalog: markets", () => markets(t));
await step("catalog: events", events);
await step("catalog: series and tags", seriesAndTags);
await step("catalog: search", search);
await step("sums over a market", () => sums(t));
await step("beside the catalog", () => beside(t));
await step("every method was called", () => {
  const names = new Set([...methods(data), ...methods(gamma)]);
  covered([...names].sort(), called, left);
});
await settle();
