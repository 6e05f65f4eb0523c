// The published keeper of order books against a running node, while two traders place, meet and
// cancel orders. The address of its stream is a constant of the package: in this process the
// library beneath opens the node's instead, and the package's files stay as they are. Arguments:
// see ../house.mjs.
import { createRequire } from "node:module";
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import { ClobClient, Side } from "@polymarket/clob-client-v2";
import {
  covered, decimal, digits, hex32, like, methods, need, pick, publicURL, recent, settle, step,
  until, watched,
} from "../house.mjs";
import { bookOf, cancel, place, stir, trader } from "../flow.mjs";

const home = createRequire(import.meta.url)
  .resolve("@nevuamarkets/poly-websockets"); // what it requires is looked for from there
const require = createRequire(home);
const theirs = "wss://ws-subscriptions-clob.polymarket.com/ws/market";
const ours = `${publicURL.replace(/^http/, "ws")}/ws/market`;
const library = require.cache[require.resolve("ws")] ?? (require("ws"),
  require.cache[require.resolve("ws")]);
let sockets = 0;
library.exports = class extends library.exports {
  constructor(url, ...more) {
    strictEqual(url, theirs, "the client opens another address than it did");
    sockets++;
    super(ours, ...more);
  }
};
const { WSSubscriptionManager } = require(home);
const { logger } = require("./logger.js");

const hash = /^[0-9a-f]{40}$/;
const level = { price: decimal, size: decimal };
const shapes = { // what the client's types promise
  book: { market: hex32, asset_id: digits, timestamp: digits, hash, bids: [level], asks: [level] },
  last_trade_price: {
    asset_id: digits, fee_rate_bps: digits, market: hex32, price: decimal, side: /^(BUY|SELL)$/,
    size: decimal, timestamp: digits, transaction_hash: hex32,
  },
  price_change: {
    market: hex32, timestamp: digits, price_changes: [{
      asset_id: digits, price: decimal, size: decimal, side: /^(BUY|SELL)$/, hash,
      "best_bid?": decimal, "best_ask?": decimal,
    }],
  },
  price_update: {
    asset_id: digits, timestamp: digits, price: decimal, midpoint: decimal, spread: decimal,
    book: { bids: [level], asks: [level] },
  },
};

const called = new Set();
const errors = [];
logger.on("data", (entry) => {
  if (/warn|error/.test(entry.level)) errors.push(JSON.stringify(entry));
});

// keeper is a client of its own, with all that it was told.
function keeper() {
  const k = { opened: 0, closed: [], told: [], last: {} };
  const hear = async (events) => {
    for (const e of events) {
      k.told.push(e);
      like(e, shapes[e.event_type], e.event_type);
      recent(Number(e.timestamp) / 1000, e.event_type);
      if (e.event_type === "last_trade_price") k.last[e.asset_id] = e;
    }
  };
  k.plain = new WSSubscriptionManager({
    onBook: hear, onLastTradePrice: hear, onTickSizeChange: hear, onPriceChange: hear,
    onPolymarketPriceUpdate: hear,
    onError: async (err) => { errors.push(String(err)); },
    onWSOpen: async () => { k.opened++; },
    onWSClose: async (_, code, reason) => { k.closed.push(`${code} ${reason}`); },
  });
  k.client = watched(k.plain, called);
  k.count = (type, token) => k.told.filter((e) => e.event_type === type &&
    (e.asset_id === token || e.price_changes?.some((c) => c.asset_id === token))).length;
  return k;
}

// agrees waits until the client's own book of a token is the node's. No order is on its way, so
// the node's book does not change.
async function agrees(k, token) {
  const { bids, asks, last_trade_price: last } = await bookOf(token);
  let own;
  await until("the client's own book", () => {
    own = k.plain.bookCache.getBookEntry(token);
    return own && JSON.stringify([own.bids, own.asks]) === JSON.stringify([bids, asks]);
  }, 30).catch((err) => {
    throw new Error(`${err.message}: it is ${JSON.stringify(own)}, not ${
      JSON.stringify({ bids, asks })}`);
  });
  if (k.last[token]) strictEqual(k.last[token].price, last, "the last trade's price");
}

async function opens({ all, token, other, second }) {
  await all.client.addSubscriptions([token, other]);
  await until("the first books", () => all.count("book", token) && all.count("book", other), 30);
  deepStrictEqual(all.client.getAssetIds(), [token, other]);
  await all.client.addSubscriptions([second.tokens[0]]); // while the stream is open
  await agrees(all, second.tokens[0]);
  deepStrictEqual([all.opened, sockets], [1, 1]);
}

async function follows(t) {
  const { all, token, other, second } = t;
  const one = keeper();
  await one.client.addSubscriptions([other]); // of two that change together
  await agrees(one, other);
  const quiet = [[all, token], [all, other], [all, second.tokens[0]], [one, other]];
  for (let i = 0; i < 8; i++) {
    await Promise.all([stir(t, token, 3), stir(t, other, 2), stir(t, second.tokens[0], 3)]);
    for (const [k, name] of quiet) await agrees(k, name);
  }
  for (const name of [token, other]) {
    for (const [type, least] of [["price_change", 20], ["last_trade_price", 40]]) {
      const n = all.count(type, name);
      ok(n >= least, `${n} messages ${type} of the load`);
    }
    strictEqual(all.count("book", name), 1, "a book that nobody asked for");
  }
  deepStrictEqual([one.count("price_change", token), one.count("last_trade_price", token)], [0, 0]);
  strictEqual(one.count("price_change", other), all.count("price_change", other));
  await one.client.clearState();
}

// prices: what the client makes of books, which needs both sides.
async function prices(t) {
  const { all, token, maker } = t;
  await Promise.all([t.maker, t.taker].map((who) => who.client.cancelAll()));
  await agrees(all, token);
  const placed = [await place(t, maker, token, [true, 0.4, 10])];
  await agrees(all, token);
  strictEqual(all.told.at(-1).price_changes[0].best_ask, undefined, "of a side without orders");
  placed.push(await place(t, maker, token, [false, 0.44, 10]));
  const told = await until("the client's price", () => all.told.find((e) =>
    e.event_type === "price_update" && e.asset_id === token && e.price === "0.42" &&
    e.spread === "0.04"), 30);
  deepStrictEqual(told.book, { bids: [{ price: "0.4", size: "10" }],
    asks: [{ price: "0.44", size: "10" }] });
  for (const { orderID } of placed) await cancel(maker, orderID);
  await agrees(all, token);
}

// comesAndGoes: who leaves a token hears nothing of it, and who comes again gets its book.
async function comesAndGoes(t) {
  const { all, token, other, second } = t;
  await all.client.removeSubscriptions([token]);
  await until("the token to be left", () =>
    all.client.getStatistics().pendingUnsubscribeCount === 0, 30);
  const before = all.count("price_change", token);
  await stir(t, token, 1);
  await agrees(all, other);
  strictEqual(all.count("price_change", token), before);
  await all.client.addSubscriptions([token]);
  for (const name of [token, other, second.tokens[0]]) await agrees(all, name);
  strictEqual(all.count("book", token), 2);
  deepStrictEqual(all.client.getStatistics(), {
    openWebSockets: 1, assetIds: 3, pendingSubscribeCount: 0, pendingUnsubscribeCount: 0,
    pendingAssetIds: 0,
  });
}

// again: a client that starts anew has what the node has.
async function again(t) {
  const { all, token } = t;
  await all.client.clearState();
  await stir(t, token, 1);
  await all.client.addSubscriptions([token]);
  await agrees(all, token);
  await stir(t, token, 1);
  await agrees(all, token);
  await all.client.clearState();
}

const market = await pick(false);
const second = await pick(false);
ok(market && second, "no two plain markets with an empty book in the catalog");
const [token, other] = market.tokens;
const t = { kit: { ClobClient, Wallet, Side }, token, other, second, all: keeper() };
await need("traders", async () => {
  t.maker = await trader(t.kit, [token, other, second.tokens[0]]);
  t.taker = await trader(t.kit, [token, other, second.tokens[0]]);
});
await need("the stream opens", () => opens(t));
await step("its books are the node's", () => follows(t));
await step("its prices", () => prices(t));
await step("tokens come and go", () => comesAndGoes(t));
await step("it starts anew", () => again(t));
await step("no error and no warning", () => {
  deepStrictEqual(errors, []);
  deepStrictEqual(t.all.closed, []);
});
const inner = `connect setupEventHandlers actOnSubscribedEvents ensureIntervalsRunning
  scheduleReconnectionCheck safeCallErrorHandler flushPendingSubscriptions closeWebSocket
  checkReconnection handleBookEvents handleTickEvents handlePriceChangeEvents
  handleLastTradeEvents`.trim().split(/\s+/);
await step("every method was called", () => covered(methods(t.all.plain), called,
  Object.fromEntries(inner.map((name) => [name, "internal"]))));
await settle();
