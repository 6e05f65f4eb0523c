// A scripted client of the two dialects that no npm package speaks: KUEST_ headers with orders of
// deposit wallets, and SVC_ headers with signatures in hex. Arguments: see ../house.mjs.
import { createHmac } from "node:crypto";
import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert";
import { concat, getAddress, hashDomain, hashStruct, keccak256, stringToHex, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  decimal, digits, fund, hex32, like, link, need, pick, publicURL, settle, step, uuid,
} from "../house.mjs";

const chainId = 80002;
const zero = `0x${"00".repeat(32)}`;
const start = "MA==", end = "LTE=";
const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;

const exchange = {
  name: "CTF Exchange", version: "2", chainId,
  verifyingContract: "0xaCd95F4F42322c7bE215C170362EEc57Ef4E78c2",
};
const orderText = "Order(uint256 salt,address maker,address signer,uint256 tokenId," +
  "uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp," +
  "bytes32 metadata,bytes32 builder)";
const fields = (text) => text.slice(text.indexOf("(") + 1, -1).split(",")
  .map((field) => ({ type: field.split(" ")[0], name: field.split(" ")[1] }));
const Order = fields(orderText);
const TypedDataSign = fields("TypedDataSign(Order contents,string name,string version," +
  "uint256 chainId,address verifyingContract,bytes32 salt)");
const EIP712Domain = fields(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

// Client speaks one dialect for one owner, and trades for the wallet that is linked to it.
class Client {
  constructor(owner, prefix, trio) {
    this.owner = owner;
    this.prefix = prefix;
    this.trio = trio;
  }

  as(prefix) {
    return new Client(this.owner, prefix, this.trio);
  }

  // derive asks for the key, with the address as some of the clients write it: in lower case.
  async derive(method, path) {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = await this.owner.signTypedData({
      domain: { name: "ClobAuthDomain", version: "1", chainId },
      types: { ClobAuth: fields(
        "ClobAuth(address address,string timestamp,uint256 nonce,string message)") },
      primaryType: "ClobAuth",
      message: {
        address: this.owner.address, timestamp, nonce: 0n,
        message: "This message attests that I control the given wallet",
      },
    });
    const response = await fetch(publicURL + path, {
      method,
      headers: {
        [`${this.prefix}ADDRESS`]: this.owner.address.toLowerCase(),
        [`${this.prefix}SIGNATURE`]: signature, [`${this.prefix}TIMESTAMP`]: timestamp,
        [`${this.prefix}NONCE`]: "0", "X-Chain-Id": String(chainId),
      },
    });
    strictEqual(response.status, 200, await response.clone().text());
    return response.json();
  }

  // send signs a request over its path without the query, and answers with status and body.
  async send(method, target, body, more = {}) {
    const text = body === undefined ? "" : JSON.stringify(body);
    const timestamp = String(Math.floor(Date.now() / 1000));
    const { prefix, trio } = this;
    const hex = prefix === "SVC_";
    const mac = createHmac("sha256", Buffer.from(trio.secret, "base64url"))
      .update(timestamp + method + target.split("?")[0] + text).digest(hex ? "hex" : "base64");
    const response = await fetch(publicURL + target, {
      method,
      headers: {
        "content-type": "application/json", [`${prefix}ADDRESS`]: this.owner.address,
        [`${prefix}API_KEY`]: trio.apiKey, [`${prefix}PASSPHRASE`]: trio.passphrase,
        [`${prefix}TIMESTAMP`]: timestamp,
        [`${prefix}SIGNATURE`]: hex ? mac : mac.replace(/\+/g, "-").replace(/\//g, "_"),
        ...more,
      },
      body: text || undefined,
    });
    return { status: response.status, body: await response.json() };
  }

  // call is send for what must succeed.
  async call(method, target, body, more) {
    const answer = await this.send(method, target, body, more);
    strictEqual(answer.status, 200, `${method} ${target}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  // order signs for a wallet: the exchange's order inside the wallet's own typed data, with all
  // that is needed to check it behind the signature.
  async order(wallet, token, { side = "BUY", price, size, condition, timestamp }) {
    const collateral = BigInt(Math.round(price * size * 1e6)), shares = BigInt(size * 1e6);
    const [makerAmount, takerAmount] = side === "BUY" ? [collateral, shares] : [shares, collateral];
    const message = {
      salt: BigInt(Math.floor(Math.random() * 2 ** 52)), maker: wallet, signer: wallet,
      tokenId: BigInt(token), makerAmount, takerAmount, side: side === "BUY" ? 0 : 1,
      signatureType: 3, timestamp: BigInt(timestamp ?? Date.now()), metadata: zero, builder: zero,
    };
    const inner = await this.owner.signTypedData({
      domain: exchange, types: { TypedDataSign, Order }, primaryType: "TypedDataSign",
      message: {
        contents: message, name: "DepositWallet", version: "1", chainId: BigInt(chainId),
        verifyingContract: wallet, salt: zero,
      },
    });
    const domain = hashDomain({ domain: exchange, types: { EIP712Domain } });
    const contents = hashStruct({ data: message, primaryType: "Order", types: { Order } });
    const signature = concat([inner, domain, contents, stringToHex(orderText),
      toHex(orderText.length, { size: 2 })]);
    const text = (v) => (typeof v === "bigint" ? String(v) : v);
    const order = Object.fromEntries(Object.entries(message).map(([k, v]) => [k, text(v)]));
    Object.assign(order, { side, signature, expiration: "0" });
    if (condition) order.conditionId = condition;
    const id = keccak256(concat(["0x1901", domain, contents]));
    return { id, item: { order, owner: this.trio.apiKey, orderType: "GTC", postOnly: false } };
  }
}

const creds = { apiKey: uuid, secret: /^[A-Za-z0-9_-]{43}=$/, passphrase: /^[0-9a-f]{64}$/ };

async function trader() {
  const client = new Client(privateKeyToAccount(generatePrivateKey()), "KUEST_");
  client.trio = like(await client.derive("POST", "/auth/api-key"), creds);
  deepStrictEqual(await client.derive("GET", "/auth/derive-api-key"), client.trio);
  client.wallet = getAddress(privateKeyToAccount(generatePrivateKey()).address);
  return client;
}

async function keysOf({ maker }) {
  const { apiKey } = maker.trio;
  deepStrictEqual(await maker.call("GET", "/auth/api-keys"), [apiKey]);
  deepStrictEqual(await maker.as("SVC_").call("GET", "/auth/api-keys"), [apiKey]);
  const known = await maker.call("GET", "/auth/api-keys?metadata=true");
  like(known, [{ apiKey, nonce: 0, status: "active", revokedAt: null }]);
  const mode = "/auth/ban-status/closed-only";
  deepStrictEqual(await maker.call("GET", mode), { closedOnly: false, closed_only: false });
  deepStrictEqual(await maker.as("SVC_").call("GET", mode), { closedOnly: false });
  const bad = await maker.send("GET", mode, undefined, { KUEST_PASSPHRASE: "00".repeat(32) });
  strictEqual(bad.status, 401);
  strictEqual(bad.body.error, "Unauthorized/Invalid api key");
}

async function links({ maker, taker, token }) {
  await fund(maker.wallet, "1000");
  await fund(taker.wallet, "1000");
  await fund(taker.wallet, "200", token);
  const { item } = await maker.order(maker.wallet, token, { price: 0.4, size: 20 });
  const alone = await maker.send("POST", "/order", item);
  strictEqual(alone.status, 400);
  strictEqual(alone.body.error, "maker address not allowed, please use the deposit wallet flow");
  for (const who of [maker, taker]) await link(who.wallet, who.owner.address);
  const query = "/balance-allowance?asset_type=COLLATERAL&signature_type=";
  strictEqual((await maker.call("GET", `${query}3`)).balance, "1000000000");
  strictEqual((await maker.call("GET", `${query}0`)).balance, "0", "the owner's own account");
}

const resultKeys = ["success", "errorMsg", "orderID", "takingAmount", "makingAmount", "status"];

async function places(t) {
  const { maker, token, market } = t;
  const terms = { price: 0.4, size: 20, condition: market.condition };
  const { id, item } = await maker.order(maker.wallet, token, terms);
  const placed = await maker.call("POST", "/order", item);
  like(placed, { success: true, errorMsg: "", orderID: id, orderHash: id, status: "live" });
  const again = await maker.as("SVC_").call("POST", "/order", item);
  deepStrictEqual(Object.keys(again), resultKeys, "the keys of the SVC_ result");
  strictEqual(again.orderID, id);
  const elsewhere = { ...terms, condition: zero };
  const odd = await maker.order(maker.wallet, token, elsewhere);
  const refused = await maker.send("POST", "/order", odd.item);
  strictEqual(refused.body.error, "tokenId does not belong to conditionId");
  const forged = structuredClone(item);
  forged.order.makerAmount = "7999999";
  const denied = await maker.send("POST", "/order", forged);
  strictEqual(denied.status, 400);
  const old = await maker.order(maker.wallet, token, { ...terms, timestamp: Date.now() - 5000 });
  const late = await maker.send("POST", "/order", old.item, { KUEST_MAX_AGE_MS: "1000" });
  deepStrictEqual([late.status, late.body.code], [400, "stale_order"]);
  t.order = id;
}

const camel = [
  "id", "status", "market", "outcome", "owner", "price", "side", "assetId", "makerAddress",
  "originalSize", "sizeMatched", "type", "associateTrades", "createdAt",
];
const snake = {
  asset_id: digits, maker_address: String, original_size: decimal, size_matched: decimal,
  order_type: "GTC", associate_trades: [uuid], created_at: Number, expiration: "0",
};

async function records({ maker, taker, market, token, order }) {
  const path = `/data/order/${order}`;
  const own = like(await maker.call("GET", path), {
    ...snake, id: order, status: "live", market: market.condition, assetId: token,
    makerAddress: maker.wallet, createdAt: rfc3339, owner: maker.trio.apiKey, type: "GTC",
  });
  const { order: envelope, ...record } = own;
  deepStrictEqual(envelope, record, "the envelope differs");
  const seed = await maker.as("SVC_").call("GET", path);
  deepStrictEqual(Object.keys(seed), ["order"]);
  deepStrictEqual(Object.keys(seed.order).toSorted(), camel.toSorted());
  const polymarket = await maker.as("POLY_").call("GET", path);
  strictEqual(polymarket.status, "LIVE");
  strictEqual((await taker.send("GET", path)).status, 404);
  const list = await maker.call("GET", `/data/orders?market=${market.condition}`);
  deepStrictEqual(list.data, [record]);
  deepStrictEqual([list.next_cursor, list.limit, list.count], [end, 100, 1]);
  const seedList = await maker.as("SVC_").call("GET", "/data/orders");
  deepStrictEqual(seedList, { data: [seed.order], next_cursor: "", limit: 100, count: 1 });
}

async function trades({ maker, taker, token, order }) {
  const { id, item } = await taker.order(
    taker.wallet, token, { side: "SELL", price: 0.4, size: 8 });
  const sold = await taker.call("POST", "/order", item);
  like(sold, { orderID: id, status: "matched", makingAmount: "8", takingAmount: "3.2" });
  for (const [who, role] of [[taker, "TAKER"], [maker, "MAKER"]]) {
    const { data: [one], next_cursor: cursor } = await who.call("GET", "/data/trades");
    strictEqual(cursor, end);
    like(one, {
      id: sold.tradeIDs[0], taker_order_id: id, match_time: digits, last_update: digits,
      type: role, trader_side: role, side: "SELL", status: "CONFIRMED", owner: taker.trio.apiKey,
      maker_address: taker.wallet, transaction_hash: hex32,
      maker_orders: [{ order_id: order, maker_address: maker.wallet, owner: maker.trio.apiKey }],
    });
    const { data: [seed], next_cursor: last } = await who.as("SVC_").call("GET", "/data/trades");
    strictEqual(last, end);
    ok(!("trader_side" in seed), "a key of the other dialects");
    like(seed, { type: role, match_time: rfc3339, last_update: rfc3339 });
    strictEqual(Date.parse(seed.match_time), Number(one.match_time) * 1000);
  }
  const parties = `taker=${taker.wallet.toLowerCase()}&maker=${maker.wallet}`;
  strictEqual((await maker.call("GET", `/data/trades?${parties}`)).count, 1);
  const reverse = `taker=${maker.wallet}`;
  strictEqual((await maker.call("GET", `/data/trades?${reverse}`)).count, 0);
}

async function cancels({ maker, order, token }) {
  const gone = await maker.call("DELETE", "/order", { orderId: order });
  deepStrictEqual(gone, { canceled: [order], not_canceled: {} });
  strictEqual((await maker.call("GET", `/data/order/${order}`)).status, "canceled");
  for (const name of ["orderID", "order_id", "id", "hash"]) {
    const { id, item } = await maker.order(maker.wallet, token, { price: 0.2, size: 5 });
    await maker.call("POST", "/order", item);
    const { canceled } = await maker.call("DELETE", "/order", { [name]: id });
    deepStrictEqual(canceled, [id], `a cancel that names it ${name}`);
  }
  const empty = await maker.send("DELETE", "/order", {});
  deepStrictEqual([empty.status, empty.body.error], [400, "Invalid orderID"]);
}

// cursors: a list longer than a page, in both dialects, while orders come and go.
async function cursors({ maker, token }) {
  const sign = (i) => maker.order(maker.wallet, token, { price: 0.01 * (1 + (i % 30)), size: 5 });
  const orders = await Promise.all(Array.from({ length: 105 }, (_, i) => sign(i)));
  for (let i = 0; i < orders.length; i += 15) {
    const items = orders.slice(i, i + 15).map((o) => o.item);
    const answers = await maker.call("POST", "/orders", items);
    ok(answers.every((a) => a.status === "live"), JSON.stringify(answers));
  }
  const page = (client, cursor) =>
    client.call("GET", `/data/orders?next_cursor=${encodeURIComponent(cursor)}`);
  const exact = /^100:\d+$/; // an offset, and a position that stays where it is while lists change
  for (const [client, last, form] of [[maker, end, exact], [maker.as("SVC_"), "", /^100$/]]) {
    const one = await page(client, start);
    deepStrictEqual([one.data.length, one.count, one.limit], [100, 100, 100]);
    notStrictEqual(one.next_cursor, last);
    ok(form.test(Buffer.from(one.next_cursor, "base64").toString()), one.next_cursor);
    const two = await page(client, one.next_cursor);
    deepStrictEqual([two.data.length, two.next_cursor], [5, last]);
    deepStrictEqual([...one.data, ...two.data].map((o) => o.id), orders.map((o) => o.id));
    for (const past of [end, ""]) {
      deepStrictEqual(await page(client, past),
        { data: [], next_cursor: last, limit: 100, count: 0 }, `behind the end: ${past}`);
    }
  }
  const { next_cursor: cursor } = await page(maker, start);
  await maker.call("DELETE", "/orders", orders.slice(0, 50).map((o) => o.id));
  const rest = await page(maker, cursor);
  deepStrictEqual(rest.data.map((o) => o.id), orders.slice(100).map((o) => o.id),
    "a page shifted when orders left");
  const bad = await maker.send("GET", "/data/orders?next_cursor=x");
  deepStrictEqual([bad.status, bad.body.error], [400, "invalid order params payload"]);
  const { canceled } = await maker.call("DELETE", "/cancel-all");
  strictEqual(canceled.length, 55);
}

async function manyAtOnce({ maker, order, market }) {
  const asked = [{ orderId: order }, { orderId: zero }];
  const { status, body } = await maker.send("POST", "/data/orders", asked);
  ok(status === 200 || status === 207, JSON.stringify(body));
  like(body[0], { order_id: order, status: 200, order: { id: order } });
  like(body[1], { order_id: zero, status: 404 });
  ok(!JSON.stringify(body).includes('"error"'), "a key error in an answer that succeeded");
  const conditions = [{ conditionId: market.condition, tokenIds: market.tokens }];
  const volumes = await maker.send("POST", "/data/volumes", { conditions });
  like(volumes.body, [{ condition_id: market.condition, status: 200, volume: "3.2" }]);
}

async function readonlyKeys({ maker }) {
  const { apiKey } = await maker.call("POST", "/auth/readonly-api-key");
  const read = (path) => fetch(publicURL + path, {
    headers: { KUEST_READONLY_API_KEY: apiKey, KUEST_ADDRESS: maker.owner.address },
  });
  const orders = await read(`/data/orders?maker_address=${maker.wallet}`);
  strictEqual(orders.status, 200, await orders.text());
  const { data: [one] } = await (await read("/data/trades")).json();
  like(one, { trader_side: "MAKER" });
  const path = `/auth/validate-readonly-api-key?address=${maker.owner.address}&key=${apiKey}`;
  deepStrictEqual(await (await fetch(publicURL + path)).json(), { valid: true });
  deepStrictEqual(await maker.call("DELETE", "/auth/readonly-api-key", { key: apiKey }),
    { deleted: true });
  deepStrictEqual(await (await fetch(publicURL + path)).json(), { valid: false });
}

async function heartbeat({ maker }) {
  const first = await maker.call("POST", "/heartbeats", {});
  like(first, { status: "ok", heartbeat_id: String });
  const next = await maker.call("POST", "/heartbeats", { heartbeat_id: first.heartbeat_id });
  like(next, { status: "ok", heartbeat_id: String });
}

// tokens: collateral into pairs of tokens and back; nothing is to be redeemed before the end.
async function tokens({ taker, market, token, other }) {
  const held = async (id) => (await taker.call("GET",
    `/balance-allowance?asset_type=CONDITIONAL&token_id=${id}&signature_type=3`)).balance;
  const body = { conditionId: market.condition, amount: "12.5", wallet: taker.wallet };
  const before = await held(token);
  const split = await taker.call("POST", "/split", body);
  like(split, {
    success: true, transactionHash: hex32, conditionId: market.condition, amount: "12.5",
    wallet: taker.wallet,
  });
  strictEqual(await held(other), "12500000");
  await taker.call("POST", "/merge", { ...body, amount: "2.5" });
  strictEqual(await held(other), "10000000");
  strictEqual(BigInt(await held(token)), BigInt(before) + 10_000_000n);
  const much = await taker.send("POST", "/merge", { ...body, amount: "1000" });
  deepStrictEqual([much.status, much.body.code], [400, "balance"]);
  const early = await taker.send("POST", "/redeem", body);
  strictEqual(early.status, 400, JSON.stringify(early.body));
}

// documented: every route of the node's own description is there, be it to say what is missing.
async function documented({ maker }) {
  const { paths } = await (await fetch(`${publicURL}/openapi.json`)).json();
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })));
  ok(routes.length > 70, `${routes.length} routes`);
  for (const { path, method, operation } of routes) {
    const target = path.replace(/\{[^}]*\}/g, zero);
    const name = `${method.toUpperCase()} ${target}`;
    const { status, body } = operation.tags.includes("account")
      ? await maker.send(method.toUpperCase(), target)
      : await open(method.toUpperCase(), target);
    const elsewhere = target === "/markets"; // another list than the documented one
    ok(status !== 405 && (body?.error !== "not found" || elsewhere), `${name}: ${status}`);
    ok(status in operation.responses, `${name} answers ${status}, which is not documented`);
  }
}

async function open(method, target) {
  const response = await fetch(publicURL + target, { method });
  const text = await response.text();
  return { status: response.status, body: text === "OK" ? text : JSON.parse(text) };
}

async function revoked({ taker }) {
  deepStrictEqual(await taker.call("DELETE", "/auth/api-key"), { revoked: true });
  const denied = await taker.send("GET", "/data/orders");
  deepStrictEqual([denied.status, denied.body.error], [401, "Unauthorized/Invalid api key"]);
}

const market = await pick(false);
ok(market, "no plain market with an empty book in the catalog");
const [token, other] = market.tokens;
const t = { market, token, other };
await need("keys", async () => { t.maker = await trader(); t.taker = await trader(); });
await step("key lists by dialect", () => keysOf(t));
await need("linked wallets", () => links(t));
await need("orders of a wallet", () => places(t));
await step("order records by dialect", () => records(t));
await step("trades by dialect", () => trades(t));
await step("cancel bodies", () => cancels(t));
await step("cursors", () => cursors(t));
await step("many at once", () => manyAtOnce(t));
await step("read-only keys", () => readonlyKeys(t));
await step("heartbeat", () => heartbeat(t));
await step("split and merge", () => tokens(t));
await step("documented routes", () => documented(t));
await step("keys come and go", () => revoked(t));
await settle();
