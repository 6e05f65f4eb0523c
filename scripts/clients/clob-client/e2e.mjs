// Every public method of the client, unmodified, against a running node: it signs orders of the
// first version. What is common to both clients is in ../clob.mjs. Arguments: see ../house.mjs.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import { BuilderConfig } from "@polymarket/builder-signing-sdk";
import {
  AssetType, ClobClient, OrderType, PriceHistoryInterval, Side,
} from "@polymarket/clob-client";
import {
  address, decimal, digits, fund, hex32, like, pick, publicURL, skip, uuid,
} from "../house.mjs";
import { chain, trading } from "../clob.mjs";
import { order } from "../portfolio.mjs";

function open({ signer, creds, useServerTime, builderConfig, throwOnError } = {}) {
  const region = "e2e"; // goes into every query, which nobody signs
  return new ClobClient(publicURL, chain, signer, creds, undefined, undefined, region,
    useServerTime, builderConfig, undefined, true, undefined, throwOnError);
}

const kit = {
  url: publicURL, Wallet, Side, OrderType, AssetType, PriceHistoryInterval, open,
  place: (client, order, type, { postOnly, deferExec }) =>
    client.createAndPostOrder(order, {}, type, deferExec, postOnly),
  postAll: (client, args) => client.postOrders(args),
  balance: { balance: digits, allowance: digits },
  signed: {
    salt: digits, maker: address, signer: address, taker: address, tokenId: digits,
    makerAmount: digits, takerAmount: digits, expiration: digits, nonce: digits,
    feeRateBps: digits, side: Number, signatureType: 0, signature: /^0x[0-9a-f]{130}$/,
  },
  validate, builder, more,
  left: {
    get: "internal", post: "internal", put: "internal", del: "internal",
    throwIfError: "internal", canL1Auth: "internal", canL2Auth: "internal",
    mustBuilderAuth: "internal", canBuilderAuth: "internal", _resolveTickSize: "internal",
    _resolveFeeRateBps: "internal", _generateBuilderHeaders: "internal",
    _getBuilderHeaders: "internal", updateTickSizeFromOrderBook: "internal",
  },
};

async function validate({ reader, maker }, key, valid) {
  const answer = await reader.validateReadonlyApiKey(maker.signer.address, key);
  deepStrictEqual(answer, { valid });
}

// builder: a builder's own headers stand beside the trader's, and alone.
async function builder(t) {
  const { maker } = t;
  const { client, signer, creds } = maker;
  const made = like(
    await client.createBuilderApiKey(), { key: uuid, secret: String, passphrase: String });
  const listed = like(
    await client.getBuilderApiKeys(), [{ key: uuid, "createdAt?": String, "revokedAt?": String }]);
  ok(listed.some((k) => k.key === made.key), `builder keys ${JSON.stringify(listed)}`);
  const builderConfig = new BuilderConfig({ localBuilderCreds: made });
  const built = t.open({ signer, creds, builderConfig });
  const page = like(await built.getBuilderTrades(),
    { trades: [{}], next_cursor: String, limit: Number, count: Number });
  deepStrictEqual([page.trades, page.next_cursor], [[], "LTE="]);
  const quote = { tokenID: t.token, side: Side.BUY, price: 0.2, size: 5 };
  const placed = await built.createAndPostOrder(quote);
  strictEqual(placed.status, "live", JSON.stringify(placed));
  like(await built.getOrder(placed.orderID), { id: hex32, status: "LIVE" });
  deepStrictEqual((await built.getOpenOrders()).map((o) => o.id), [placed.orderID]);
  deepStrictEqual((await built.cancelOrder({ orderID: placed.orderID })).canceled,
    [placed.orderID]);
  await traded(t, built);
  strictEqual(await built.revokeBuilderApiKey(), "OK");
  const left = await client.getBuilderApiKeys();
  ok(!left.some((k) => k.key === made.key && !k.revokedAt), "a revoked builder key is listed");
}

// traded lets an order with the code of a builder's key trade, on a market of its own. This client
// cannot sign one itself.
async function traded({ maker, taker }, built) {
  const market = await pick(false);
  if (!market) return skip("a builder's trade", "there is no further market with an empty book");
  const [token] = market.tokens;
  const builder = `0x${"00".repeat(12)}${maker.signer.address.slice(2).toLowerCase()}`;
  await fund(taker.signer.address, "10", token);
  await order({ key: taker.signer.privateKey }, "SELL", token, 0.4, 5);
  const expiration = String(Math.floor(Date.now() / 1000) + 600);
  await order({ key: maker.signer.privateKey }, "BUY", token, 0.4, 5, "--builder", builder,
    "--type", "GTD", "--expiration", expiration);
  const { trades } = await built.getBuilderTrades();
  strictEqual(trades.length, 1);
  like(trades[0], {
    id: uuid, tradeType: "TAKER", takerOrderHash: hex32, builder, market: market.condition,
    assetId: token, side: "BUY", size: "5", sizeUsdc: "2", price: "0.4", status: "CONFIRMED",
    outcome: market.outcomes[0], outcomeIndex: 0, owner: uuid, maker: maker.signer.address,
    transactionHash: hex32, matchTime: digits, bucketIndex: 0, fee: decimal, feeUsdc: decimal,
    err_msg: null, createdAt: String, updatedAt: String,
  });
  return undefined;
}

async function more({ reader, token }) {
  strictEqual(await reader.getTickSize(token), "0.01");
  reader.clearTickSizeCache(token);
  strictEqual(await reader.getTickSize(token), "0.01");
}

await trading(kit);
