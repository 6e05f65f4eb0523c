// Both streams with nothing but a WebSocket, as the venues' documentation shows them: subscribe or
// log in with the first text, send PING every 10 seconds, read arrays and objects. Then what only
// this node has: going on after a break, and heartbeats. Arguments: see ../house.mjs.
import { createHmac } from "node:crypto";
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import { ClobClient, Side } from "@polymarket/clob-client-v2";
import { WebSocket } from "ws";
import {
  aside, address, decimal, digits, hex32, like, need, pick, publicURL, recent, settle, step,
  until, uuid,
} from "../house.mjs";
import { bookOf, cancel, place, trader } from "../flow.mjs";

const feed = publicURL.replace(/^http/, "ws");
const hash = /^[0-9a-f]{40}$/;
const side = /^(BUY|SELL)$/;
const entry = { asset_id: digits, price: decimal, size: decimal, side, hash };
const shapes = {
  price_change: { market: hex32, price_changes: [entry], timestamp: digits },
  last_trade_price: {
    asset_id: digits, market: hex32, price: decimal, side, size: decimal, fee_rate_bps: digits,
    timestamp: digits, transaction_hash: hex32,
  },
  order: {
    type: /^(PLACEMENT|UPDATE|CANCELLATION)$/, id: hex32, owner: uuid, order_owner: uuid,
    market: hex32, asset_id: digits, side, original_size: decimal, size_matched: decimal,
    price: decimal, outcome: String, status: /^(LIVE|MATCHED|UNMATCHED|CANCELED)$/,
    order_type: /^(GTC|GTD|FOK|FAK)$/, expiration: digits, created_at: digits,
    maker_address: address, timestamp: digits, part: Number, parts: Number,
  },
  trade: {
    type: "TRADE", id: uuid, taker_order_id: hex32, market: hex32, asset_id: digits, side,
    size: decimal, price: decimal, fee_rate_bps: digits, status: /^(MATCHED|CONFIRMED)$/,
    match_time: digits, last_update: digits, outcome: String, owner: uuid, trade_owner: uuid,
    maker_address: address, transaction_hash: hex32, bucket_index: 0,
    maker_orders: [{ order_id: hex32, matched_amount: decimal, price: decimal }],
    trader_side: /^(TAKER|MAKER)$/, timestamp: digits, part: Number, parts: Number,
  },
};
const tail = ["stream_id", "sequence", "server_ts_ms", "seq"];

// listen opens a channel, sends the first text, and keeps what comes. Each message must end with
// the tail and be the next of its connection.
async function listen(channel, first) {
  const socket = new WebSocket(`${feed}${channel}`);
  const l = { socket, frames: [], told: [], pings: 0, pongs: 0, closed: undefined, wrong: [] };
  const hear = (m) => {
    l.told.push(m);
    deepStrictEqual(Object.keys(m).slice(-4), tail);
    like(m, { stream_id: l.told[0].stream_id, sequence: l.told.length, seq: Number });
    recent(m.server_ts_ms / 1000, "server time");
    if (shapes[m.event_type]) like(m, shapes[m.event_type], m.event_type);
  };
  socket.on("message", (data) => {
    const text = data.toString();
    if (text === "PONG") return l.pongs++;
    l.frames.push(text);
    if (text === "NO NEW ASSETS") return undefined;
    try {
      [JSON.parse(text)].flat().forEach(hear);
    } catch (err) {
      l.wrong.push(`${err.message}: ${text}`);
    }
    return undefined;
  });
  const ended = new Promise((resolve) => {
    socket.on("close", (code, why) => resolve(l.closed = `${code} ${why}`));
  });
  l.say = (what) => socket.send(typeof what === "string" ? what : JSON.stringify(what));
  l.end = async () => {
    socket.close();
    await ended;
    deepStrictEqual(l.wrong, []);
  };
  l.ended = ended;
  await new Promise((resolve, reject) => {
    socket.on("open", resolve);
    socket.on("error", reject);
  });
  const ping = () => {
    if (socket.readyState !== WebSocket.OPEN) return;
    l.pings++;
    l.say("PING");
  };
  l.say(first);
  ping();
  l.timer = setInterval(ping, 10_000);
  socket.on("close", () => clearInterval(l.timer));
  return l;
}

// body is what a message says to all who get it.
function body({ stream_id: _, sequence: __, server_ts_ms: ___, ...rest }) { return rest; }

// next waits for message i of those that fit.
function next(l, what, fits, i = 0) {
  return until(what, () => l.told.filter(fits)[i], 30).catch((err) => {
    throw new Error(`${err.message}; told ${JSON.stringify(l.told.slice(-3))} ${l.wrong}`);
  });
}

// inOrder: everything that was said so far has been answered when a PONG comes.
async function inOrder(l) {
  const pongs = l.pongs;
  l.pings++;
  l.say("PING");
  await until("a PONG", () => l.pongs > pongs, 30);
}

const isChange = (m) => m.event_type === "price_change";

// books: the first frame is an array of books, those that the node answers for both tokens.
async function books(t) {
  const { market: { condition }, token, other } = t;
  await place(t, t.maker, token, [true, 0.4, 20]);
  t.stream = await listen("/ws/market", { assets_ids: [token, other], type: "market" });
  await next(t.stream, "the second book", (m) => m.event_type === "book", 1);
  const array = JSON.parse(t.stream.frames[0]);
  strictEqual(array.length, 2, t.stream.frames[0]);
  for (const [i, name] of [token, other].entries()) {
    const { event_type: type, seq, ...rest } = array[i];
    deepStrictEqual([type, body(rest)], ["book", await bookOf(name)]);
    ok(seq > 0);
  }
  strictEqual(array[0].market, condition);
  await until("the PONG", () => t.stream.pongs === 1, 30);
}

// changes: one message for both tokens, with what /book then has; a trade comes before the change.
async function changes(t) {
  const { stream, maker, taker, token, other } = t;
  const ask = await place(t, maker, token, [false, 0.5, 10]);
  const told = (await next(stream, "a change", isChange)).price_changes;
  for (const [name, price, kind] of [[token, "0.5", "SELL"], [other, "0.5", "BUY"]]) {
    const one = told.find((c) => c.asset_id === name);
    const bests = name === token ? ["0.4", "0.5"] : ["0.5", "0.6"];
    like(one, { price, size: "10", side: kind, best_bid: bests[0], best_ask: bests[1] });
    strictEqual(one.hash, (await bookOf(name)).hash);
  }
  await place(t, taker, token, [true, 0.5, 6]);
  const after = await next(stream, "a change by a trade", isChange, 1);
  const trades = stream.told.filter((m) => m.event_type === "last_trade_price");
  deepStrictEqual(trades.map((m) => [m.asset_id, m.side, m.price, m.size]),
    [[token, "BUY", "0.5", "6"], [other, "SELL", "0.5", "6"]]);
  ok(trades.every((m) => m.sequence < after.sequence && m.seq <= after.seq));
  await cancel(maker, ask.orderID);
  const gone = await next(stream, "a change by a cancel", isChange, 2);
  const mine = gone.price_changes.find((c) => c.asset_id === token);
  deepStrictEqual([mine.size, mine.best_bid, "best_ask" in mine], ["0", "0.4", false]);
}

// asks: what is asked for again and again, and what is wrong.
async function asks({ stream, token, other, market }) {
  const frames = stream.frames.length;
  stream.say({ assets_ids: [token], operation: "subscribe" });
  await inOrder(stream);
  deepStrictEqual(stream.frames.slice(frames), ["NO NEW ASSETS"]);
  stream.say({ assets_ids: [token, other], type: "MARKET" }); // no operation: not a word
  stream.say({ assets_ids: [other], operation: "unsubscribe" });
  await inOrder(stream);
  strictEqual(stream.frames.length, frames + 1);
  stream.say({ assets_ids: [other], operation: "subscribe" });
  await inOrder(stream);
  like(JSON.parse(stream.frames.at(-1)), [{ event_type: "book", asset_id: other }]);
  stream.say({ assets_ids: ["12345"], operation: "subscribe" });
  await inOrder(stream);
  like(JSON.parse(stream.frames.at(-1)), { event_type: "error", code: "unknown_asset" });
  strictEqual(stream.told.filter((m) => m.market && m.market !== market.condition).length, 0);
}

// goesOn: who was away gets what came in between, or fresh books if the node has it no longer.
async function goesOn(t) {
  const { maker, token, other } = t;
  const { seq } = t.stream.told.reduce((a, b) => (a.seq > b.seq ? a : b));
  await t.stream.end();
  const bid = await place(t, maker, token, [true, 0.39, 5]);
  const wish = { type: "market", assets_ids: [token, other] };
  t.stream = await listen("/ws/market", { ...wish, resume: { seq } });
  await place(t, maker, token, [true, 0.38, 6]);
  const has = (price, size) => (m) => isChange(m) &&
    m.price_changes.some((c) => c.asset_id === token && c.price === price && c.size === size);
  await next(t.stream, "the newest change", has("0.38", "6"));
  await next(t.stream, "a change of the time away", has("0.39", "5"));
  await cancel(maker, bid.orderID); // at once, a node that lags might not tell of it at all
  await next(t.stream, "the change after it", has("0.39", "0"));
  strictEqual(t.stream.told.filter((m) => m.event_type === "book").length, 0);
  const anew = await listen("/ws", { ...wish, resume: { seq: 1 } });
  await next(anew, "fresh books", (m) => m.event_type === "book", 1);
  strictEqual(anew.told[0].event_type, "resync");
  await anew.end();
}

// login is the first text to the user channel: with the secret, as the venues' clients send it, or
// with an HMAC of the time, which shows nobody the secret.
function login({ creds: { key, secret, passphrase } }, signs, more = {}) {
  const auth = { apiKey: key, passphrase };
  if (signs) {
    auth.timestamp = String(Math.floor(Date.now() / 1000));
    auth.signature = createHmac("sha256", Buffer.from(secret, "base64url"))
      .update(`${auth.timestamp}GET/ws/user`).digest("base64").replace(/\+/g, "-")
      .replace(/\//g, "_");
  } else {
    auth.secret = secret;
  }
  return { type: "user", auth, ...more };
}

const story = (l) => l.told.filter((m) => ["order", "trade"].includes(m.event_type));
const brief = (m) => [m.event_type === "order" ? m.type : m.event_type, m.status].join(" ");

// users: placed, met in part, cancelled; the taker's order is met at once.
async function users(t) {
  const { maker, taker, market, token } = t;
  t.makes = await listen("/ws/user", login(maker, false, { markets: [market.condition] }));
  t.takes = await listen("/ws/user", login(taker, true, { markets: [], heartbeat: true }));
  for (const l of [t.makes, t.takes]) await inOrder(l);
  const ask = await place(t, maker, token, [false, 0.5, 10]);
  const met = await place(t, taker, token, [true, 0.5, 6]);
  await cancel(maker, ask.orderID);
  await next(t.makes, "the cancellation", (m) => m.type === "CANCELLATION");
  await next(t.takes, "the update", (m) => m.type === "UPDATE");
  deepStrictEqual(story(t.makes).map(brief), ["PLACEMENT LIVE", "trade MATCHED", "trade CONFIRMED",
    "UPDATE LIVE", "CANCELLATION CANCELED"]);
  deepStrictEqual(story(t.takes).map(brief),
    ["PLACEMENT LIVE", "trade MATCHED", "trade CONFIRMED", "UPDATE MATCHED"]);
  const [placed, trade, , update, gone] = story(t.makes);
  const order = { id: ask.orderID, owner: maker.creds.key, maker_address: maker.signer.address };
  like(placed, { ...order, original_size: "10", size_matched: "0", associate_trades: null });
  like(trade, { id: met.tradeIDs[0], taker_order_id: met.orderID, trader_side: "MAKER", size: "6",
    maker_orders: [{ order_id: ask.orderID, matched_amount: "6" }] });
  like(update, { ...order, size_matched: "6", associate_trades: met.tradeIDs });
  like(gone, { ...order, size_matched: "6", cancel_reason: "user" });
  for (const l of [t.makes, t.takes]) {
    const parts = new Map();
    for (const m of story(l)) {
      parts.set(m.seq, (parts.get(m.seq) ?? 0) + 1);
      strictEqual(m.part, parts.get(m.seq), "the parts of a Sequence");
    }
    ok(story(l).every((m) => m.parts === parts.get(m.seq)));
  }
}

// usersGoOn: whoever comes back behind a message gets the rest of the story, and nothing twice.
async function usersGoOn(t) {
  const { maker, market, token } = t;
  const heard = story(t.makes);
  await t.makes.end();
  const bid = await place(t, maker, token, [true, 0.37, 5]);
  await cancel(maker, bid.orderID);
  const wish = login(maker, false, { resume: { seq: 0 } });
  wish.auth.dialect = "SVC"; // other forms of the same: the witness knows them
  const dates = await listen("/ws/user", wish);
  await until("the same in the other dialect", () => dates.frames.length > heard.length, 30);
  ok(dates.frames.some((text) => /"match_time":"20[0-9-]+T[0-9:]+Z"/.test(text)));
  dates.wrong = [];
  await dates.end();
  for (let i = 0; i < heard.length; i++) {
    const { seq, part } = heard[i];
    const l = await listen("/ws/user", login(maker, i % 2 === 0,
      { markets: [market.condition], resume: { seq, part } }));
    await next(l, "what came meanwhile",
      (m) => m.id === bid.orderID && m.type === "CANCELLATION");
    deepStrictEqual(story(l).slice(0, -2).map(body), heard.slice(i + 1).map(body));
    deepStrictEqual(story(l).slice(-2).map(brief), ["PLACEMENT LIVE", "CANCELLATION CANCELED"]);
    await l.end();
  }
}

// beats: with heartbeats a second without one is no quiet second.
async function beats({ takes, stream }) {
  const beat = (m) => m.event_type === "heartbeat";
  stream.say({ type: "market", assets_ids: [], heartbeat: true });
  for (const l of [takes, stream]) {
    const n = l.told.filter(beat).length;
    const [first, third] = [await next(l, "a heartbeat", beat, n),
      await next(l, "a third one", beat, n + 2)];
    ok(third.server_ts_ms - first.server_ts_ms < 20_000 && third.seq >= first.seq && first.seq > 0,
      JSON.stringify([first, third]));
  }
}

async function strangers({ maker, taker }) {
  const { auth } = login(maker, false);
  for (const wrong of [{ secret: taker.creds.secret }, { passphrase: "x" }, { apiKey: "" }]) {
    const l = await listen("/ws/user", { type: "user", auth: { ...auth, ...wrong } });
    strictEqual(await l.ended, "1008 unauthorized");
    like(l.told, [{ event_type: "error", code: "unauthorized" }]);
    strictEqual(l.told.length, 1);
  }
}

// pinged: a stream on which nothing is said but PING stays open.
async function pinged({ token }) {
  const l = await listen("/ws/market", { type: "market", assets_ids: [token] });
  await until("three pings", () => l.pings === 3 && l.pongs === 3);
  strictEqual(l.closed, undefined);
  await l.end();
}

const market = await pick(false);
const quiet = await pick(false);
ok(market && quiet, "no two plain markets with an empty book in the catalog");
const [token, other] = market.tokens;
const t = { kit: { ClobClient, Wallet, Side }, market, token, other };
aside("PING every 10 seconds", () => pinged({ token: quiet.tokens[0] }));
await need("traders", async () => {
  t.maker = await trader(t.kit, [token]);
  t.taker = await trader(t.kit, []);
});
await need("books", () => books(t));
await step("changes", () => changes(t));
await step("asked again", () => asks(t));
await step("a market's stream goes on", () => goesOn(t));
await need("orders and trades", () => users(t));
await step("a user's stream goes on", () => usersGoOn(t));
await step("heartbeats", () => beats(t));
await step("strangers", () => strangers(t));
await step("the streams end", async () => {
  for (const l of [t.stream, t.takes]) await l.end();
});
await settle();
