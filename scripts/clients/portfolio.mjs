// What the suites of the data clients share: a history of two wallets, played once on a market
// that nobody has traded, and what both of them then have. Orders are placed by bin/clobench, so
// that the clients need only read.
import { execFile } from "node:child_process";
import { ok, strictEqual } from "node:assert";
import { promisify } from "node:util";
import { fund, pick, publicURL } from "./house.mjs";

// order places one and insists that it is taken. More are further flags.
export async function order(trader, side, token, price, size, ...more) {
  const { stdout } = await promisify(execFile)("bin/clobench", [
    "order", "--url", publicURL, "--key", trader.key, "--token", token, "--side", side,
    "--price", String(price), "--size", String(size), ...more,
  ]);
  ok(/"success": ?true/.test(stdout), stdout);
}

// play makes two wallets with wallet, which gives a new private key and its address. The buyer gets
// 20 shares of the seller at 0.40 and sells 15 of them again at 0.44, then 24 of the other token at
// 0.50, which he sells at 0.45. In the end orders rest at 0.40 and 0.50.
export async function play(wallet) {
  const market = await pick(false);
  ok(market, "no plain market with an empty book in the catalog");
  const [token, other] = market.tokens;
  const [buyer, seller] = [wallet(), wallet()];
  await fund(buyer.address, "1000");
  await fund(seller.address, "1000");
  await fund(seller.address, "100", token);
  await fund(seller.address, "100", other);
  await order(seller, "SELL", token, 0.4, 20);
  await order(buyer, "BUY", token, 0.4, 20);
  await order(seller, "BUY", token, 0.44, 15);
  await order(buyer, "SELL", token, 0.44, 15);
  await order(seller, "SELL", other, 0.5, 24);
  await order(buyer, "BUY", other, 0.5, 24);
  await order(seller, "BUY", other, 0.45, 24);
  await order(buyer, "SELL", other, 0.45, 24);
  await order(seller, "BUY", token, 0.4, 5);
  await order(seller, "SELL", token, 0.5, 5);
  return { market, token, other, buyer, seller };
}

// held is what the buyer has left, lost what he has no more, as the answers tell it.
export function held({ market, buyer }) {
  return {
    proxyWallet: buyer.address, asset: `${market.condition}:0`, conditionId: market.condition,
    size: 5, avgPrice: 0.4, initialValue: 2, currentValue: 2.25, cashPnl: 0.25, percentPnl: 12.5,
    totalBought: 20, realizedPnl: 0.6, percentRealizedPnl: 3, curPrice: 0.45, redeemable: false,
    mergeable: false, title: market.question, slug: String, icon: String, eventSlug: String,
    outcome: market.outcomes[0], outcomeIndex: 0, oppositeOutcome: market.outcomes[1],
    oppositeAsset: `${market.condition}:1`, endDate: String, negativeRisk: false,
  };
}

export function lost(t) {
  const { negativeRisk, ...rest } = held(t);
  strictEqual(negativeRisk, false);
  return {
    ...rest, asset: rest.oppositeAsset, oppositeAsset: rest.asset, outcomeIndex: 1,
    outcome: rest.oppositeOutcome, oppositeOutcome: rest.outcome, size: 0, avgPrice: 0.5,
    initialValue: 0, currentValue: 0, cashPnl: -1.2, percentPnl: -5, totalBought: 24,
    realizedPnl: -1.2, percentRealizedPnl: -5, curPrice: 0.55, timestamp: Number,
  };
}
