// Every public method of the client, unmodified, against a running node: it signs orders of the
// first version. What is common to both clients is in ../clob.mjs. Arguments: see ../house.mjs.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { Wallet } from "@ethersproject/wallet";
import { BuilderConfig } from "@polymarket/builder-signing-sdk";
import {
  AssetType, ClobClient, OrderType, PriceHistoryInterval, Side,
} from "@polymarket/clob-client";
import { address, digits, hex32, like, publicURL, uuid } from "../house.mjs";
import { chain, trading } from "../clob.mjs";

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
  const order = { tokenID: t.token, side: Side.BUY, price: 0.2, size: 5 };
  const placed = await built.createAndPostOrder(order);
  strictEqual(placed.status, "live", JSON.stringify(placed));
  like(await built.getOrder(placed.orderID), { id: hex32, status: "LIVE" });
  deepStrictEqual((await built.getOpenOrders()).map((o) => o.id), [placed.orderID]);
  deepStrictEqual((await built.cancelOrder({ orderID: placed.orderID })).canceled,
    [placed.orderID]);
  strictEqual(await built.revokeBuilderApiKey(), "OK");
  const left = await client.getBuilderApiKeys();
  ok(!left.some((k) => k.key === made.key && !k.revokedAt), "a revoked builder key is listed");
}

async function more({ reader, token }) {
  strictEqual(await reader.getTickSize(token), "0.01");
  reader.clearTickSizeCache(token);
  strictEqual(await reader.getTickSize(token), "0.01");
}

await trading(kit);
