// Every public method of the client, unmodified, against a running node: what is common to both
// clients is in ../clob.mjs, here is what only this one has. Arguments: see ../house.mjs.
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import {
  AssetType, ClobClient, OrderType, PriceHistoryInterval, Side,
} from "@polymarket/clob-client-v2";
import {
  address, decimal, digits, fund, hex32, like, pick, publicURL, record, skip, step, uuid,
} from "../house.mjs";
import { chain, trading } from "../clob.mjs";

const builderCode = `0x${"0b".repeat(32)}`;

const kit = {
  url: publicURL, Wallet, Side, OrderType, AssetType, PriceHistoryInterval,
  open: (options) => new ClobClient({ host: publicURL, chain, ...options }),
  place: (client, order, type, { postOnly, deferExec }) =>
    client.createAndPostOrder(order, {}, type, postOnly, deferExec),
  postAll: (client, args) => client.postOrders(args),
  balance: { balance: digits, allowances: record(address, digits) },
  signed: {
    salt: digits, maker: address, signer: address, tokenId: digits, makerAmount: digits,
    takerAmount: digits, side: /^(BUY|SELL)$/, signatureType: 0, timestamp: digits,
    metadata: hex32, builder: hex32, signature: /^0x[0-9a-f]{130}$/,
  },
  builder,
  more,
  left: {
    canL1Auth: "internal", canL2Auth: "internal", get: "internal", post: "internal",
    del: "internal", throwIfError: "internal", isBuilderOrder: "internal",
    getBuilderTakerFeeRate: "internal", adjustBuyAmountForBalance: "internal",
    _ensureMarketInfoCached: "internal", ensureBuilderFeeRateCached: "internal",
    _resolveTickSize: "internal", _resolveFeeRateBps: "internal", resolveVersion: "internal",
    _retryOnVersionUpdate: "internal", _isOrderVersionMismatch: "internal",
    waitForResolvedTrades: "internal", resolveTransactionsHashes: "internal",
  },
};

const fees = { rate: Number, exponent: Number };

async function builder(t) {
  const { maker, open } = t;
  const { client, signer, creds } = maker;
  const made = like(
    await client.createBuilderApiKey(), { key: uuid, secret: String, passphrase: String });
  const listed = like(
    await client.getBuilderApiKeys(), [{ key: uuid, "createdAt?": String, "revokedAt?": String }]);
  ok(listed.some((k) => k.key === made.key), `builder keys ${JSON.stringify(listed)}`);
  await client.revokeBuilderApiKey();
  const left = await client.getBuilderApiKeys();
  ok(!left.some((k) => k.key === made.key && !k.revokedAt), "a revoked builder key is listed");
  const page = like(await client.getBuilderTrades({ builder_code: builderCode }),
    { trades: [{}], next_cursor: String, limit: Number, count: Number });
  deepStrictEqual([page.trades, page.next_cursor], [[], "LTE="]);
  const coded = open({ signer, creds, builderConfig: { builderCode } });
  const order = { tokenID: t.token, side: Side.BUY, price: 0.2, size: 5 };
  const signed = await coded.createOrder(order);
  strictEqual(signed.builder, builderCode);
  const placed = await coded.postOrder(signed);
  strictEqual(placed.status, "live", JSON.stringify(placed));
  deepStrictEqual((await coded.cancelOrder({ orderID: placed.orderID })).canceled,
    [placed.orderID]);
  const first = await filled(t, coded);
  if (!first) return;
  const [told] = (await client.getBuilderTrades({ builder_code: builderCode })).trades;
  like(told, { ...builderTrade, ...first });
}

// builderTrade is the type of a builder's trade, member by member.
const builderTrade = {
  id: uuid, tradeType: "TAKER", takerOrderHash: hex32, builder: builderCode, market: hex32,
  assetId: digits, side: "BUY", size: decimal, sizeUsdc: decimal, price: decimal,
  status: "CONFIRMED", outcome: String, outcomeIndex: 0, owner: uuid, maker: address,
  transactionHash: hex32, matchTime: digits, bucketIndex: 0, fee: decimal, feeUsdc: decimal,
  builderFee: "0", builderCode, err_msg: null, createdAt: String, updatedAt: String,
};

// filled lets an order with the code trade, on a market of its own, and is how it should be told.
async function filled({ maker, taker }, coded) {
  const market = await pick(false);
  if (!market) return skip("a builder's trade", "there is no further market with an empty book");
  const [tokenID] = market.tokens;
  await fund(taker.signer.address, "10", tokenID);
  await taker.client.createAndPostOrder({ tokenID, side: Side.SELL, price: 0.4, size: 5 });
  const order = await coded.createAndPostOrder({ tokenID, side: Side.BUY, price: 0.4, size: 5 });
  strictEqual(order.status, "matched", JSON.stringify(order));
  return {
    id: order.tradeIDs[0], takerOrderHash: order.orderID, market: market.condition,
    assetId: tokenID, size: "5", sizeUsdc: "2", price: "0.4", outcome: market.outcomes[0],
    owner: maker.creds.key, maker: maker.signer.address,
    transactionHash: order.transactionsHashes[0],
  };
}

async function more(t) {
  const { reader, maker, market, token } = t;
  strictEqual(await reader.getVersion(), 2);
  strictEqual(await reader.getFeeExponent(token), 1);
  const info = like(await reader.getClobMarketInfo(market.condition), {
    c: market.condition, t: [{ t: digits, o: String }], mts: 0.01, "nr?": Boolean,
    "fd?": { "r?": Number, "e?": Number, "to?": Boolean }, "mbf?": Number, "tbf?": Number,
    r: null, "ao?": Boolean, "mos?": Number, "sd?": Number, "rfqe?": Boolean, "ibce?": Boolean,
  });
  deepStrictEqual(info.t.map((x) => x.t), market.tokens);
  like(t.kit.open().feeInfos, record(digits, fees));
  deepStrictEqual(await maker.client.getPreMigrationOrders(), []);
  await rejects(reader.getTickSize("12345"));
  await step("orders of the other versions", () => versions(t));
  await step("a balance that bounds an order", () => bounded(t));
}

// versions: the same client signs for three generations of the exchange.
async function versions({ maker, token }) {
  const { client } = maker;
  const order = { tokenID: token, side: Side.BUY, price: 0.2, size: 5 };
  for (const version of [1, 2]) {
    const placed = await client.createAndPostOrder(order, { version });
    strictEqual(placed.status, "live", `version ${version}: ${JSON.stringify(placed)}`);
    deepStrictEqual((await client.cancelOrder(placed)).canceled, [placed.orderID]);
  }
  const signed = like(await client.createExchangeV3OrderFromAmounts({
    tokenID: token, side: Side.BUY, makerAmount: "1000000", takerAmount: "5000000",
  }), kit.signed);
  const placed = await client.postOrder(signed);
  strictEqual(placed.status, "live", `version 3: ${JSON.stringify(placed)}`);
  const record = await client.getOrder(placed.orderID);
  like(record, { price: "0.2", original_size: "5", status: "LIVE" });
  deepStrictEqual((await client.cancelAll()).canceled, [placed.orderID]);
}

// bounded: the client reads the fee schedule and makes the order as large as the balance allows.
async function bounded({ maker, token }) {
  const { client } = maker;
  const order = { tokenID: token, side: Side.BUY, price: 0.2, size: 50, userUSDCBalance: 2 };
  const signed = await client.createOrder(order);
  strictEqual(signed.makerAmount, "2000000");
}

await trading(kit);
