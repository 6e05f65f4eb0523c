// The client of the data and catalog interfaces against a running node: it checks each answer with
// a schema and throws where one differs. Arguments: see ../house.mjs.
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert";
import { Polymarket } from "polymarket-data";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  catalog, covered, hex32, like, methods, need, publicURL, recent, settle, skip, step,
} from "../house.mjs";
import { held, play } from "../portfolio.mjs";

const client = new Polymarket({ dataEndpoint: publicURL, gammaEndpoint: publicURL });
const { core, misc } = client.data;
const { gamma } = client;

// noted calls one method of a module and notes its name.
const called = new Set();
const modules = {
  core, misc, search: gamma.search, series: gamma.series, markets: gamma.markets,
  events: gamma.events, sports: gamma.sports, comments: gamma.comments,
};
function noted(path, ...args) {
  const [module, method] = path.split(".");
  called.add(path);
  return modules[module][method](...args);
}

async function positions(t) {
  const { buyer, seller, market } = t;
  const mine = await noted("core.getPositions", { user: buyer.address });
  strictEqual(mine.length, 1);
  like(mine[0], held(t));
  const both = await core.getPositions({
    user: seller.address, market: [market.condition], sortBy: "AVGPRICE", sortDirection: "ASC",
    mergeable: true, title: market.question.slice(0, 10), limit: 500,
  });
  deepStrictEqual(both.map((p) => p.size), [100, 95]);
  ok(both.every((p) => p.mergeable && p.curPrice > 0), JSON.stringify(both));
  deepStrictEqual(await core.getPositions({ user: seller.address, redeemable: true }), []);
  deepStrictEqual(await core.getPositions({ user: buyer.address, sizeThreshold: 5.01 }), []);
  const event = catalog.find((e) => e.markets?.some((m) => m.conditionId === market.condition));
  const of = (id) => core.getPositions({ user: buyer.address, eventId: [id] });
  deepStrictEqual(await of(Number(event.id)), mine);
  deepStrictEqual(await of(Number(event.id) + 1), []);
}

async function worth({ buyer, market }) {
  const [value] = await noted("core.getValue", { user: buyer.address });
  deepStrictEqual(value, { user: buyer.address, value: 2.25 });
  const [none] = await core.getValue({ user: buyer.address, market: [hex(1)] });
  strictEqual(none.value, 0);
  const traded = await noted("misc.getTraded", { user: buyer.address });
  deepStrictEqual(traded, { user: buyer.address, traded: 1 }, market.condition);
}

const hex = (n) => `0x${n.toString(16).padStart(64, "0")}`;

async function holders({ buyer, seller, market }) {
  const groups = await noted("core.getHolders", { market: [market.condition] });
  deepStrictEqual(groups.map((g) => g.token), [`${market.condition}:0`, `${market.condition}:1`]);
  deepStrictEqual(groups[0].holders.map((h) => [h.proxyWallet, h.amount]),
    [[seller.address, 95], [buyer.address, 5]]);
  const one = await core.getHolders({ market: [market.condition], limit: 1, minBalance: 96 });
  deepStrictEqual(one.map((g) => g.holders.length), [0, 1]);
}

async function trades({ buyer, seller, market }) {
  const all = await noted("core.getTrades", { market: [market.condition] });
  deepStrictEqual(all.map((x) => [x.side, x.outcomeIndex, x.price, x.size]),
    [["SELL", 1, 0.45, 24], ["BUY", 1, 0.5, 24], ["SELL", 0, 0.44, 15], ["BUY", 0, 0.4, 20]]);
  for (const x of all) {
    like(x, { proxyWallet: buyer.address, transactionHash: hex32, title: market.question });
    recent(x.timestamp, "a trade");
  }
  deepStrictEqual(await core.getTrades({ user: seller.address }), []);
  const made = await core.getTrades({ user: seller.address, takerOnly: false, side: "BUY" });
  deepStrictEqual(made.map((x) => x.price), [0.45, 0.44]);
  const large = await core.getTrades({ filterType: "CASH", filterAmount: 10, limit: 2, offset: 0 });
  deepStrictEqual(large.map((x) => x.size), [24, 24]);
}

async function activity({ buyer, market }) {
  const all = await noted("core.getActivity", { user: buyer.address, type: ["TRADE", "REDEEM"] });
  deepStrictEqual(all.map((x) => x.usdcSize), [10.8, 12, 6.6, 8]);
  like(all[0], { type: "TRADE", side: "SELL", transactionHash: hex32, title: market.question });
  const by = await core.getActivity({
    user: buyer.address, sortBy: "TOKENS", sortDirection: "ASC", side: "BUY",
  });
  deepStrictEqual(by.map((x) => x.size), [20, 24]);
  const past = await core.getActivity({ user: buyer.address, end: 1 });
  deepStrictEqual(past, []);
}

async function markets({ market }) {
  const page = await noted("markets.listMarkets", { limit: 20, closed: false });
  ok(page.length > 0, "no market is open");
  const { length } = await gamma.markets.listMarkets({ limit: 1, offset: 1 });
  strictEqual(length, 1);
  const [mine] = await gamma.markets.listMarkets({ condition_ids: [market.condition] });
  deepStrictEqual([mine.conditionId, mine.question], [market.condition, market.question]);
  deepStrictEqual(JSON.parse(mine.clobTokenIds), market.tokens);
}

async function events() {
  const [event] = catalog.filter((e) => /^[0-9]+$/.test(e.id));
  const byId = await noted("events.getEventById", Number(event.id));
  deepStrictEqual([byId.id, byId.slug, byId.title], [event.id, event.slug, event.title]);
  strictEqual(byId.markets.length, event.markets.length);
  deepStrictEqual(await noted("events.getEventBySlug", event.slug), byId);
  const tags = await noted("events.getEventTags", Number(event.id));
  deepStrictEqual(tags.map((x) => x.id), (event.tags ?? []).map((x) => String(x.id)));
  await rejects(gamma.events.getEventBySlug("no-such-event"), (err) => {
    deepStrictEqual([err.status, err.body.type], [404, "not found error"]);
    return true;
  });
}

async function series() {
  const [sample] = catalog.flatMap((e) => e.series ?? []);
  const all = await noted("series.listSeries", { limit: 5 });
  if (!sample) {
    deepStrictEqual(all, []);
    called.add("series.getSeriesById");
    return skip("one series", "the catalog has none");
  }
  ok(all.length > 0, "the catalog has series");
  const [one] = await noted("series.getSeriesById", Number(sample.id));
  deepStrictEqual([one.id, one.slug], [String(sample.id), sample.slug]);
  return undefined;
}

async function sums({ market }) {
  const interest = await noted("misc.getOpenInterest", { market: [market.condition] });
  deepStrictEqual(interest, [{ market: market.condition, value: 100 }]);
  const event = catalog.find((e) => e.markets?.some((m) => m.conditionId === market.condition));
  const [{ total }] = await noted("misc.getLiveVolume", { id: Number(event.id) });
  strictEqual(total, 37.4);
}

// absent: what there is none of comes in the shapes that the schemas want.
async function absent({ buyer }) {
  deepStrictEqual(await noted("sports.listTeams", { limit: 5 }), []);
  deepStrictEqual(await noted("sports.getSportsMetadata"), []);
  const parent = { parent_entity_type: "Event", parent_entity_id: 1 };
  deepStrictEqual(await noted("comments.listComments", parent), []);
  deepStrictEqual(await noted("comments.getCommentById", 1), []);
  deepStrictEqual(await noted("comments.getCommentsByUserAddress", buyer.address), []);
}

async function search() {
  const [event] = catalog;
  const q = event.title;
  const found = await noted("search.publicSearch", { q, limit_per_type: 10, search_tags: true });
  ok(found.events.some((e) => e.title === q), `"${q}" does not find itself`);
  strictEqual(typeof found.pagination.hasMore, "boolean");
  ok(found.pagination.totalResults >= found.events.length, JSON.stringify(found.pagination));
}

function wallet() {
  const key = generatePrivateKey();
  return { key, address: privateKeyToAccount(key).address };
}

const t = await need("a history", () => play(wallet));
strictEqual(await client.health(), "OK");
await step("positions", () => positions(t));
await step("value and markets traded", () => worth(t));
await step("holders", () => holders(t));
await step("trades", () => trades(t));
await step("activity", () => activity(t));
await step("catalog: markets", () => markets(t));
await step("catalog: events and their tags", events);
await step("catalog: series", series);
await step("catalog: search", search);
await step("sums over a market", () => sums(t));
await step("what there is none of", () => absent(t));
await step("every method was called", () => {
  const names = Object.entries(modules)
    .flatMap(([name, module]) => methods(module).map((method) => `${name}.${method}`));
  covered(names.sort(), called, {});
});
await settle();
