// The published client, unmodified, trading on a running node.
//
//   node e2e.mjs PUBLIC_URL ADMIN_URL TOKEN_FILE CATALOG_FILE
//
// TOKEN_FILE holds the bearer token of the admin listener, which funds the wallets; CATALOG_FILE is
// the catalog that the node was started with (JSON lines or one array, gzipped or not): the
// markets to trade are picked from it.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import { ClobClient, OrderType, Side } from "@polymarket/clob-client-v2";

const chain = 80002;
const bookKeys = [
  "market", "asset_id", "timestamp", "hash", "bids", "asks",
  "min_order_size", "tick_size", "neg_risk", "last_trade_price",
];

const [publicURL, adminURL, tokenFile, catalogFile] = process.argv.slice(2);
if (!catalogFile) {
  console.error("usage: node e2e.mjs PUBLIC_URL ADMIN_URL TOKEN_FILE CATALOG_FILE");
  process.exit(2);
}

let passed = 0;
const failures = [];

// check runs one named step. Later steps need the earlier ones, so the first failure ends the run.
async function check(name, body) {
  try {
    await body();
    passed++;
  } catch (err) {
    failures.push(name);
    console.error(`FAILED ${name}\n  ${err.message.split("\n").join("\n  ")}`);
    throw err;
  }
}

function events(path) {
  let bytes = readFileSync(path);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = gunzipSync(bytes);
  const text = bytes.toString("utf8").trim();
  if (text.startsWith("[")) return JSON.parse(text);
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

// tradable are the catalog's markets that an order book should exist for.
function tradable() {
  const markets = events(catalogFile).flatMap((event) => event.markets ?? []);
  return markets.filter((m) => !m.closed && !m.archived && m.enableOrderBook !== false)
    .filter((m) => m.acceptingOrders !== false && m.clobTokenIds)
    .map(({ conditionId, clobTokenIds, negRisk }) => (
      { condition: conditionId, tokens: JSON.parse(clobTokenIds), negRisk: !!negRisk }))
    .filter((m) => m.tokens.length === 2);
}

// pick is the first market of that kind with an empty book in steps of a cent.
async function pick(reader, markets, negRisk) {
  for (const market of markets.filter((m) => m.negRisk === negRisk).slice(0, 50)) {
    const book = await reader.getOrderBook(market.tokens[0]);
    const empty = book.bids?.length === 0 && book.asks?.length === 0;
    if (empty && book.tick_size === "0.01") return market;
  }
  return undefined;
}

async function fund(wallet, amount, token) {
  const response = await fetch(`${adminURL}/admin/fund`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ wallet: wallet.address, amount, token }),
  });
  ok(response.ok, `fund ${wallet.address} ${amount}: ${response.status} ${await response.text()}`);
}

function level(price, size) {
  return { price, size };
}

// trader derives the wallet's key and returns the client that uses it.
async function trader(signer) {
  const first = new ClobClient({ host: publicURL, chain, signer });
  const creds = await first.createOrDeriveApiKey();
  ok(/^[0-9a-f-]{36}$/.test(creds.key), `API key ${creds.key} is not a UUID`);
  ok(/^[0-9a-f]{64}$/.test(creds.passphrase), "the passphrase is not 64 hex digits");
  deepStrictEqual(await first.deriveApiKey(), creds, "deriving again gives another trio");
  return new ClobClient({ host: publicURL, chain, signer, creds });
}

const reader = new ClobClient({ host: publicURL, chain });

// place posts a GTC order and insists that it was taken.
async function place(client, tokenID, side, price, size) {
  const result = await client.createAndPostOrder({ tokenID, side, price, size }, {}, OrderType.GTC);
  strictEqual(result.error, undefined, `place ${side} ${size} @ ${price}: ${result.error}`);
  strictEqual(result.success, true, `place: ${JSON.stringify(result)}`);
  strictEqual(result.errorMsg, "");
  ok(/^0x[0-9a-f]{64}$/.test(result.orderID), `orderID ${result.orderID} is not an order hash`);
  return result;
}

// bookOf reads the book and checks what holds for every one: its keys, and its hash, which the
// client computes from what it received.
async function bookOf(token) {
  const book = await reader.getOrderBook(token);
  deepStrictEqual(Object.keys(book), bookKeys);
  const served = book.hash;
  strictEqual(await reader.getOrderBookHash({ ...book }), served, "the book's hash differs");
  return book;
}

async function serviceAnswers() {
  strictEqual(await reader.getOk(), "OK");
  strictEqual(await reader.getVersion(), 2);
  const time = await reader.getServerTime();
  ok(Number.isInteger(time), `server time ${JSON.stringify(time)} is not a number of seconds`);
  ok(Math.abs(time - Date.now() / 1000) < 5, `server time ${time} is not now`);
}

async function marketAnswers(market) {
  const token = market.tokens[0];
  strictEqual(await reader.getTickSize(token), "0.01");
  strictEqual(await reader.getNegRisk(token), market.negRisk);
  const rate = await reader.getFeeRateBps(token);
  ok(Number.isInteger(rate) && rate >= 0, `fee rate ${JSON.stringify(rate)}`);
  const book = await bookOf(token);
  strictEqual(book.market, market.condition);
  strictEqual(book.asset_id, token);
  const unknown = await reader.getOrderBook("12345");
  strictEqual(unknown.status, 404, "the book of an unknown token is not 404");
}

async function strangerIsRefused(client, token) {
  const order = { tokenID: token, side: Side.BUY, price: 0.4, size: 20 };
  const result = await client.createAndPostOrder(order);
  strictEqual(result.status, 400, `an order without money: ${JSON.stringify(result)}`);
  ok(result.error.includes("not enough balance"), `unexpected text: ${result.error}`);
}

async function forgedIsRefused(client, token) {
  const order = await client.createOrder({ tokenID: token, side: Side.BUY, price: 0.4, size: 20 });
  const result = await client.postOrder({ ...order, makerAmount: "7999999" });
  ok(result.error && result.status === 400, `a changed order: ${JSON.stringify(result)}`);
  const creds = { ...client.creds, secret: Buffer.alloc(32, 7).toString("base64") };
  const thief = new ClobClient({ host: publicURL, chain, signer: client.signer, creds });
  const denied = await thief.getOrder(`0x${"00".repeat(32)}`);
  strictEqual(denied.status, 401, `a wrong secret: ${JSON.stringify(denied)}`);
}

async function rests(maker, token) {
  const order = await place(maker, token, Side.BUY, 0.4, 20);
  strictEqual(order.status, "live");
  const lower = await place(maker, token, Side.BUY, 0.38, 10);
  const book = await bookOf(token);
  deepStrictEqual(book.bids, [level("0.38", "10"), level("0.4", "20")], "bids, best last");
  deepStrictEqual(book.asks, []);
  const record = await maker.getOrder(order.orderID);
  strictEqual(record.id, order.orderID);
  strictEqual(record.status, "LIVE");
  strictEqual(record.original_size, "20");
  strictEqual(record.size_matched, "0");
  strictEqual(record.price, "0.4");
  strictEqual(record.side, "BUY");
  strictEqual(record.asset_id, token);
  strictEqual(record.owner, maker.creds.key);
  return { order, lower };
}

async function crosses(maker, taker, token, resting) {
  const result = await place(taker, token, Side.SELL, 0.4, 8);
  strictEqual(result.status, "matched");
  strictEqual(result.makingAmount, "8");
  strictEqual(result.takingAmount, "3.2");
  ok(result.transactionsHashes?.length === 1, `settlement hashes: ${JSON.stringify(result)}`);
  const made = await maker.getOrder(resting.orderID);
  strictEqual(made.size_matched, "8");
  strictEqual(made.status, "LIVE");
  const taken = await taker.getOrder(result.orderID);
  strictEqual(taken.size_matched, "8");
  strictEqual(taken.status, "MATCHED");
  const book = await bookOf(token);
  deepStrictEqual(book.bids, [level("0.38", "10"), level("0.4", "12")]);
  strictEqual(book.last_trade_price, "0.4");
}

async function quotes(taker, token, other) {
  await place(taker, token, Side.SELL, 0.5, 10);
  deepStrictEqual((await bookOf(token)).asks, [level("0.5", "10")]);
  deepStrictEqual(await reader.getMidpoint(token), { mid: "0.45" });
  deepStrictEqual(await reader.getPrice(token, Side.BUY), { price: "0.5" });
  deepStrictEqual(await reader.getPrice(token, Side.SELL), { price: "0.4" });
  const mirror = await bookOf(other);
  deepStrictEqual(mirror.bids, [level("0.5", "10")], "the other outcome mirrors the book");
  deepStrictEqual(mirror.asks, [level("0.62", "10"), level("0.6", "12")]);
}

async function cancels(maker, taker, token, resting) {
  const foreign = await taker.cancelOrder({ orderID: resting.orderID });
  deepStrictEqual(foreign.canceled, [], "somebody else's order was cancelled");
  const result = await maker.cancelOrder({ orderID: resting.orderID });
  deepStrictEqual(result, { canceled: [resting.orderID], not_canceled: {} });
  const record = await maker.getOrder(resting.orderID);
  strictEqual(record.status, "CANCELED");
  strictEqual(record.size_matched, "8");
  deepStrictEqual((await bookOf(token)).bids, [level("0.38", "10")]);
  const again = await maker.cancelOrder({ orderID: resting.orderID });
  deepStrictEqual(again.canceled, []);
  ok(again.not_canceled[resting.orderID]?.includes("already canceled or matched"),
    `the second cancel: ${JSON.stringify(again)}`);
}

// mints: a BUY of one outcome meets a BUY of the other; nobody needs tokens for it.
async function mints(maker, taker, token, other, lower) {
  const result = await place(taker, other, Side.BUY, 0.62, 10);
  strictEqual(result.status, "matched");
  strictEqual(result.makingAmount, "6.2");
  strictEqual(result.takingAmount, "10");
  strictEqual((await maker.getOrder(lower.orderID)).status, "MATCHED");
  deepStrictEqual((await bookOf(token)).bids, []);
}

async function tradesNegRisk(maker, market) {
  const [token] = market.tokens;
  const order = await place(maker, token, Side.BUY, 0.3, 5);
  deepStrictEqual((await bookOf(token)).bids, [level("0.3", "5")]);
  const result = await maker.cancelOrder({ orderID: order.orderID });
  deepStrictEqual(result.canceled, [order.orderID]);
}

async function main() {
  const markets = tradable();
  const market = await pick(reader, markets, false);
  ok(market, `no plain market with an empty book among the ${markets.length} of ${catalogFile}`);
  const [token, other] = market.tokens;
  const [makerWallet, takerWallet] = [Wallet.createRandom(), Wallet.createRandom()];
  let maker, taker, resting;
  await check("service answers", serviceAnswers);
  await check("market answers", () => marketAnswers(market));
  await check("key of the maker", async () => { maker = await trader(makerWallet); });
  await check("key of the taker", async () => { taker = await trader(takerWallet); });
  await check("a stranger is refused", () => strangerIsRefused(maker, token));
  await check("fund the maker", () => fund(makerWallet, "1000"));
  await check("fund the taker", () => fund(takerWallet, "1000"));
  await check("fund the taker with tokens", () => fund(takerWallet, "100", token));
  await check("forgeries are refused", () => forgedIsRefused(maker, token));
  await check("an order rests", async () => { resting = await rests(maker, token); });
  await check("another crosses it", () => crosses(maker, taker, token, resting.order));
  await check("quotes", () => quotes(taker, token, other));
  await check("cancel", () => cancels(maker, taker, token, resting.order));
  await check("mint", () => mints(maker, taker, token, other, resting.lower));
  const grouped = await pick(reader, markets, true);
  if (grouped) await check("a neg-risk market", () => tradesNegRisk(maker, grouped));
  else console.log("SKIPPED a neg-risk market: the catalog has none with an empty book");
}

await main().catch((err) => {
  if (failures.length > 0) return;
  failures.push("setup");
  console.error(`FAILED setup\n  ${err.message}`);
});
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length > 0 ? 1 : 0);
